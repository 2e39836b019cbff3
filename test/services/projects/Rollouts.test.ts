import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { ProjectId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { type RolloutAction, Rollouts } from "../../../services/projects/Rollouts.ts"
import {
  askAccess,
  codeOf,
  decline,
  fire,
  type Fixture,
  fixture,
  projectRow,
  propose,
  requestRow,
  services as below,
  sign,
  told,
  website,
  withdraw,
  workJobs,
} from "../decisions/RequestFixture.ts"
import { reason, timed } from "../../support/Fixtures.ts"
import { access, tell } from "../../support/TestIdentity.ts"

const services = Layer.provideMerge(Rollouts.layer, below)

const set = (projectId: ProjectId, action: RolloutAction) =>
  Effect.flatMap(Rollouts, (rollouts) => run(rollouts.set(projectId, action, reason)))

/** A launched staging website that Pat owns. */
const launched = Effect.fnUntraced(function* (w: Fixture) {
  const made = yield* website(w, w.pat)
  yield* sign(made, "administrator", w.ada)
  yield* workJobs
  yield* sign(yield* propose(made.project_id, w.pat), "administrator", w.abe)
  assert.strictEqual((yield* projectRow(made.project_id)).state, "launched")
  return made.project_id
})

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Rollouts", (it) => {
  it.effect("a held rollout activates nothing new, and its release restores the state", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const id = yield* launched(w)
      const asked = yield* askAccess(w.fern, id, w.ola)
      yield* sign(asked, "sponsor", w.sam)
      const { revision } = yield* projectRow(id)
      assert.deepInclude(yield* set(id, "hold"), { state: "held", rollout: "hold", version: revision + 1, jobId: null })
      assert.isNull(yield* set(id, "hold"))
      assert.deepInclude(yield* projectRow(id), { state: "held", held_reason: "rollout_held" })
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.ada)), "environment_held")
      assert.strictEqual(yield* codeOf(propose(id, w.pat)), "environment_held")
      assert.deepInclude(yield* set(id, "release"), { state: "launched", rollout: null })
      assert.isNull(yield* set(id, "release"))
      assert.strictEqual((yield* sign(asked, "administrator", w.ada)).state, "applied")
    })))

  it.effect("a failed rollout ends client and sessions, and its release restores neither", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const id = yield* launched(w)
      yield* access(w.fern, id, w.ola)
      const { client_id } = yield* projectRow(id)
      const failed = yield* set(id, "fail")
      assert.deepInclude(failed, { state: "held", rollout: "fail" })
      assert.isNotNull(failed!.jobId)
      assert.strictEqual((yield* told(id)).at(-1), "session-revoked")
      assert.isNull(yield* set(id, "hold"))
      yield* workJobs
      const { sql } = yield* Database
      const disabled = Effect.map(
        sql<{ disabled: boolean }>`select disabled from provider_clients where project_id = ${id}`,
        ([row]) => row!.disabled,
      )
      assert.isTrue(yield* disabled)
      // The directory learns of the failure, and sends `launched` all the same.
      const [{ website }] = (yield* sql`select website from projects where id = ${id}`) as [{ website: string }]
      const line = {
        id,
        institution_id: w.fern,
        name: "Portal",
        website,
        environment: "staging",
        connector_kind: "standard_oidc",
        redirect_uris: ["https://portal.fern.example/callback"],
      }
      yield* tell("project", { ...line, version: 1, state: "held" })
      yield* tell("project", { ...line, version: 2, state: "launched" })
      assert.deepInclude(yield* projectRow(id), { state: "held", held_reason: "rollout_failed" })
      assert.strictEqual((yield* told(id)).at(-1), "session-revoked")
      assert.deepInclude(yield* set(id, "release"), { state: "registered", rollout: null })
      assert.isTrue(yield* disabled)
      // A launch that is reviewed again makes another client.
      const again = yield* propose(id, w.pat)
      yield* sign(again, "administrator", w.abe)
      assert.deepInclude(yield* projectRow(id), { state: "held", held_reason: "client_disabled" })
      yield* workJobs
      yield* TestClock.adjust(60_000)
      yield* fire
      const back = yield* projectRow(id)
      assert.strictEqual(back.state, "launched")
      assert.notStrictEqual(back.client_id, client_id)
      assert.isFalse(yield* disabled)
      assert.deepStrictEqual(yield* sql`select client_id from embedded_clients where client_id = ${client_id}`, [])
    })))

  it.effect("a launch after a failure waits for the failed client's end and for a new client", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const id = yield* launched(w)
      const { client_id } = yield* projectRow(id)
      const { sql } = yield* Database
      const { jobId } = (yield* set(id, "fail"))!
      // The provider refused to end the client: an operator's later retry would end a client launched meanwhile.
      yield* sql`update provider_jobs set state = 'failed', last_error = 'status_401' where id = ${jobId}::uuid`
      yield* set(id, "release")
      yield* sign(yield* propose(id, w.pat), "administrator", w.abe)
      assert.deepInclude(yield* projectRow(id), { state: "held", held_reason: "client_disabled" })
      yield* sql`update provider_jobs set state = 'pending' where id = ${jobId}::uuid`
      yield* workJobs
      yield* TestClock.adjust(60_000)
      yield* fire
      assert.strictEqual((yield* projectRow(id)).state, "held")
      yield* workJobs
      yield* TestClock.adjust(60_000)
      yield* fire
      const back = yield* projectRow(id)
      assert.strictEqual(back.state, "launched")
      assert.notStrictEqual(back.client_id, client_id)
    })))

  it.effect("a launch that waited when the rollout failed is superseded", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const made = yield* website(w, w.pat, {}, [])
      yield* sign(made, "administrator", w.ada)
      yield* workJobs
      const launch = yield* propose(made.project_id, w.pat)
      yield* sign(launch, "administrator", w.abe)
      assert.strictEqual((yield* requestRow(launch.launch_id)).state, "held")
      yield* set(made.project_id, "hold")
      assert.strictEqual((yield* requestRow(launch.launch_id)).state, "held")
      yield* set(made.project_id, "release")
      assert.deepInclude(yield* projectRow(made.project_id), { state: "held", held_reason: "redirect_uri_missing" })
      yield* set(made.project_id, "fail")
      assert.strictEqual((yield* requestRow(launch.launch_id)).state, "superseded")
      assert.deepInclude(yield* set(made.project_id, "release"), { state: "registered" })
    })))

  it.effect("a launch proposed before a hold is not approved during it, nor at the version after it", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const made = yield* website(w, w.pat)
      const [launch, id] = [yield* propose(made.project_id, w.pat), made.project_id]
      yield* set(id, "hold")
      assert.strictEqual(yield* codeOf(sign(launch, "administrator", w.abe)), "environment_held")
      assert.strictEqual(yield* codeOf(sign(made, "administrator", w.ada)), "environment_held")
      assert.deepInclude(yield* set(id, "release"), { state: "launch_proposed" })
      assert.strictEqual(yield* codeOf(sign(launch, "administrator", w.abe)), "version_conflict")
      yield* set(id, "hold")
      yield* decline(launch, "administrator", w.abe)
      assert.deepInclude(yield* set(id, "release"), { state: "registered" })
    })))

  it.effect("a held project may be withdrawn; a withdrawn or unknown one cannot be held", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const id = yield* launched(w)
      yield* set(id, "hold")
      yield* withdraw(w.fern, id, w.pat, (yield* projectRow(id)).revision)
      assert.strictEqual(yield* codeOf(set(id, "release")), "invalid_state")
      assert.strictEqual(yield* codeOf(set(ProjectId.make("unknown"), "hold")), "not_found")
    })))
})
