import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Redacted } from "effect"
import type { Job } from "../../../schemas/identity/Operations.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/Database.ts"
import { type FaultPoint, Faults } from "../../../services/platform/Faults.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { transact } from "../../../services/platform/Transact.ts"
import { ClientDrift } from "../../../services/projects/ClientDrift.ts"
import { IdentityProvider } from "../../../services/projects/IdentityProvider.ts"
import { embedded } from "../../../services/projects/IdentityProvider/embedded.ts"
import { registration } from "../../../services/projects/IdentityProvider/registration.ts"
import { Operations } from "../../../services/projects/Operations.ts"
import { type ProviderJobKind, ProviderJobs } from "../../../services/projects/ProviderJobs.ts"
import { ReviewedJobs } from "../../../services/projects/ReviewedJobs.ts"
import { initialAccessToken, oidcProvider } from "../../support/OidcProvider.ts"
import { identity, institution, member, person, project } from "../../support/TestIdentity.ts"
import { vault } from "../../support/TestVault.ts"

const reason = "looked at the provider"

const over = <R>(provider: Layer.Layer<IdentityProvider, never, R>) =>
  Layer.mergeAll(ProviderJobs.layer, ReviewedJobs.layer, Operations.layer, ClientDrift.layer).pipe(
    Layer.provide(Roles.layer),
    Layer.provideMerge(provider),
    Layer.provideMerge(vault),
    Layer.provideMerge(identity),
  )

const outbound = Outbound.layer({
  ...{ allowedCidrs: [], certificateAuthorities: [], timeoutMillis: 5_000, ownPorts: [] },
})

const world = Effect.gen(function* () {
  const [fern, oz] = yield* Effect.all([institution(), person({ operator: true })])
  return { fern, oz, portal: yield* project(fern) }
})

const add = (projectId: string, kind: ProviderJobKind = "client.create", held = false) =>
  Effect.flatMap(ProviderJobs, (jobs) => transact(jobs.add({ kind, projectId, held })))

const work = Effect.flatMap(ProviderJobs, (jobs) => jobs.work)

/** The newest job as the API shows it. */
const newest = (operator: string) =>
  Effect.flatMap(Operations, (operations) => Effect.map(operations.jobs(operator), ([job]) => job!))

const clientOf = (projectId: string) =>
  Effect.flatMap(Database, ({ sql }) =>
    Effect.map(
      sql<{ client_id: string | null }>`select client_id from projects where id = ${projectId}`,
      ([row]) => row!.client_id,
    ))

/** The clients that the embedded provider holds for a project. */
const held = (projectId: string) =>
  Effect.flatMap(Database, ({ sql }) =>
    sql<{ client_id: string; disabled: boolean }>`
      select client_id, disabled from embedded_clients where reference = ${`bailiwick:${projectId}`}`)

class Killed extends Error {}

/** Works until the moment `at`, where the process is gone; a lease later another one frees what it held. */
const killedAt = (at: FaultPoint) =>
  Effect.gen(function* () {
    const hit = (point: FaultPoint) => {
      if (point === at) throw new Killed()
    }
    const exit = yield* Effect.exit(Effect.provideService(work, Faults, { hit }))
    assert.isTrue(Exit.isFailure(exit))
    const { sql } = yield* Database
    yield* sql`update provider_jobs set lease_until = 'epoch' where claim is not null`
    yield* (yield* ProviderJobs).free
  })

/** Settles a job by what an operator's look found. */
const decide = <E, R, E2, R2>(asking: Effect.Effect<Effect.Effect<Job, E, R>, E2, R2>) =>
  Effect.scoped(Effect.flatMap(asking, (settlement) => transact(settlement)))

const tagOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, { onFailure: (e) => e instanceof Error ? e.name : String(e), onSuccess: () => "done" })

