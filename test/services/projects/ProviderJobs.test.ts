import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import type { ServerResponse } from "node:http"
import { Database } from "../../../services/platform/database/Database.ts"
import { Failpoints, type FaultPoint } from "../../../services/platform/Failpoints.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { embedded } from "../../../services/projects/IdentityProvider/EmbeddedProvider.ts"
import { Operations } from "../../../services/projects/Operations.ts"
import { ProviderJobs } from "../../../services/projects/ProviderJobs.ts"
import { ReviewedJobs } from "../../../services/projects/ReviewedJobs.ts"
import { reason, tagOf } from "../../support/Fixtures.ts"
import { member, owner, person, project } from "../../support/TestIdentity.ts"
import { add, atProvider, clientOf, decide, fixture, held, killedAt, newest, over, work } from "./ProviderFixture.ts"

layer(over(embedded), { excludeTestServices: true })("ProviderJobs", (it) => {
  it.effect("a project's client is made, changed and ended, one job after another", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
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

  it.effect("a job waits for its review, and is dropped where nothing is left to do", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      const jobs = yield* ProviderJobs
      yield* add(portal, "client.create", true)
      yield* work
      assert.deepInclude(yield* newest(oz), { state: "pending", next_attempt_at: null, attempts: 0 })
      yield* run(jobs.release(portal))
      yield* work
      assert.strictEqual((yield* newest(oz)).state, "effective")
      const other = yield* project((yield* fixture).fern)
      yield* add(other, "client.create", true)
      yield* run(jobs.drop(other, "withdrawn"))
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
    it.effect(`killed at ${moment}: the job is ${state}, and there are never two clients`, () =>
      Effect.gen(function* () {
        const { oz, portal } = yield* fixture
        const jobId = yield* add(portal)
        yield* killedAt(moment)
        assert.strictEqual((yield* newest(oz)).state, state)
        assert.lengthOf(yield* held(portal), clients)
        // An ambiguous job is not repeated by itself.
        yield* work
        assert.lengthOf(yield* held(portal), state === "pending" ? 1 : clients)
        const reviewed = yield* ReviewedJobs
        const asked = { personId: oz, jobId, reason }
        if (state === "ambiguous") {
          assert.strictEqual(yield* tagOf(run(reviewed.retry(asked))), "InvalidState")
          assert.strictEqual((yield* decide(reviewed.reconcile(asked))).state, clients === 0 ? "pending" : "effective")
          yield* work
        }
        assert.deepInclude(yield* newest(oz), { job_id: jobId, state: "effective" })
        assert.deepStrictEqual((yield* held(portal)).map(({ client_id }) => client_id), [yield* clientOf(portal)])
        assert.strictEqual(yield* tagOf(decide(reviewed.reconcile(asked))), "InvalidState")
      }))
  }

  for (const kind of ["client.update", "client.disable"] as const) {
    for (const [moment, state, done] of moments) {
      it.effect(`killed at ${moment} of a ${kind}: the job is ${state}, and an ambiguous one is looked up first`, () =>
        Effect.gen(function* () {
          const { oz, portal } = yield* fixture
          const { sql } = yield* Database
          yield* add(portal)
          yield* work
          yield* sql`update projects set name = 'Renamed' where id = ${portal}`
          const jobId = yield* add(portal, kind)
          yield* killedAt(moment)
          assert.strictEqual((yield* newest(oz)).state, state)
          yield* work
          if (state === "ambiguous") {
            assert.strictEqual((yield* newest(oz)).state, state)
            assert.deepStrictEqual(
              yield* sql`select action, outcome, code from audit_records where subject = ${`job:${jobId}`}`,
              [{ action: `provider.${kind}`, outcome: "failed", code: "interrupted" }],
            )
            const looked = yield* decide((yield* ReviewedJobs).reconcile({ personId: oz, jobId, reason }))
            assert.strictEqual(looked.state, done === 0 ? "pending" : "effective")
            yield* work
          }
          assert.deepInclude(yield* newest(oz), { job_id: jobId, state: "effective" })
          const [client, ...others] = yield* sql<{ name: string; gone: boolean; known: boolean }>`
            select e.metadata->>'client_name' as name, e.disabled as gone, c.disabled as known
            from embedded_clients e join provider_clients c on c.reference = e.reference
            where e.reference = ${`bailiwick:${portal}`}`
          assert.lengthOf(others, 0)
          const gone = kind === "client.disable"
          assert.deepStrictEqual(client, { name: gone ? "Portal" : "Renamed", gone, known: gone })
        }))
    }
  }

  it.effect("no client is made for a withdrawn project, whichever of two jobs is the later one", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      const { sql } = yield* Database
      // Clocks of processes differ by some milliseconds, and so the order of ids may be wrong by as much.
      yield* add(portal, "client.disable")
      const made = yield* add(portal)
      yield* sql`update projects set state = 'withdrawn' where id = ${portal}`
      yield* work
      yield* work
      assert.deepInclude(yield* newest(oz), { job_id: made, state: "effective", last_error_code: "superseded" })
      assert.isEmpty(yield* held(portal))
    }))

  it.effect("a stop in the last moment before a call lets the call complete", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      yield* add(portal)
      const begun = yield* Deferred.make<void>()
      const hit = (point: FaultPoint) => {
        if (point === "provider.begun") Deferred.doneUnsafe(begun, Effect.void)
      }
      const working = yield* Effect.forkChild(Effect.provideService(work, Failpoints, { hit }))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(working)
      assert.strictEqual((yield* newest(oz)).state, "effective")
      assert.lengthOf(yield* held(portal), 1)
    }))

  it.effect("a caller's summary counts visible jobs; diagnostics are for operators and a project's own", () =>
    Effect.gen(function* () {
      const { fern, oz, portal } = yield* fixture
      const [plain, stranger, own] = yield* Effect.all([person(), person(), person()])
      yield* member(fern, plain, "member")
      yield* member(fern, stranger, "administrator", { state: "ended" })
      yield* owner(portal, own)
      // A job of an institution that none of the callers belongs to.
      const elsewhere = yield* fixture
      yield* add(elsewhere.portal, "client.create", true)
      yield* add(portal)
      const operations = yield* Operations
      assert.deepInclude(yield* operations.summary(plain), { pending: 1, failed: 0, status: "pending" })
      assert.deepInclude(yield* operations.summary(stranger), { pending: 0, failed: 0, status: "effective" })
      yield* killedAt("provider.answered")
      assert.deepInclude(yield* operations.summary(plain), {
        failed: 1,
        status: "failed",
        failure_diagnostics_available: false,
      })
      assert.deepStrictEqual(yield* operations.summary(own), {
        pending: 0,
        failed: 1,
        status: "failed",
        failure_diagnostics_available: true,
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

  it.effect("jobs are read a page at a time, each once, the newest first", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
      for (let n = 0; n < 3; n++) yield* add(portal, "client.create", true)
      const { jobs } = yield* Operations
      const all = yield* jobs(oz)
      const newest = yield* jobs(oz, { limit: 2, afterId: null })
      const older = yield* jobs(oz, { limit: 100, afterId: newest.at(-1)!.job_id })
      assert.strictEqual(newest.length, 2)
      assert.deepStrictEqual([...newest, ...older], [...all])
    }))
})

layer(Layer.empty, { excludeTestServices: true })("ProviderJobs at a real provider", (it) => {
  it.effect("a client is made, changed and ended through rotating management tokens", () =>
    atProvider(({ interference }) =>
      Effect.gen(function* () {
        const { oz, portal } = yield* fixture
        const { sql } = yield* Database
        const kept = sql<{ bytes: number | null; kid: string | null }>`
          select octet_length(management_token) as bytes, kid from provider_clients where project_id = ${portal}`
        for (const kind of ["client.create", "client.update", "client.update", "client.disable"] as const) {
          // An ended client has no token.
          if (kind === "client.disable") assert.isAbove((yield* kept)[0]!.bytes!, 28)
          yield* add(portal, kind)
          yield* work
          assert.deepInclude(yield* newest(oz), { kind, state: "effective" })
        }
        assert.deepStrictEqual(interference.seen, ["POST 201", "PUT 200", "PUT 200", "DELETE 204"])
        assert.deepStrictEqual(yield* kept, [{ bytes: null, kid: null }])
      })
    ))

  it.effect("a stop waits a moment for the provider's answer, and records it", () =>
    atProvider(({ interference, made }) =>
      Effect.gen(function* () {
        const { oz, portal } = yield* fixture
        yield* add(portal)
        const arrived = yield* Deferred.make<ServerResponse>()
        interference.cut = "after"
        interference.instead = (response) => Deferred.doneUnsafe(arrived, Effect.succeed(response))
        const working = yield* Effect.forkChild(work)
        const response = yield* Deferred.await(arrived)
        const stopping = yield* Effect.forkChild(Fiber.interrupt(working), { startImmediately: true })
        response.writeHead(201).end(JSON.stringify(made[0]))
        yield* Fiber.join(stopping)
        assert.strictEqual((yield* newest(oz)).state, "effective")
        assert.strictEqual(yield* clientOf(portal), made[0]!.client_id)
      })
    ))

  it.effect("a create whose answer was lost is not repeated; an operator names the client or retries", () =>
    atProvider(({ interference, registrationEndpoint }) =>
      Effect.gen(function* () {
        const { oz, portal } = yield* fixture
        const reviewed = yield* ReviewedJobs
        const jobId = yield* add(portal)
        const asked = { personId: oz, jobId, reason }
        interference.cut = "after"
        yield* work
        assert.strictEqual((yield* newest(oz)).state, "ambiguous")
        interference.cut = null
        yield* work
        assert.strictEqual(interference.seen.length, 1)
        assert.strictEqual(yield* tagOf(run(reviewed.retry(asked))), "InvalidState")
        assert.deepInclude(yield* decide(reviewed.reconcile(asked)), {
          state: "ambiguous",
          last_error_code: "unfindable",
        })
        const { ambiguous } = yield* (yield* Operations).diagnostics(oz)
        assert.deepStrictEqual(ambiguous[0]!.allowed_actions, ["reconcile", "reviewed_retry", "reviewed_repair"])
        assert.strictEqual(ambiguous[0]!.target_state["software_id"], `bailiwick:${portal}`)
        const unknown = { clientId: "nobody", managementUri: `${registrationEndpoint}/nobody`, managementToken: null }
        assert.strictEqual(yield* tagOf(decide(reviewed.repair({ ...asked, ...unknown }))), "HTTPValidationError")
        assert.strictEqual((yield* run(reviewed.retry(asked))).state, "pending")
        yield* work
        assert.deepInclude(yield* newest(oz), { state: "effective" })
      })
    ))

  it.effect("a job is left to an operator where the provider will not tell a client's state", () =>
    atProvider(({ interference }) =>
      Effect.gen(function* () {
        const { oz, portal } = yield* fixture
        const reviewed = yield* ReviewedJobs
        const { sql } = yield* Database
        yield* add(portal)
        yield* work
        const jobId = yield* add(portal, "client.disable")
        interference.cut = "after"
        yield* work
        interference.cut = null
        assert.strictEqual((yield* newest(oz)).state, "ambiguous")
        // The provider answers for a deleted client as it does to a wrong token.
        const asked = { personId: oz, jobId, reason }
        assert.deepInclude(yield* decide(reviewed.reconcile(asked)), {
          state: "ambiguous",
          last_error_code: "unfindable",
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
