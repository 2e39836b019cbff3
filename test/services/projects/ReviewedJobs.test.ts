/** Actions of an operator on failed and ambiguous jobs, and the limits of those actions. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import type { ProviderJobId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { embedded } from "../../../services/projects/IdentityProvider/EmbeddedProvider.ts"
import { Operations } from "../../../services/projects/Operations.ts"
import { ProviderJobs } from "../../../services/projects/ProviderJobs.ts"
import { ReviewedJobs } from "../../../services/projects/ReviewedJobs.ts"
import { reason, tagOf } from "../../support/Fixtures.ts"
import { project } from "../../support/TestIdentity.ts"
import { add, atProvider, clientOf, decide, fixture, held, killedAt, newest, over, work } from "./ProviderFixture.ts"

const fail = (jobId: ProviderJobId) =>
  Effect.flatMap(
    Database,
    ({ sql }) => sql`update provider_jobs set state = 'failed', last_error = 'status_400' where id = ${jobId}::uuid`,
  )

const faultOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error) => {
    const [fault] =
      (error as { readonly detail?: ReadonlyArray<{ readonly loc: unknown; readonly msg: string }> }).detail ??
        []
    return fault === undefined ? String(error) : `${JSON.stringify(fault.loc)} ${fault.msg}`
  })

layer(over(embedded), { excludeTestServices: true })("ReviewedJobs", (it) => {
  it.effect("a create that was cut off is looked up even where the project had an earlier client", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      yield* add(portal)
      yield* work
      yield* add(portal, "client.disable")
      yield* work
      const before = yield* clientOf(portal)
      const jobId = yield* add(portal)
      yield* killedAt("provider.answered")
      const { reconcile } = yield* ReviewedJobs
      assert.strictEqual((yield* decide(reconcile({ personId: oz, jobId, reason }))).state, "effective")
      const [client] = yield* held(portal)
      assert.notStrictEqual(client!.client_id, before)
      assert.strictEqual(yield* clientOf(portal), client!.client_id)
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`select disabled from provider_clients where project_id = ${portal}`, [
        { disabled: false },
      ])
    }))

  it.effect("after a restore a possible client is looked up, and made where there is none", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      const { sql } = yield* Database
      const jobId = yield* add(portal)
      yield* killedAt("provider.answered")
      const before = { state: "pending", begun_at: null, last_error: null }
      yield* sql`update provider_jobs set ${sql.update(before)} where id = ${jobId}::uuid`
      const other = (yield* fixture).portal
      yield* add(other)
      yield* sql`update installation set held_since = clock_timestamp()`
      yield* work
      yield* sql`update installation set held_since = null`
      for (const id of [portal, other]) {
        assert.deepStrictEqual((yield* held(id)).map(({ client_id }) => client_id), [yield* clientOf(id)])
      }
      assert.strictEqual((yield* newest(oz)).state, "effective")
    }))

  it.effect("a create retried after the client's end makes no client", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      const jobId = yield* add(portal)
      yield* fail(jobId)
      const last = yield* add(portal, "client.disable")
      yield* work
      assert.deepInclude(yield* newest(oz), { job_id: last, state: "effective" })
      const { retry } = yield* ReviewedJobs
      assert.strictEqual((yield* run(retry({ personId: oz, jobId, reason }))).state, "pending")
      yield* work
      const jobs = yield* (yield* Operations).jobs(oz)
      assert.deepInclude(jobs.find(({ job_id }) => job_id === jobId), {
        state: "effective",
        last_error_code: "superseded",
      })
      assert.isEmpty(yield* held(portal))
    }))

  it.effect("a client found only after the project's end is ended as well", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      const { sql } = yield* Database
      const jobId = yield* add(portal)
      yield* killedAt("provider.answered")
      // The recorded failure was wrong: the client was made.
      yield* fail(jobId)
      yield* add(portal, "client.disable")
      yield* work
      const [client] = yield* held(portal)
      assert.isFalse(client!.disabled)
      const named = { clientId: client!.client_id, managementUri: null, managementToken: null }
      const { repair } = yield* ReviewedJobs
      assert.strictEqual((yield* decide(repair({ personId: oz, jobId, reason, ...named }))).state, "effective")
      yield* work
      assert.isTrue((yield* held(portal))[0]!.disabled)
      assert.deepStrictEqual(yield* sql`select disabled from provider_clients where project_id = ${portal}`, [
        { disabled: true },
      ])
    }))

  it.effect("a repair names the project's own client or is refused, which leaves the job as it was", () =>
    Effect.gen(function* () {
      const { fern, oz, portal } = yield* fixture
      const { sql } = yield* Database
      const { repair } = yield* ReviewedJobs
      const other = yield* project(fern)
      yield* add(other)
      yield* work
      const foreign = (yield* clientOf(other))!
      const jobId = yield* add(portal)
      yield* fail(jobId)
      const asked = { personId: oz, jobId, reason, managementUri: null, managementToken: null }
      const named = (clientId: string) => decide(repair({ ...asked, clientId }))
      assert.match(yield* faultOf(named(foreign)), /^\["body","client_id"\] .*another project/)
      assert.match(yield* faultOf(named("nobody")), /no such client/)
      // Made by another hand, under the reference of this project.
      yield* sql`
        insert into embedded_clients (client_id, reference, metadata, created_at, updated_at)
        select ${`own-${portal}`}, ${`bailiwick:${portal}`},
          metadata || jsonb_build_object('software_id', ${`bailiwick:${portal}`}::text), created_at, updated_at
        from embedded_clients where client_id = ${foreign}`
      // A failed job made no request, so no target exists to compare its client with.
      yield* sql`update provider_jobs set target = (
          select expected from provider_clients where project_id = ${other}) where id = ${jobId}::uuid`
      assert.strictEqual((yield* named(`own-${portal}`)).state, "effective")
      assert.strictEqual(yield* clientOf(portal), `own-${portal}`)
      assert.strictEqual(yield* clientOf(other), foreign)

      const ending = yield* add(portal, "client.disable")
      yield* fail(ending)
      const ended = (clientId: string) => decide(repair({ ...asked, jobId: ending, clientId }))
      assert.match(yield* faultOf(ended("nobody")), /not the client of this project/)
      assert.match(yield* faultOf(ended(`own-${portal}`)), /still there/)
      const records = yield* sql<{ action: string; actor: string; reason: string }>`
        select action, actor, details->>'reason' as reason from audit_records
        where subject = ${`job:${jobId}`} and actor <> 'system'`
      assert.deepStrictEqual(records, [{ action: "provider-job.repair", actor: `person:${oz}`, reason }])
    }))

  it.effect("a second look is refused during the first, and a look that lost its claim writes nothing", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      const { sql } = yield* Database
      const jobId = yield* add(portal)
      yield* killedAt("provider.begun")
      const { reconcile } = yield* ReviewedJobs
      const asked = { personId: oz, jobId, reason }
      yield* Effect.scoped(Effect.gen(function* () {
        const settlement = yield* reconcile(asked)
        const refused = yield* Effect.flip(decide(reconcile(asked)))
        assert.deepInclude(refused, { code: "invalid_state", state: "running" })
        yield* sql`update provider_jobs set claim = nextval('claims') where id = ${jobId}::uuid`
        assert.strictEqual(yield* tagOf(run(settlement)), "InvalidState")
        yield* sql`update provider_jobs set claim = null, lease_until = null where id = ${jobId}::uuid`
      }))
      // A process killed during its look leaves the job as it was.
      yield* sql`update provider_jobs set claim = nextval('claims'), lease_until = 'epoch' where id = ${jobId}::uuid`
      yield* sql`update provider_jobs set last_error = 'unfindable' where id = ${jobId}::uuid`
      yield* (yield* ProviderJobs).free
      assert.deepInclude(yield* newest(oz), { state: "ambiguous", last_error_code: "unfindable" })
      // An operator who loses the right before the provider answers decides nothing.
      const demoted = Effect.tap(reconcile(asked), () => sql`update people set operator = false where id = ${oz}`)
      assert.strictEqual(yield* tagOf(decide(demoted)), "RoleRequired")
      yield* sql`update people set operator = true where id = ${oz}`
      assert.deepInclude(yield* newest(oz), { state: "ambiguous", last_error_code: "unfindable" })
      assert.strictEqual((yield* decide(reconcile(asked))).state, "pending")
      yield* work
    }))

  it.effect("a deleted client is not changed: the job fails, and an operator names another client", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      const { sql } = yield* Database
      yield* add(portal)
      yield* work
      const jobId = yield* add(portal, "client.update")
      yield* killedAt("provider.begun")
      yield* sql`update embedded_clients set disabled = true where reference = ${`bailiwick:${portal}`}`
      const { reconcile } = yield* ReviewedJobs
      assert.strictEqual((yield* decide(reconcile({ personId: oz, jobId, reason }))).state, "pending")
      yield* work
      assert.deepInclude(yield* newest(oz), { state: "failed", last_error_code: "no_such_client" })
    }))

  it.effect("a fault in one job does not cut off the calls of the others", () =>
    Effect.gen(function* () {
      const { fern, oz, portal } = yield* fixture
      const { sql } = yield* Database
      const others = yield* Effect.all([project(fern), project(fern)])
      yield* add(portal)
      yield* work
      yield* sql`
        update provider_clients set management_token = '\\x00'::bytea, kid = 'lost' where project_id = ${portal}`
      const lost = yield* add(portal, "client.update")
      for (const other of others) yield* add(other)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(work)))
      for (const other of others) assert.isString(yield* clientOf(other))
      const jobs = yield* (yield* Operations).jobs(oz)
      assert.strictEqual(jobs.find(({ job_id }) => job_id === lost)?.state, "running")
    }))
})

layer(Layer.empty, { excludeTestServices: true })("ReviewedJobs at a real provider", (it) => {
  it.effect("after a restore no client is made again without a look", () =>
    atProvider(({ interference, made }) =>
      Effect.gen(function* () {
        const { fern, oz, portal } = yield* fixture
        const { sql } = yield* Database
        const jobs = yield* ProviderJobs
        const { reconcile, retry } = yield* ReviewedJobs
        const reviewed = yield* project(fern)
        const jobId = yield* add(portal)
        yield* add(reviewed, "client.create", true)
        yield* sql`update installation set held_since = clock_timestamp()`
        yield* run(jobs.release(reviewed))
        yield* work
        assert.lengthOf(interference.seen, 0)
        const { ambiguous } = yield* (yield* Operations).diagnostics(oz)
        assert.deepStrictEqual(ambiguous.map(({ last_error_code }) => last_error_code), ["restored", "restored"])
        const asked = { personId: oz, jobId, reason }
        assert.strictEqual((yield* decide(reconcile(asked))).last_error_code, "unfindable")
        yield* run(retry(asked))
        yield* work
        assert.deepStrictEqual(made.map(({ software_id }) => software_id), [`bailiwick:${portal}`])
        // Jobs made after the restore are certain.
        const later = yield* project(fern)
        yield* add(later)
        yield* work
        assert.lengthOf(made, 2)
      })
    ))

  it.effect("a repair's address is asked only if it is the provider's own", () =>
    atProvider(({ interference, registrationEndpoint }) =>
      Effect.gen(function* () {
        const { oz, portal } = yield* fixture
        const jobId = yield* add(portal)
        yield* fail(jobId)
        const { repair } = yield* ReviewedJobs
        const asked = { personId: oz, jobId, reason, clientId: "one", managementToken: null }
        const named = (managementUri: string) => decide(repair({ ...asked, managementUri }))
        const elsewhere = registrationEndpoint.replace("127.0.0.1", "localhost")
        assert.match(yield* faultOf(named(elsewhere)), /^\["body","registration_client_uri"\]/)
        assert.lengthOf(interference.seen, 0)
        assert.match(yield* faultOf(named(`${registrationEndpoint}/one`)), /no such client/)
        assert.deepStrictEqual(interference.seen, ["GET 401"])
        interference.cut = "before"
        const silent = yield* Effect.flip(named(`${registrationEndpoint}/one`))
        assert.deepInclude(silent, { status: 504, code: "outcome_unknown", job_id: jobId })
        interference.cut = null
        assert.deepInclude(yield* newest(oz), { job_id: jobId, state: "failed", last_error_code: "status_400" })
        assert.match(yield* faultOf(named(`${registrationEndpoint}/one`)), /no such client/)
      })
    ))
})
