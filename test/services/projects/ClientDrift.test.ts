/** Differences between a client at the provider and its expected fields, and what a look at it records. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import type { ServerResponse } from "node:http"
import { Database } from "../../../services/platform/database/Database.ts"
import { ClientDrift } from "../../../services/projects/ClientDrift.ts"
import { embedded } from "../../../services/projects/IdentityProvider/EmbeddedProvider.ts"
import { Operations } from "../../../services/projects/Operations.ts"
import { ReviewedJobs } from "../../../services/projects/ReviewedJobs.ts"
import { reason } from "../../support/Fixtures.ts"
import { add, atProvider, clientOf, decide, fixture, newest, over, work } from "./ProviderFixture.ts"

layer(over(embedded), { excludeTestServices: true })("ClientDrift", (it) => {
  it.effect("a change made at the provider by another hand is noted, and cleared once mended", () =>
    Effect.gen(function* () {
      const { oz, portal } = yield* fixture
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
      assert.deepStrictEqual(yield* seen, [])
      yield* sql`update embedded_clients set metadata = metadata || '{"scope": "openid email"}'
        where reference = ${`bailiwick:${portal}`}`
      yield* look
      assert.deepStrictEqual(yield* seen, ["scope"])
      // An ended client has no drift to mend.
      yield* add(portal, "client.disable")
      yield* work
      assert.deepStrictEqual(yield* seen, [])
    }))
})

layer(Layer.empty, { excludeTestServices: true })("ClientDrift at a real provider", (it) => {
  it.effect("a management token that the provider hands out with a look is kept for the next call", () =>
    atProvider(({ interference }) =>
      Effect.gen(function* () {
        const { oz, portal } = yield* fixture
        const { sql } = yield* Database
        const drift = yield* ClientDrift
        const look = Effect.andThen(sql`update provider_clients set looked_at = 'epoch'`, drift.look)
        const seen = sql<{ field: string; observed: string }>`
          select field, observed_digest as observed from client_drift where project_id = ${portal}`
        const { reconcile } = yield* ReviewedJobs
        interference.renews = true
        yield* add(portal)
        yield* work
        yield* look
        yield* look
        assert.deepStrictEqual(yield* seen, [])
        const jobId = yield* add(portal, "client.update")
        interference.cut = "before"
        yield* work
        interference.cut = null
        assert.strictEqual((yield* newest(oz)).state, "ambiguous")
        yield* sql`update provider_jobs set target = target || '{"client_name": "Another"}' where id = ${jobId}::uuid`
        assert.strictEqual((yield* decide(reconcile({ personId: oz, jobId, reason }))).state, "pending")
        yield* work
        assert.deepInclude(yield* newest(oz), { kind: "client.update", state: "effective" })
        // Another hand ends the client: the provider answers as it does to a wrong token.
        const [client] = yield* sql<{ uri: string }>`
          select management_uri as uri from provider_clients where project_id = ${portal}`
        yield* sql`update provider_clients set management_uri = ${client!.uri.replace(/[^/]+$/, "gone")}`
        yield* look
        assert.deepStrictEqual(yield* seen, [{ field: "client_id", observed: "status_401" }])
      })
    ))

  it.effect("a look that began before the client ended notes nothing after", () =>
    atProvider(({ interference }) =>
      Effect.gen(function* () {
        const { portal } = yield* fixture
        const { sql } = yield* Database
        yield* add(portal)
        yield* work
        yield* sql`update provider_clients set looked_at = 'epoch'`
        const arrived = yield* Deferred.make<ServerResponse>()
        interference.cut = "after"
        interference.instead = (response) => Deferred.doneUnsafe(arrived, Effect.succeed(response))
        const looking = yield* Effect.forkChild((yield* ClientDrift).look)
        const response = yield* Deferred.await(arrived)
        interference.cut = null
        yield* add(portal, "client.disable")
        yield* work
        response.writeHead(200).end(JSON.stringify({ client_id: yield* clientOf(portal), client_name: "Another" }))
        assert.strictEqual(yield* Fiber.join(looking), 1)
        assert.deepStrictEqual(interference.seen, ["POST 201", "GET cut", "DELETE 204"])
        assert.isEmpty(yield* sql`select field from client_drift`)
      })
    ))
})
