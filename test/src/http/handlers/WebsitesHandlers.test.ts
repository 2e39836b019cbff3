/** Reading projects and one's own requests: every value that a write needs or returns can be read. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { workJobs } from "../../../services/decisions/RequestFixture.ts"
import { reason } from "../../../support/Fixtures.ts"
import { access, institution, member, owner, person, project, tell } from "../../../support/TestIdentity.ts"
import { serviceTokenFor, tokenFor } from "../../../support/TestTokens.ts"
import { type Answer, call, get, post, served } from "./RequestServer.ts"

const is = (answer: Answer, status: number, code?: string) => {
  assert.deepStrictEqual([answer.status, answer.body.code], [status, code], answer.text)
  return answer.body
}

const approve = (personId: string, of: { readonly policy_review: { readonly review_id: string } }, role: string) =>
  Effect.map(
    post(personId, `/v1/policies/reviews/${of.policy_review.review_id}/approve`, { role, reason }),
    (answer) => is(answer, 200),
  )

const owned = (personId: string, id: string) =>
  Effect.map(
    get(personId, "/v1/me/requests"),
    (answer) => is(answer, 200).items.find((one: { id: string }) => one.id === id),
  )

/** Fern with a sponsor, two administrators and an owner-to-be. */
const fern = Effect.gen(function* () {
  const [id, sam, ada, abe, pat] = [
    yield* institution(),
    yield* person(),
    yield* person(),
    yield* person(),
    yield* person(),
  ]
  yield* member(id, sam, "sponsor")
  yield* member(id, ada, "administrator")
  yield* member(id, abe, "administrator")
  return { id, sam, ada, abe, pat }
})

const register = Effect.fnUntraced(function* (by: string, institutionId: string, owner_person_id: string) {
  const asked = { name: "Moss", website: `https://${randomUUID()}.example`, environment: "staging", reason }
  const more = { owner_person_id, requested_scopes: ["openid"], redirect_uris: ["https://portal.fern.example/cb"] }
  return is(yield* post(by, `/v1/institutions/${institutionId}/websites`, { ...asked, ...more }), 201)
})