layer(over(embedded), { excludeTestServices: true })("ProviderJobs", (it) => {
  it.effect("makes, changes and ends a project's client, one after another", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* world
      yield* add(portal)
      yield* add(portal, "client.update")
      yield* work
      assert.isString(yield* clientOf(portal))
      assert.deepInclude(yield* newest(oz), { kind: "client.update", state: "pending", attempts: 0 })
      yield* work
      yield* add(portal, "client.disable")
      yield* work
      assert.deepStrictEqual((yield* held(portal)).map(({ disabled }) => disabled), [true])
      assert.deepInclude(yield* newest(oz), { kind: "client.disable", state: "effective", last_error_code: null })
    }))

  it.effect("waits for its review, and is dropped where there is nothing left to do", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* world
      const jobs = yield* ProviderJobs
      yield* add(portal, "client.create", true)
      yield* work
      assert.deepInclude(yield* newest(oz), { state: "pending", next_attempt_at: null, attempts: 0 })
      yield* transact(jobs.release(portal))
      yield* work
      assert.strictEqual((yield* newest(oz)).state, "effective")
      const other = yield* project((yield* world).fern)
      yield* add(other, "client.create", true)
      yield* transact(jobs.drop(other, "withdrawn"))
      yield* work
      assert.isEmpty(yield* held(other))
      assert.deepInclude(yield* newest(oz), { state: "effective", last_error_code: "withdrawn" })
    }))

  const moments: ReadonlyArray<readonly [FaultPoint, string, number]> = [
    ["provider.claimed", "pending", 0],
    ["provider.begun", "ambiguous", 0],
    ["provider.answered", "ambiguous", 1],
    ["provider.settled", "effective", 1],
  ]
  for (const [moment, state, clients] of moments) {
    it.effect(`killed at ${moment}: ${state}, and never two clients`, () =>
      Effect.gen(function* () {
        const { oz, portal } = yield* world
        const jobId = yield* add(portal)
        yield* killedAt(moment)
        assert.strictEqual((yield* newest(oz)).state, state)
        assert.lengthOf(yield* held(portal), clients)
        // What is unclear is not tried again by itself.
        yield* work
        assert.lengthOf(yield* held(portal), state === "pending" ? 1 : clients)
        const reviewed = yield* ReviewedJobs
        const asked = { personId: oz, jobId, reason }
        if (state === "ambiguous") {
          assert.strictEqual(yield* tagOf(transact(reviewed.retry(asked))), "InvalidState")
          assert.strictEqual((yield* decide(reviewed.reconcile(asked))).state, clients === 0 ? "pending" : "effective")
          yield* work
        }
        assert.deepInclude(yield* newest(oz), { job_id: jobId, state: "effective" })
        assert.deepStrictEqual((yield* held(portal)).map(({ client_id }) => client_id), [yield* clientOf(portal)])
        assert.strictEqual(yield* tagOf(decide(reviewed.reconcile(asked))), "InvalidState")
      }))
  }

  it.effect("notes what another hand changed at the provider, and forgets it when it is mended", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* world
      yield* add(portal)
      yield* work
      const { sql } = yield* Database
      const drift = yield* ClientDrift
      const operations = yield* Operations
      const look = Effect.andThen(
        sql`update provider_clients set looked_at = 'epoch' where project_id = ${portal}`,
        drift.look,
      )
      const seen = Effect.map(
        operations.diagnostics(oz),
        ({ client_drift }) => client_drift.filter(({ project_id }) => project_id === portal).map(({ field }) => field),
      )
      yield* look
      assert.deepStrictEqual(yield* seen, [])
      yield* sql`update embedded_clients set metadata = metadata || '{"client_name": "Other"}'
        where reference = ${`bailiwick:${portal}`}`
      yield* look
      assert.deepStrictEqual(yield* seen, ["client_name"])
      yield* add(portal, "client.update")
      yield* work
      yield* look
      assert.deepStrictEqual(yield* seen, [])
    }))

  it.effect("is counted over what one can see; diagnostics are for operators, and for a project's own", () =>
    Effect.gen(function* () {
      const { fern, oz, portal } = yield* world
      const [plain, stranger] = yield* Effect.all([person(), person()])
      yield* member(fern, plain, "member")
      yield* add(portal)
      const operations = yield* Operations
      assert.deepInclude(yield* operations.summary(plain), { pending: 1, failed: 0, status: "pending" })
      assert.deepInclude(yield* operations.summary(stranger), { pending: 0, failed: 0, status: "effective" })
      yield* killedAt("provider.answered")
      assert.deepInclude(yield* operations.summary(plain), {
        ...{ failed: 1, status: "failed", failure_diagnostics_available: false },
      })
      assert.isTrue((yield* operations.summary(oz)).failure_diagnostics_available)
      const asked = yield* Effect.forEach([plain, stranger], (who) =>
        Effect.all([
          tagOf(operations.diagnostics(who)),
          tagOf(operations.jobs(who)),
          tagOf(operations.projectDiagnostics(who, portal)),
        ]))
      assert.deepStrictEqual(asked, [
        ["RoleRequired", "RoleRequired", "RoleRequired"],
        ["RoleRequired", "RoleRequired", "NotFound"],
      ])
      assert.strictEqual(yield* tagOf(operations.projectDiagnostics(oz, portal)), "RoleRequired")
      yield* member(fern, oz, "member")
      const { ambiguous } = yield* operations.projectDiagnostics(oz, portal)
      assert.deepStrictEqual(ambiguous.map(({ allowed_actions }) => allowed_actions), [["reconcile"]])
    }))
})

