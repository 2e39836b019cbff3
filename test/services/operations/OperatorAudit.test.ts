import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { digestOf } from "../../../sdk/Canonical.ts"
import { verifyInclusion } from "../../../sdk/TransparencyLog.ts"
import type { InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import { AuditPage, DecisionsAboutPerson, OwnAuditPage } from "../../../schemas/identity/AuditView.ts"
import { decidedAbout } from "../../../services/operations/DecidedAbout.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { until } from "../../e2e/support/Until.ts"
import { access, institution, member, person, project } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"
import { organization } from "../../src/http/identity/Catalogue/OwnCases.ts"
import { send } from "../../src/http/identity/IdentityClient.ts"

const all = Schema.decodeUnknownSync(AuditPage)
const own = Schema.decodeUnknownSync(OwnAuditPage)

const listed = Effect.fnUntraced(function* (personId: string, query: string) {
  const answer = yield* send("GET", `/v1/operations/audit?${query}`, yield* bearer(personId))
  assert.strictEqual(answer.status, 200, answer.text)
  return all(answer.body)
})

/** What the decisions are recorded on that a person is told of. */
const aboutWhom = Effect.fnUntraced(function* (who: PersonId) {
  const answer = yield* send("GET", "/v1/me/decisions", yield* bearer(who))
  return Schema.decodeUnknownSync(DecisionsAboutPerson)(answer.body).items.map(({ subject }) => subject)
})

/** What a POST of somebody with two factors answers. */
const posted = Effect.fnUntraced(function* (who: PersonId, path: string, body: object) {
  const headers = { ...yield* bearer(who, { acr: "urn:service:aal2" }), "idempotency-key": crypto.randomUUID() }
  const answer = yield* send("POST", path, headers, body)
  assert.isBelow(answer.status, 300, answer.text)
  return answer.body
})

/** A review of an Access that is approved; returns its id. */
const reviewed = Effect.fnUntraced(function* (
  fern: InstitutionId,
  of: { readonly access_id: string; readonly sponsor: PersonId; readonly administrator: PersonId },
) {
  const reason = "to keep in step with it"
  const path = `/v1/institutions/${fern}/access-grant-reviews`
  const { review_id } = yield* posted(of.sponsor, path, { access_id: of.access_id, access_version: 1, reason })
  yield* posted(of.administrator, `${path}/${review_id}/approve`, { reason })
  return review_id as string
})

layer(management({ ROLES: "api,mail,lifecycle" }), { excludeTestServices: true })("The audit over HTTP", (it) => {
  it.effect("operators find records by all filters, page by page", () =>
    Effect.gen(function* () {
      const audit = yield* Audit
      const [oz, sam] = [yield* person({ operator: true }), yield* person()]
      const ids: Array<string> = []
      for (const [n, outcome] of (["done", "refused", "done"] as const).entries()) {
        ids.unshift(
          ...(yield* audit.append({
            action: "thing.tried",
            actor: `person:${sam}`,
            subject: `thing:${sam}`,
            outcome,
            ...(outcome === "done" ? {} : { status: 403, code: "role_required" }),
            details: { n, reason: "as we agreed" },
          })),
        )
      }
      const { items, next_after_id } = yield* listed(oz, `actor=person:${sam}&limit=2`)
      assert.deepStrictEqual(items.map(({ id }) => id), ids.slice(0, 2))
      assert.deepInclude(items[1], {
        action: "thing.tried",
        actor: `person:${sam}`,
        subject: `thing:${sam}`,
        outcome: "refused",
        status: 403,
        code: "role_required",
        details: { n: 1, reason: "as we agreed" },
      })
      const rest = yield* listed(oz, `actor=person:${sam}&limit=2&after_id=${next_after_id}`)
      assert.deepStrictEqual([rest.items.map(({ id }) => id), rest.next_after_id], [[ids[2]], null])
      for (const query of ["outcome=refused", "code=role_required", `subject=thing:${sam}&outcome=refused`]) {
        const found = yield* listed(oz, `actor=person:${sam}&${query}`)
        assert.deepStrictEqual(found.items.map(({ id }) => id), [ids[1]], query)
      }
      assert.lengthOf((yield* listed(oz, `subject=${sam}&action=thing.tried`)).items, 3)
      assert.lengthOf((yield* listed(oz, `actor=person:${sam}&since=2999-01-01T00:00:00Z`)).items, 0)
      assert.lengthOf((yield* listed(oz, `actor=person:${sam}&until=2999-01-01T00:00:00Z`)).items, 3)

      const mine = yield* send("GET", "/v1/me/audit?limit=100&action=thing.tried", yield* bearer(sam))
      const { items: did } = own(mine.body)
      assert.deepStrictEqual(did.map(({ id }) => id), ids)
      assert.notProperty(mine.body.items[0], "details")
      assert.deepStrictEqual(own((yield* send("GET", "/v1/me/audit", yield* bearer(oz))).body).items, [])
    }))

  it.effect("a person proves an own decision without this program, and no other's", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [oz, sam, pat] = [yield* person({ operator: true }), yield* person(), yield* person()]
      const asked = yield* send(
        "POST",
        "/v1/me/organization-requests",
        { ...yield* bearer(sam), "idempotency-key": crypto.randomUUID() },
        organization,
      )
      assert.strictEqual(asked.status, 201, asked.text)
      const { items: [made] } = own((yield* send("GET", "/v1/me/audit?outcome=done", yield* bearer(sam))).body)
      const of = (id: string) =>
        Effect.flatMap(bearer(sam), (headers) => send("GET", `/v1/me/audit/${id}/proof`, headers))
      const answer = yield* until("a checkpoint with the decision", of(made!.id), ({ body }) => body.proof != null)
      const { entry, index, proof, record, salt } = answer.body
      assert.strictEqual(record.actor, `person:${sam}`)
      const bytes = Buffer.from(entry, "base64")
      assert.strictEqual(digestOf({ record, salt }), `sha256:${bytes.toString("hex")}`)
      const [log] = yield* sql<{ key: string }>`select verifier_key as key from log_keys`
      const trusted = { origin: log!.key.split("+")[0]!, logKeys: [log!.key] }
      assert.strictEqual(verifyInclusion(proof, bytes, trusted).index, index)

      const operators = yield* send("GET", `/v1/operations/audit/${made!.id}/proof`, yield* bearer(oz))
      assert.deepStrictEqual([operators.status, operators.body.entry], [200, entry])
      for (const [who, id] of [[pat, made!.id], [oz, made!.id], [sam, crypto.randomUUID()], [sam, "none"]] as const) {
        const refused = yield* send("GET", `/v1/me/audit/${id}/proof`, yield* bearer(who))
        assert.deepStrictEqual([refused.status, refused.body.code], [404, "not_found"], id)
      }
    }))

  it.effect("a person has the proofs of decisions about them, once they are made, and no word of who made them", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [sam, ada, pat, stranger] = [yield* person(), yield* person(), yield* person(), yield* person()]
      const fern = yield* institution()
      yield* member(fern, sam, "sponsor")
      yield* member(fern, ada, "administrator")
      const access_id = yield* access(fern, yield* project(fern), pat)
      const about = (who: typeof pat, query = "") =>
        Effect.map(
          Effect.flatMap(bearer(who), (headers) => send("GET", `/v1/me/decisions${query}`, headers)),
          ({ body }) => Schema.decodeUnknownSync(DecisionsAboutPerson)(body),
        )
      const reviews = `/v1/institutions/${fern}/access-grant-reviews`
      const reason = "to keep in step with it"
      const { review_id } = yield* posted(sam, reviews, { access_id, access_version: 1, reason })
      assert.isEmpty((yield* about(pat)).items, "a proposal that waits")
      yield* posted(ada, `${reviews}/${review_id}/approve`, { reason })

      const { items } = yield* until(
        "checkpoints",
        about(pat),
        ({ items }) => items.length === 2 && items.every(({ proof }) => proof !== null),
      )
      assert.deepStrictEqual(items.map(({ subject }) => subject), Array(2).fill(`access-review:${review_id}`))
      const [log] = yield* sql<{ key: string }>`select verifier_key as key from log_keys`
      const trusted = { origin: log!.key.split("+")[0]!, logKeys: [log!.key] }
      for (const { entry, index, proof } of items) {
        assert.strictEqual(verifyInclusion(proof!, Buffer.from(entry, "base64"), trusted).index, index)
      }
      // Whoever decided may open it: the record and the salt give the same entry.
      const [decided] = items
      const opened = yield* send("GET", `/v1/me/audit/${decided!.record_id}/proof`, yield* bearer(ada))
      const { record, salt } = opened.body
      assert.strictEqual(
        digestOf({ record, salt }),
        `sha256:${Buffer.from(decided!.entry, "base64").toString("hex")}`,
      )
      const told = yield* send("GET", "/v1/me/decisions", yield* bearer(pat))
      for (const secret of [sam, ada, salt, reason]) assert.notInclude(told.text, secret)
      const first = yield* about(pat, "?limit=1")
      assert.deepStrictEqual((yield* about(pat, `?limit=1&after_id=${first.next_after_id}`)).items, items.slice(1))
      for (const who of [sam, ada, stranger]) assert.isEmpty((yield* about(who)).items)
    }))

  it.effect("an Access that moved to another person leaves each of them their own reviews, and neither its ends", () =>
    Effect.gen(function* () {
      const [sam, ada, pat, kim] = [yield* person(), yield* person(), yield* person(), yield* person()]
      const fern = yield* institution()
      yield* member(fern, sam, "sponsor")
      yield* member(fern, ada, "administrator")
      const portal = yield* project(fern)
      const access_id = yield* access(fern, portal, pat)
      const review_id = yield* reviewed(fern, { access_id, sponsor: sam, administrator: ada })
      yield* posted(ada, `/v1/institutions/${fern}/access/${access_id}/shorten`, {
        expected_version: 1,
        ends_at: "2999-01-01T00:00:00Z",
        reason: "to keep in step with it",
      })
      const review = `access-review:${review_id}`
      assert.deepStrictEqual(yield* aboutWhom(pat), [`access:${access_id}`, review, review])
      yield* access(fern, portal, kim, { id: access_id, version: 2 })
      assert.isEmpty(yield* aboutWhom(kim))
      assert.deepStrictEqual(yield* aboutWhom(pat), [review, review])
    }))

  it.effect("what a person asked about another one is listed for the other one, once it is decided", () =>
    Effect.gen(function* () {
      const [ada, abe, bea, pat] = [yield* person(), yield* person(), yield* person(), yield* person()]
      const fern = yield* institution()
      for (const who of [ada, abe]) yield* member(fern, who, "administrator")
      yield* member(fern, bea, "sponsor")
      const asked = yield* posted(ada, `/v1/institutions/${fern}/memberships`, {
        person_id: pat,
        role: "member",
        state: "active",
        reason: "to keep in step with it",
      })
      for (const who of [ada, pat]) assert.isEmpty(yield* aboutWhom(who), "while it waits")
      const { sql } = yield* Database
      const [review] = yield* sql<
        { id: string }
      >`select id::text from policy_reviews where request_id = ${asked.request_id}`
      for (const [who, role] of [[bea, "sponsor"], [abe, "administrator"]] as const) {
        yield* posted(who, `/v1/policies/reviews/${review!.id}/approve`, { role, reason: "to keep in step with it" })
      }
      assert.include(yield* aboutWhom(pat), `request:${asked.request_id}`)
      assert.include(yield* aboutWhom(pat), `policy-review:${review!.id}`)
      for (const who of [ada, abe, bea]) assert.isEmpty(yield* aboutWhom(who))
    }))

  it.effect("a page of decisions looks at the newest subjects before it, and the next pages reach all others", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const sam = yield* person()
      // A request an hour, each decided at once; the first one lately.
      yield* sql`
        insert into requests (id, kind, state, author, fields, reason, created_at, decided_at)
        select (substr(at, 1, 8) || '-' || substr(at, 9) || '-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'organization',
          'declined', ${sam}, '{}', 'as we agreed', t, case n when 1 then now() else t + interval '1 second' end
        from generate_series(1, 1000) n, lateral (select now() - (1001 - n) * interval '1 hour' as t) time,
          lateral (select lpad(to_hex(floor(extract(epoch from t) * 1000)::bigint), 12, '0') as at) hex`
      const all = yield* sql<{ subject: string; millis: number }>`
        select 'request:' || id as subject, extract(epoch from created_at)::float8 * 1000 as millis
        from requests where author = ${sam} order by id desc`
      const of = (millis: number | null) =>
        Effect.map(decidedAbout(sql, sam, millis), (subjects) => subjects.filter((one) => one.startsWith("request:")))
      const newest = yield* of(null)
      assert.isAtMost(newest.length, 500)
      assert.includeMembers(newest, [...all.slice(0, 100), all.at(-1)!].map(({ subject }) => subject))
      const page = yield* of(all[600]!.millis)
      assert.isAtMost(page.length, 500)
      assert.includeMembers(page, all.slice(601, 700).map(({ subject }) => subject))
    }))

  it.effect("a refused request is found by the id of its answer, and a wrong filter is a fault with its name", () =>
    Effect.gen(function* () {
      const [oz, sam] = [yield* person({ operator: true }), yield* person()]
      const refused = yield* send("GET", "/v1/operations/audit", yield* bearer(sam))
      assert.deepStrictEqual([refused.status, refused.body.code], [403, "role_required"])
      const id = refused.headers["x-request-id"]!
      const { items } = yield* listed(oz, `request_id=${id}`)
      assert.deepStrictEqual(items.map(({ actor, code }) => [actor, code]), [[`person:${sam}`, "role_required"]])
      const bad = yield* send(
        "GET",
        "/v1/operations/audit?outcome=good&since=yesterday&limit=0&actor=%00",
        yield* bearer(oz),
      )
      assert.strictEqual(bad.status, 422)
      assert.sameDeepMembers(
        bad.body.detail.map(({ loc }: { loc: unknown }) => loc),
        ["outcome", "since", "limit", "actor"].map((name) => ["query", name]),
      )
    }))

  it.effect("an auditor finds who decided and who tried, and nothing of mail accounts, sign-ins and networks", () =>
    Effect.gen(function* () {
      const audit = yield* Audit
      const [auditor, sam] = [yield* person({ auditor: true }), yield* person()]
      const [account, of] = [`account:${crypto.randomUUID()}`, `thing:${crypto.randomUUID()}`]
      const record = (action: string, actor: string | null) =>
        Effect.map(
          audit.append({ action, actor, subject: of, outcome: "done", details: { reason: "as we agreed" } }),
          ([id]) => id!,
        )
      const told = [
        yield* record("access-review.approve", `person:${sam}`),
        yield* record("domain-transfer.completed", account),
        yield* record("rollout.hold", "operator:Oz"),
        yield* record("access-review.expired", "system"),
      ]
      yield* record("webhook.created", account)
      yield* record("console-session.opened", `person:${sam}`)
      yield* record("notice-settings.changed", `person:${sam}`)
      yield* record("request.failed", null)
      const { items } = yield* listed(auditor, `subject=${of}`)
      assert.deepStrictEqual(items.map(({ id }) => id), told.toReversed())
      assert.deepStrictEqual(items[0]!.details, { reason: "as we agreed" })
      assert.deepStrictEqual((yield* listed(auditor, `actor=${account}&subject=${of}`)).items.length, 1)
      const refused = yield* send("GET", "/v1/operations/queues", yield* bearer(auditor))
      assert.deepStrictEqual([refused.status, refused.body.code], [403, "role_required"])
      const { items: tries } = yield* listed(auditor, `request_id=${refused.headers["x-request-id"]}`)
      assert.deepStrictEqual(tries.map(({ actor, code, details }) => [actor, code, details]), [
        [`person:${auditor}`, "role_required", {}],
      ])
    }))
})