layer(served, { excludeTestServices: true, timeout: "2 minutes" })("projects over HTTP", (it) => {
  it.effect("client, version and a launch's held reason can be read until the website is withdrawn", () =>
    Effect.gen(function* () {
      const { abe, ada, id, pat, sam } = yield* fern
      const website = yield* register(sam, id, pat)
      const path = `/v1/projects/${website.project_id}`
      const before = is(yield* get(sam, path), 200)
      const { owner_person_id: _, policy_review, reason: __, event_id, job_id, ...same } = website
      assert.deepInclude(before, same)
      assert.deepInclude(before.registration, {
        state: "submitted",
        reason,
        author_person_id: sam,
        decided_at: null,
        event_id,
        job_id,
        policy_review,
      })
      assert.deepStrictEqual(before.owners.map(({ person_id }: { person_id: string }) => person_id), [pat])
      assert.deepInclude(before, { client_id: null, launches: [], launch_url: null, rollout: null })

      const launch = is(
        yield* post(pat, `${path}/launch-proposals`, { launch_url: "https://portal.fern.example/", reason }),
        201,
      )
      assert.strictEqual(is(yield* get(pat, path), 200).launches[0].state, "proposed")
      yield* approve(abe, launch, "administrator")
      const held = is(yield* get(pat, path), 200)
      assert.deepInclude(held, { state: "held", held_reason: "registration_unreviewed" })
      assert.deepInclude(held.launches[0], {
        launch_id: launch.launch_id,
        state: "held",
        held_reason: "registration_unreviewed",
        author_person_id: pat,
        launch_url: launch.launch_url,
        project_version: launch.project_version,
      })
      assert.deepInclude(yield* owned(pat, launch.launch_id), { held_reason: "registration_unreviewed" })

      yield* approve(ada, website, "administrator")
      yield* workJobs
      const made = is(yield* get(sam, path), 200)
      assert.isString(made.client_id)
      assert.strictEqual(made.registration.state, "approved")
      const [listed] = is(yield* get(sam, `/v1/institutions/${id}/projects`), 200).items
      const { launches: _l, owners: _o, registration, ...alike } = made
      assert.deepStrictEqual(listed, alike)
      assert.deepInclude(yield* owned(sam, registration.request_id), { client_id: made.client_id })

      const withdrawal = { expected_version: made.version, reason }
      const gone = is(
        yield* post(ada, `/v1/institutions/${id}/websites/${website.project_id}/withdraw`, withdrawal),
        200,
      )
      assert.deepInclude(is(yield* get(ada, path), 200), { state: "withdrawn", version: gone.version })
    }))

  it.effect("the newest twenty launches are shown, newest first", () =>
    Effect.gen(function* () {
      const { id, pat } = yield* fern
      const portal = yield* project(id, { state: "registered" })
      yield* owner(portal, pat)
      const proposed: Array<string> = []
      for (let i = 0; i < 22; i++) {
        const asked = { launch_url: `https://portal.fern.example/${i}`, reason }
        proposed.push(is(yield* post(pat, `/v1/projects/${portal}/launch-proposals`, asked), 201).launch_id)
      }
      const { launches, registration } = is(yield* get(pat, `/v1/projects/${portal}`), 200)
      assert.deepStrictEqual(
        launches.map(({ launch_id }: { launch_id: string }) => launch_id),
        proposed.reverse().slice(0, 20),
      )
      assert.deepStrictEqual(
        launches.map(({ state }: { state: string }) => state),
        ["proposed", ...Array.from({ length: 19 }, () => "superseded")],
      )
      assert.isNull(registration)
    }))

  it.effect("a person with Access sees the project without its decisions; without Access it is 404", () =>
    Effect.gen(function* () {
      const { abe, id, pat } = yield* fern
      const user = yield* person()
      const portal = yield* project(id)
      yield* owner(portal, pat)
      const path = `/v1/projects/${portal}`
      const missing = (yield* get(user, `/v1/projects/${randomUUID()}`)).text
      const blank = (text: string) => text.replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<id>")
      const hidden = yield* get(user, path)
      is(hidden, 404, "not_found")
      assert.strictEqual(blank(hidden.text), blank(missing))
      const accessId = yield* access(id, portal, user)
      const seen = is(yield* get(user, path), 200)
      assert.deepInclude(seen, {
        project_id: portal,
        launches: null,
        owners: null,
        registration: null,
        held_reason: null,
      })
      is(yield* get(user, `/v1/institutions/${id}/projects`), 404, "not_found")
      yield* access(id, portal, user, { id: accessId, version: 2, state: "revoked" })
      is(yield* get(user, path), 404, "not_found")

      const mia = yield* person()
      yield* member(id, mia, "member")
      is(yield* get(mia, path), 403, "role_required")
      yield* access(id, portal, mia)
      assert.isNull(is(yield* get(mia, path), 200).owners)
      const service = yield* call("GET", path, { authorization: `Bearer ${yield* serviceTokenFor("x")}` })
      is(service, 404, "not_found")

      yield* tell("project", { id: portal, version: 9, removed: true })
      for (const who of [pat, abe, mia]) is(yield* get(who, path), 404, "not_found")
    }))

  it.effect("an institution's projects come in pages, each once, without other institutions' projects", () =>
    Effect.gen(function* () {
      const { abe, id } = yield* fern
      const [oz, other] = [yield* person({ operator: true }), yield* institution()]
      const all: Array<string> = []
      for (let i = 0; i < 5; i++) all.push(yield* project(id, { state: i === 0 ? "withdrawn" : "launched" }))
      yield* project(other)
      yield* tell("project", { id: yield* project(id), version: 2, removed: true })
      const path = `/v1/institutions/${id}/projects`
      for (const who of [abe, oz]) {
        const found: Array<string> = []
        for (let after = "";;) {
          const { items } = is(yield* get(who, `${path}?limit=2${after}`), 200)
          if (items.length === 0) break
          assert.isAtMost(items.length, 2)
          found.push(...items.map(({ project_id }: { project_id: string }) => project_id))
          after = `&after_id=${found.at(-1)}`
        }
        assert.deepStrictEqual(found, all.toSorted())
      }
      assert.deepStrictEqual(is(yield* get(oz, `/v1/institutions/${yield* institution()}/projects`), 200), {
        items: [],
      })
      is(yield* get(oz, `/v1/institutions/${randomUUID()}/projects`), 404, "not_found")
      is(yield* get(abe, `/v1/institutions/${other}/projects`), 404, "not_found")
      for (const query of ["limit=0", "limit=101", "limit=x", "after_id=", "after_id=%00", "after_id=a%2Fb"]) {
        const { detail } = is(yield* get(abe, `${path}?${query}`), 422)
        assert.deepStrictEqual(detail[0].loc, ["query", query.split("=")[0]], query)
      }
    }))

  it.effect("an approved link shows when it takes effect, and its approval raises the version", () =>
    Effect.gen(function* () {
      const [author, other, oz] = [yield* person(), yield* person(), yield* person({ operator: true })]
      const token = yield* tokenFor(other)
      const { proof_id } = is(yield* post(author, "/v1/me/link-proofs", { token }), 201)
      const link = is(yield* post(author, "/v1/link-requests", { proof_id, reason }), 201)
      assert.deepInclude(yield* owned(author, link.link_request_id), {
        effective_at: null,
        decided_at: null,
        version: 1,
      })
      yield* approve(oz, link, "operator")
      const approved = yield* owned(author, link.link_request_id)
      assert.deepInclude(approved, { state: "pending_review", version: 2 })
      assert.isAbove(Date.parse(approved.effective_at), Date.parse(approved.decided_at))
      // Its other side reads the same.
      assert.strictEqual((yield* owned(other, link.link_request_id)).effective_at, approved.effective_at)
    }))
})