layer(Layer.empty, { excludeTestServices: true })("ProviderJobs at a real provider", (it) => {
  const program = <A, E>(
    test: (provider: Effect.Success<typeof oidcProvider>) => Effect.Effect<
      A,
      E,
      ProviderJobs | ReviewedJobs | Operations | Database | Layer.Success<typeof identity>
    >,
  ) =>
    Effect.gen(function* () {
      const real = yield* oidcProvider
      const adapter = registration({
        registrationEndpoint: real.registrationEndpoint,
        initialAccessToken: Redacted.make(initialAccessToken),
      }).pipe(Layer.provide(outbound))
      return yield* Effect.provide(test(real), over(adapter))
    }).pipe(Effect.scoped)

  it.effect("makes, changes and ends a client, through changing management tokens", () =>
    program(({ interference }) =>
      Effect.gen(function* () {
        const { oz, portal } = yield* world
        for (const kind of ["client.create", "client.update", "client.update", "client.disable"] as const) {
          yield* add(portal, kind)
          yield* work
          assert.deepInclude(yield* newest(oz), { kind, state: "effective" })
        }
        assert.deepStrictEqual(interference.seen, ["POST 201", "PUT 200", "PUT 200", "DELETE 204"])
        const { sql } = yield* Database
        const [sealed] = yield* sql<{ token: Uint8Array }>`
          select management_token as token from provider_clients where project_id = ${portal}`
        assert.isAbove(sealed!.token.length, 28)
      })
    ))

  it.effect("does not repeat a create whose answer was lost; an operator names the client or sends it again", () =>
    program(({ interference, registrationEndpoint }) =>
      Effect.gen(function* () {
        const { oz, portal } = yield* world
        const reviewed = yield* ReviewedJobs
        const jobId = yield* add(portal)
        const asked = { personId: oz, jobId, reason }
        interference.cut = "after"
        yield* work
        assert.strictEqual((yield* newest(oz)).state, "ambiguous")
        interference.cut = null
        yield* work
        assert.strictEqual(interference.seen.length, 1)
        assert.strictEqual(yield* tagOf(transact(reviewed.retry(asked))), "InvalidState")
        assert.deepInclude(yield* decide(reviewed.reconcile(asked)), {
          ...{ state: "ambiguous", last_error_code: "unfindable" },
        })
        const { ambiguous } = yield* (yield* Operations).diagnostics(oz)
        assert.deepStrictEqual(ambiguous[0]!.allowed_actions, ["reconcile", "reviewed_retry", "reviewed_repair"])
        assert.strictEqual(ambiguous[0]!.target_state["software_id"], `bailiwick:${portal}`)
        const unknown = { clientId: "nobody", managementUri: `${registrationEndpoint}/nobody`, managementToken: null }
        assert.strictEqual(yield* tagOf(decide(reviewed.repair({ ...asked, ...unknown }))), "HTTPValidationError")
        assert.strictEqual((yield* transact(reviewed.retry(asked))).state, "pending")
        yield* work
        assert.deepInclude(yield* newest(oz), { state: "effective" })
      })
    ))

  it.effect("leaves it to an operator where the provider refuses to tell what became of a client", () =>
    program(({ interference }) =>
      Effect.gen(function* () {
        const { oz, portal } = yield* world
        const reviewed = yield* ReviewedJobs
        const { sql } = yield* Database
        yield* add(portal)
        yield* work
        const jobId = yield* add(portal, "client.disable")
        interference.cut = "after"
        yield* work
        interference.cut = null
        assert.strictEqual((yield* newest(oz)).state, "ambiguous")
        // The provider says of a client that is gone what it says of a wrong token.
        const asked = { personId: oz, jobId, reason }
        assert.deepInclude(yield* decide(reviewed.reconcile(asked)), {
          ...{ state: "ambiguous", last_error_code: "unfindable" },
        })
        const [client] = yield* sql<{ client_id: string; management_uri: string }>`
          select client_id, management_uri from provider_clients where project_id = ${portal}`
        const gone = { clientId: client!.client_id, managementUri: client!.management_uri, managementToken: null }
        assert.strictEqual((yield* decide(reviewed.repair({ ...asked, ...gone }))).state, "effective")
        const [after] = yield* sql<{ disabled: boolean }>`
          select disabled from provider_clients where project_id = ${portal}`
        assert.isTrue(after!.disabled)
      })
    ))
})
