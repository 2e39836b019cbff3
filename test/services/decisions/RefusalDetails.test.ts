/** The `detail` of a refusal: which object, in which state, and what the caller can do. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { PersonId, type RequestId } from "../../../schemas/BrandedIds.ts"
import { NewPeople } from "../../../services/people/NewPeople.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { issuer, person, project } from "../../support/TestIdentity.ts"
import {
  askAccess,
  changeMembership,
  fixture,
  own,
  projectRow,
  propose,
  services,
  sign,
  website,
  workJobs,
} from "./RequestFixture.ts"

const saidOf = <A, E extends object, R>(refused: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(refused), (error) => {
    const { code, detail } = error as { readonly code?: string; readonly detail?: string }
    return [code, detail]
  })

layer(services, { excludeTestServices: true })("The detail of a refusal", (it) => {
  it.effect("a refusal names the blocking website, owner, rollout or preview", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { sql } = yield* Database
      const url = "https://twice.fern.example"
      const made = yield* website(w, w.pat, { website: url })
      const id = made.project_id
      assert.deepStrictEqual(yield* saidOf(website(w, w.pat, { website: url })), [
        "website_exists",
        `Project ${id}, which is registered, has this website in staging: withdraw it first, or register another ` +
        "website or environment.",
      ])
      const gone = yield* person({ status: "suspended" })
      for (
        const [who, refused] of [[gone, website(w, gone)], ["nobody", website(w, PersonId.make("nobody"))], [
          gone,
          own(id, w.ada, gone),
        ]] as const
      ) {
        const [code, detail] = yield* saidOf<unknown, object, unknown>(refused) as Effect.Effect<Array<string>>
        assert.strictEqual(code, "owner_not_active")
        assert.include(detail, `No active person has the id ${who}`)
      }
      assert.deepStrictEqual(yield* saidOf(own(id, w.ada, w.pat, false)), [
        "last_owner",
        `Person ${w.pat} is the last active owner of project ${id}: make another person an owner first.`,
      ])
      yield* sign(made, "administrator", w.ada)
      yield* workJobs
      const launch = yield* propose(id, w.pat)
      const { revision } = yield* projectRow(id)
      yield* sql`update projects set preview_digest = 'another', revision = ${revision} where id = ${id}`
      assert.deepStrictEqual(yield* saidOf(sign(launch, "administrator", w.abe)), [
        "preview_changed",
        "The launch was proposed for preview none, and the project has another by now: its owner has to propose the " +
        "launch again.",
      ])
      yield* sql`update projects set rollout = 'fail' where id = ${id}`
      assert.deepStrictEqual(yield* saidOf(propose(id, w.pat)), [
        "environment_held",
        `The rollout of project ${id} failed: nothing new takes effect there until an operator releases it.`,
      ])
    })))

  it.effect("a refusal names the existing request or person", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const until = new Date(start + 14 * day).toISOString()
      const said = (requestId: RequestId) => [
        "request_exists",
        `Request ${requestId} asks for the same and waits for its reviewers until ${until}: another one can be made once ` +
        "it is decided or has expired.",
      ]
      const { request_id } = yield* askAccess(w.fern, portal, w.pat)
      assert.deepStrictEqual(yield* saidOf(askAccess(w.fern, portal, w.pat)), said(request_id))
      const asked = yield* changeMembership(w, w.sam, w.pat, "member", "active")
      const again = changeMembership(w, w.ada, w.pat, "member", "suspended")
      assert.deepStrictEqual(yield* saidOf(again), said(asked.request_id))
      const { create } = yield* NewPeople
      const by = { principal: `person:${w.oz}`, personId: w.oz, issuer, clientId: "portal" }
      assert.deepStrictEqual(yield* saidOf(run(create({ by, issuer, subject: w.pat, reason }))), [
        "person_exists",
        `Person ${w.pat} has this identity and is active: use that id, or name another subject.`,
      ])
    })))
})
