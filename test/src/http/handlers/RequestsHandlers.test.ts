/** Requests, websites, invitations and policy reviews as a client meets them. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { tokenOf, workJobs, writer } from "../../../services/decisions/RequestFixture.ts"
import { reason } from "../../../support/Fixtures.ts"
import { institution, member, person, project } from "../../../support/TestIdentity.ts"
import { serviceTokenFor, tokenFor } from "../../../support/TestTokens.ts"
import { type Answer, call, get, post, served } from "./RequestServer.ts"

const is = (answer: Answer, status: number, code?: string) => {
  assert.deepStrictEqual([answer.status, answer.body.code], [status, code], answer.text)
  return answer.body
}

const approve = (personId: string, of: { readonly policy_review: { readonly review_id: string } }, role: string) =>
  post(personId, `/v1/policies/reviews/${of.policy_review.review_id}/approve`, { role, reason })

/** A request's review as it is listed to a person; undefined where it is not. */
const listed = (personId: string, { policy_review }: { readonly policy_review: { readonly review_id: string } }) =>
  Effect.map(
    get(personId, "/v1/policies/reviews?limit=100"),
    (answer) => is(answer, 200).items.find((one: { review_id: string }) => one.review_id === policy_review.review_id),
  )

layer(served, { excludeTestServices: true, timeout: "2 minutes" })("requests over HTTP", (it) => {
  it.effect("a person founds an institution and launches a website", () =>
    Effect.gen(function* () {
      const [mo, pat, oz] = [yield* person(), yield* person(), yield* person({ operator: true })]
      const ann = yield* person({ email: "ann@walk.example" })
      const organization = is(
        yield* post(mo, "/v1/me/organization-requests", {
          name: "Moss",
          organization_type: "school",
          website: "https://walk.example",
          domains: ["walk.example"],
          purpose: "to teach what we know",
          contacts: [{ name: "Mo", email: "mo@walk.example" }],
          reason,
        }),
        201,
      )
      const waiting = is(yield* get(oz, "/v1/policies/reviews?limit=100"), 200)
      const first = waiting.items.find((one: { request_id: string }) => one.request_id === organization.request_id)
      assert.deepInclude(first, { kind: "organization", author_person_id: mo, reason, approvals: [], state: "open" })
      assert.deepInclude(first.asked, { name: "Moss", domains: ["walk.example"], purpose: "to teach what we know" })
      is(yield* approve(oz, organization, "operator"), 200)
      const [{ result_id: moss, state }] = is(yield* get(mo, "/v1/me/requests"), 200).items
      assert.strictEqual(state, "approved")

      const enrollment = is(
        yield* post(mo, `/v1/institutions/${moss}/enrollments`, { recipient: "ann@walk.example", reason }),
        201,
      )
      assert.deepStrictEqual((yield* listed(oz, enrollment)).asked, { recipient: "a***@walk.example" })
      is(yield* approve(oz, enrollment, "administrator"), 200)
      const token = yield* tokenOf(enrollment.enrollment_id)
      const accepted = is(yield* post(ann, `/v1/enrollments/${token}/accept`, undefined, "once"), 200)
      assert.deepStrictEqual(accepted.membership, { role: "administrator", state: "active" })
      const again = yield* post(ann, `/v1/enrollments/${token}/accept`, undefined, "once")
      assert.deepStrictEqual([again.body, again.headers.get("idempotency-replayed")], [accepted, "true"])
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select from idempotency_receipts where path like ${`%${token}%`}`,
        [],
        "a receipt holds the token of a link",
      )

      const website = is(
        yield* post(mo, `/v1/institutions/${moss}/websites`, {
          name: "Moss",
          website: "https://www.walk.example",
          owner_person_id: pat,
          environment: "staging",
          reason,
          requested_scopes: ["openid"],
          redirect_uris: ["https://www.walk.example/cb"],
        }),
        201,
      )
      const { asked } = yield* listed(ann, website)
      assert.deepInclude(asked, { website: website.website, owner_person_id: pat, environment: "staging" })
      assert.deepInclude(asked, { redirect_uris: website.redirect_uris, requested_scopes: ["openid"] })
      is(yield* approve(ann, website, "administrator"), 200)
      yield* workJobs
      const launch = is(
        yield* post(pat, `/v1/projects/${website.project_id}/launch-proposals`, {
          launch_url: "https://www.walk.example/",
          reason,
        }),
        201,
      )
      // The only administrator approved Pat's ownership, so is not independent of Pat: an operator stands in.
      is(yield* approve(ann, launch, "administrator"), 403, "four_eyes_required")
      assert.isUndefined(yield* listed(ann, launch))
      assert.strictEqual((yield* listed(oz, launch)).asked.launch_url, launch.launch_url)
      assert.strictEqual(is(yield* approve(oz, launch, "administrator"), 200).state, "applied")
      const owners = is(yield* post(ann, `/v1/projects/${website.project_id}/owners`, { person_id: mo, reason }), 200)
      assert.strictEqual(owners.owners.length, 2)
      const gone = is(
        yield* post(ann, `/v1/institutions/${moss}/websites/${website.project_id}/withdraw`, {
          expected_version: owners.version,
          reason,
        }),
        200,
      )
      assert.deepInclude(gone, { state: "withdrawn", version: owners.version + 1 })
      const why = yield* sql<{ action: string; reason: string }>`
        select action, details ->> 'reason' as reason from audit_records
        where subject = ${`project:${website.project_id}`} order by id desc limit 2`
      assert.deepStrictEqual(why.map(({ action }) => action), ["project.withdrawn", "project.owner-changed"])
      for (const one of why) assert.strictEqual(one.reason, reason)
    }))

  it.effect("the specification's POSTs need a key, ours accept one; a replay is the same bytes", () =>
    Effect.gen(function* () {
      const [sam, pat, fern] = [yield* person(), yield* person(), yield* institution()]
      yield* member(fern, sam, "sponsor")
      const portal = yield* project(fern)
      const body = { institution_id: fern, project_id: portal, reason }
      const paths: ReadonlyArray<string> = [
        ...["/v1/me/organization-requests", `/v1/institutions/${fern}/websites`, "/v1/me/access-requests"],
        ...["/v1/people", `/v1/institutions/${fern}/websites/${portal}/withdraw`, "/v1/link-requests"],
        ...[`/v1/institutions/${fern}/enrollments`, `/v1/projects/${portal}/launch-proposals`],
        ...[`/v1/projects/${portal}/owners`, "/v1/policies/reviews/x/approve"],
      ]
      for (const path of paths) {
        const answer = yield* post(sam, path, { reason }, null)
        assert.strictEqual(answer.status, 422, path)
        assert.deepInclude(answer.body.detail[0], { type: "missing", loc: ["header", "idempotency-key"] }, path)
      }
      const first = yield* post(pat, "/v1/me/access-requests", body, "k")
      const second = yield* post(pat, "/v1/me/access-requests", body, "k")
      is(first, 201)
      assert.deepStrictEqual([second.status, second.text], [first.status, first.text])
      assert.strictEqual(second.headers.get("idempotency-replayed"), "true")
      is(
        yield* post(pat, "/v1/me/access-requests", { ...body, reason: `${reason}!` }, "k"),
        409,
        "idempotency_key_reused",
      )
      is(yield* post(pat, "/v1/me/access-requests", body), 409, "request_exists")
      const asked = { person_id: pat, role: "member", state: "active", reason }
      is(yield* post(sam, `/v1/institutions/${fern}/memberships`, asked, null), 201)
    }))

  it.effect("a wrong body is 422 with every fault, an unknown caller 401, a missing object 404", () =>
    Effect.gen(function* () {
      const [sam, pat, fern] = [yield* person(), yield* person(), yield* institution()]
      yield* member(fern, sam, "sponsor")
      const refused = yield* post(sam, `/v1/institutions/${fern}/websites`, {
        name: "x",
        website: "short",
        owner_person_id: "",
        environment: "test",
        requested_scopes: [],
        reason,
        redirect_uris: ["http://a"],
        colour: "red",
      })
      assert.strictEqual(refused.status, 422)
      assert.deepStrictEqual(
        refused.body.detail.map(({ loc, type }: { loc: ReadonlyArray<string>; type: string }) => [loc.join("."), type]),
        [
          ["body.name", "string_too_short"],
          ["body.website", "string_too_short"],
          ["body.owner_person_id", "string_too_short"],
          ["body.environment", "literal_error"],
          ["body.redirect_uris.0", "value_error"],
          ["body.requested_scopes", "too_short"],
          ["body.colour", "extra_forbidden"],
        ],
      )
      is(yield* call("POST", "/v1/link-requests", {}, {}), 401, "invalid_token")
      is(yield* call("GET", "/v1/me/requests", {}), 401, "invalid_token")
      const enrollment = { recipient: "a@b.example", reason }
      is(yield* post(pat, `/v1/institutions/${fern}/enrollments`, enrollment), 404, "not_found")
      is(yield* post(pat, "/v1/institutions/unknown/enrollments", enrollment), 404, "not_found")
      is(yield* post(pat, "/v1/enrollments/unknown/accept"), 404, "not_found")
      is(yield* post(pat, "/v1/link-requests/unknown/object", {}), 404, "not_found")
      is(yield* post(pat, "/v1/policies/reviews/unknown/decline", { role: "operator", reason }), 404, "not_found")
      const bad = yield* get(pat, "/v1/policies/reviews?limit=0&after_id=x")
      assert.deepStrictEqual(
        bad.body.detail.map(({ loc, type }: { loc: ReadonlyArray<string>; type: string }) => [loc.join("."), type]),
        [["query.limit", "string_pattern_mismatch"], ["query.after_id", "uuid_parsing"]],
      )
      assert.deepStrictEqual((yield* get(pat, "/v1/me/requests?limit=0&after_id=x")).body, bad.body)
      assert.deepStrictEqual(is(yield* get(pat, "/v1/policies/reviews?state=nonsense"), 200), { items: [] })
    }))

  it.effect("identities are linked by a token that is never repeated; a service makes people", () =>
    Effect.gen(function* () {
      const [one, other, oz] = [yield* person(), yield* person(), yield* person({ operator: true })]
      const wrong = yield* post(one, "/v1/me/link-proofs", { token: "secret-of-somebody" }, null)
      assert.deepStrictEqual([wrong.status, wrong.body.detail[0].type], [422, "proof_rejected"])
      assert.notInclude(wrong.text, "secret-of-somebody")
      assert.notInclude((yield* post(one, "/v1/me/link-proofs", { token: 12_345 }, null)).text, "12345")
      const { proof_id } = is(yield* post(one, "/v1/me/link-proofs", { token: yield* tokenFor(other) }, null), 201)
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select action, actor from audit_records where subject = ${`link-proof:${proof_id}`}`,
        [{ action: "link-proof.made", actor: `person:${one}` }],
      )
      const link = is(yield* post(one, "/v1/link-requests", { proof_id, reason }), 201)
      assert.deepInclude(link, { proof_id, reason, subject: other, state: "pending_review" })
      is(yield* post(one, "/v1/link-requests", { proof_id, reason }), 409, "proof_consumed")
      is(yield* post(one, `/v1/link-requests/${link.link_request_id}/object`, {}), 403, "role_required")
      // The other side can find the link without a mail, for as long as it may object.
      const [seen] = is(yield* get(other, "/v1/me/requests"), 200).items
      assert.deepInclude(seen, { id: link.link_request_id, author_person_id: one, state: "pending_review", reason })
      const objected = is(yield* post(other, `/v1/link-requests/${link.link_request_id}/object`, {}, null), 200)
      assert.strictEqual(objected.state, "declined")
      assert.deepStrictEqual(is(yield* get(other, "/v1/me/requests"), 200).items, [])
      is(yield* approve(oz, link, "operator"), 409, "invalid_state")

      const subject = randomUUID()
      const asService = Effect.fnUntraced(function* (clientId: string, path: string, body: unknown) {
        const token = yield* serviceTokenFor(clientId, { issuer: writer.issuer })
        return yield* call("POST", path, { authorization: `Bearer ${token}`, "idempotency-key": randomUUID() }, body)
      })
      const body = { issuer: "https://id.example", subject, reason }
      const created = is(yield* asService(writer.clientId, "/v1/people", body), 201)
      assert.deepInclude(created, { ...body, state: "active", version: 1, policy_review: null })
      is(yield* asService(writer.clientId, "/v1/people", body), 409, "person_exists")
      is(yield* asService("robot", "/v1/people", { ...body, subject: "x" }), 403, "role_required")
      is(yield* asService(writer.clientId, "/v1/link-requests", { proof_id, reason }), 403, "role_required")
      is(
        yield* asService(writer.clientId, "/v1/policies/reviews/x/approve", { role: "operator", reason }),
        404,
        "not_found",
      )
      // The new person can sign in.
      is(yield* get(created.person_id, "/v1/me/requests"), 200)
    }))
})
