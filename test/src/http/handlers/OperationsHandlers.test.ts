import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Diagnostics } from "../../../../schemas/identity/Operation.ts"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Ids } from "../../../../services/platform/Ids.ts"
import { EmbeddedIssuer } from "../../../../src/embedded/EmbeddedIssuer.ts"
import { access, person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { bearer, serviceTokenFor } from "../../../support/TestTokens.ts"
import { scene } from "../../../services/lifecycle/LifecycleFixture.ts"
import { send } from "../identity/IdentityClient.ts"

const decoded = Schema.decodeUnknownSync(Diagnostics)

/** A project, and the credentials to follow it. */
const followed = Effect.gen(function* () {
  const made = yield* scene
  const { issuer } = yield* EmbeddedIssuer
  const service = yield* serviceTokenFor(made.asking.clientId, { audience: "service-lifecycle" })
  const headers = { authorization: `Bearer ${service}` }
  return {
    ...made,
    consumer: `${issuer} ${made.asking.clientId}`,
    headers,
    path: `/v1/projects/${made.project}/lifecycle`,
  }
})

layer(management({ ROLES: "api,lifecycle" }), { excludeTestServices: true })("Operations", (it) => {
  it.effect("diagnostics show lag, streams, workers and broker subscribers: all to an operator, a project's to its owner", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const bus = yield* Bus
      const { consumer, headers, institution, owner, path, project } = yield* followed
      const other = yield* followed
      const operator = yield* person({ operator: true })
      yield* access(institution, project, yield* person())
      const { body: page } = yield* send("GET", `${path}/events?wait=30&limit=1`, headers)
      assert.lengthOf(page.items, 1)

      yield* Effect.eventually(bus.heal)
      yield* bus.consume({
        stream: "LIFECYCLE",
        durable: "auditor",
        batch: 1,
        ackWaitMillis: 30_000,
        maxAckPending: 1,
        handler: (messages) => Effect.sync(() => messages.forEach((message) => message.ack())),
      })
      yield* Effect.repeat(bus.subscribers("LIFECYCLE"), {
        until: (found) => found.some(({ name }) => name === "auditor"),
      })
      const now = new Date()
      yield* sql`
        insert into worker_sightings (worker, instance, last_seen_at, stopped)
        select w, 'here', ${now}::timestamptz, false
        from unnest('{lifecycle signer,lifecycle push,"relay, ordered","relay, unordered",provider}'::text[]) w`

      const all = yield* send("GET", "/v1/operations/diagnostics", yield* bearer(operator))
      assert.strictEqual(all.status, 200, all.text)
      const diagnostics = decoded(all.body)
      const mine = diagnostics.lifecycle_lag.filter((lag) => lag.project_id === project)
      assert.lengthOf(mine, 1)
      assert.deepInclude(mine[0], {
        consumer_id: consumer,
        delivered_position: 1,
        acknowledged_position: 0,
        installed_version: null,
        snapshot_required: true,
        lag_events: mine[0]!.head_position,
      })
      assert.isTrue(diagnostics.lifecycle_lag.some((lag) => lag.project_id === other.project))
      assert.deepStrictEqual(diagnostics.lifecycle_streams, [])
      assert.deepStrictEqual(diagnostics.lifecycle_drift, [])
      const auditor = diagnostics.lifecycle_broker_subscribers?.find(({ name }) => name === "auditor")
      assert.strictEqual(auditor?.trust, "inside")
      for (const worker of ["lifecycle signer", "lifecycle push", "relay, ordered", "relay, unordered"]) {
        assert.isNumber(diagnostics.workers.find((one) => one.worker === worker)?.backlog, worker)
      }

      const paged = (query: string) =>
        Effect.flatMap(bearer(operator), (headers) => send("GET", `/v1/operations/diagnostics?${query}`, headers))
      const [first, second] = diagnostics.lifecycle_lag
      const { body } = yield* paged("lag_limit=1")
      assert.deepStrictEqual(decoded(body).lifecycle_lag.map(({ project_id }) => project_id), [first!.project_id])
      const cursor = `${first!.lag_events} ${first!.project_id} ${first!.consumer_id}`
      const next = yield* paged(new URLSearchParams({ after_lag: cursor, lag_limit: "1" }).toString())
      assert.strictEqual(next.status, 200, next.text)
      assert.deepStrictEqual(decoded(next.body).lifecycle_lag.map(({ project_id }) => project_id), [second!.project_id])
      for (
        const wrong of ["lag_limit=0", "lag_limit=101", "after_lag=1", "after_lag=1%20x%20a%00bc", "after_lag=-1 x abc"]
      ) {
        assert.strictEqual((yield* paged(wrong)).status, 422, wrong)
      }

      const own = yield* send("GET", `/v1/projects/${project}/operations/diagnostics`, yield* bearer(owner))
      assert.strictEqual(own.status, 200, own.text)
      assert.deepStrictEqual(decoded(own.body).lifecycle_lag.map((lag) => lag.project_id), [project])
      assert.deepStrictEqual(decoded(own.body).lifecycle_broker_subscribers, [])
    }))

  it.effect("diagnostics have the newest hundred jobs, and each worker as running, silent or stopped", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operator = yield* bearer(yield* person({ operator: true }))
      const ids = yield* (yield* Ids).batch(101)
      const now = new Date()
      yield* sql`
        insert into provider_jobs (id, kind, project_id, state, reference, created_at, updated_at, not_before)
        select id, 'client.update', 'none', 'effective', 'none', ${now}, ${now}, ${now}
        from unnest(${[...ids]}::uuid[]) id`
      const jobs = yield* send("GET", "/v1/jobs", operator)
      assert.deepStrictEqual(
        jobs.body.items.map(({ job_id }: { job_id: string }) => job_id),
        [...ids].reverse().slice(0, 100),
      )
      const ago = (seconds: number) => new Date(now.getTime() - seconds * 1_000)
      yield* sql`
        insert into worker_sightings (worker, instance, last_seen_at, stopped)
        values ('provider', 'alive', ${ago(25)}, false), ('provider', 'dead', ${ago(31)}, false),
          ('provider', 'over', ${ago(3)}, true)`
      const { workers } = decoded((yield* send("GET", "/v1/operations/diagnostics", operator)).body)
      const states = workers.filter(({ instance }) => ["alive", "dead", "over"].includes(instance))
      assert.deepStrictEqual(states.map(({ instance, state }) => [instance, state]), [
        ...[["alive", "running"], ["dead", "stale"], ["over", "stopped"]],
      ])
      assert.deepStrictEqual(states.map(({ backlog }) => backlog), [0, 0, 0])
    }))
})
