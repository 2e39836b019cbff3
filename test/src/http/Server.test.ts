import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { RejectionAudit } from "../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../src/http/Server.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { routes } from "./edge/TestApi.ts"
import { call } from "./edge/TestServer.ts"

const refusals = RejectionAudit.layer.pipe(Layer.provide(Audit.layer), Layer.provideMerge(TestDatabase.layer))

/** A server in a scope of its own, and the signals of its slow handler. */
const started = Effect.gen(function* () {
  const slow = {
    started: yield* Deferred.make<void>(),
    proceed: yield* Deferred.make<void>(),
    done: yield* Deferred.make<void>(),
  }
  const scope = yield* Scope.make()
  const context = yield* Layer.buildWithScope(Server.layer(routes(slow), { host: "127.0.0.1", port: 0 }), scope)
  return { slow, scope, server: Context.get(context, Server) }
})

layer(refusals, { excludeTestServices: true, timeout: "2 minutes" })("the server", (it) => {
  it.effect("takes a free port below 32768, and names a port that it cannot take", () =>
    Effect.gen(function* () {
      const { scope, server, slow } = yield* started
      assert.isAtLeast(server.port, 1024)
      assert.isBelow(server.port, 32768)
      assert.strictEqual(server.url, `http://127.0.0.1:${server.port}`)
      const second = yield* Effect.exit(
        Effect.scoped(Layer.build(Server.layer(routes(slow), { host: "127.0.0.1", port: server.port }))),
      )
      assert.isTrue(Exit.isFailure(second))
      if (Exit.isFailure(second)) assert.include(String(second.cause), `cannot listen on 127.0.0.1:${server.port}`)
      yield* Scope.close(scope, Exit.void)
    }))

  it.effect("finishes running requests when it stops, and accepts no new ones", () =>
    Effect.gen(function* () {
      const { scope, server, slow } = yield* started
      const inFlight = yield* Effect.forkChild(Effect.provideService(call("POST", "/v1/slow"), Server, server))
      yield* Deferred.await(slow.started)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* Deferred.succeed(slow.proceed, undefined)
      assert.strictEqual((yield* Fiber.join(inFlight)).status, 204)
      yield* Fiber.join(closing)
      const late = yield* Effect.exit(Effect.provideService(call("GET", "/v1/current"), Server, server))
      assert.isTrue(Exit.isFailure(late))
    }))

  it.effect("gives up on requests that do not end in five seconds", () =>
    Effect.gen(function* () {
      const { scope, server, slow } = yield* started
      const inFlight = yield* Effect.forkChild(
        Effect.exit(Effect.provideService(call("POST", "/v1/slow"), Server, server)),
      )
      yield* Deferred.await(slow.started)
      const began = performance.now()
      yield* Scope.close(scope, Exit.void)
      assert.isAtLeast(performance.now() - began, 4_900)
      yield* Fiber.join(inFlight)
      assert.isFalse(yield* Deferred.isDone(slow.done))
    }))

  it.effect("answers a read that does not end, and ends streams", () =>
    Effect.gen(function* () {
      const { scope, server, slow } = yield* started
      const inFlight = yield* Effect.forkChild(Effect.provideService(call("GET", "/v1/never"), Server, server))
      const streaming = yield* Effect.promise(() => fetch(`${server.url}/v1/stream`))
      const reader = streaming.body!.getReader()
      const first = yield* Effect.promise(() => reader.read())
      assert.strictEqual(new TextDecoder().decode(first.value), "word\n")
      yield* Deferred.await(slow.started)
      yield* Scope.close(scope, Exit.void).pipe(Effect.timeout("30 seconds"))
      const told = yield* Fiber.join(inFlight)
      assert.deepStrictEqual([told.status, told.json["code"]], [503, "dependency_unavailable"])
      assert.isTrue((yield* Effect.promise(() => reader.read())).done)
    }))

  it.effect("answers with audit_id null where the audit cannot be written", () =>
    Effect.gen(function* () {
      const { scope, server } = yield* started
      const { owner } = yield* Database
      yield* owner`alter table audit_records rename to audit_records_away`
      const reply = yield* Effect.provideService(call("GET", "/v1/defect"), Server, server)
      assert.deepStrictEqual([reply.status, reply.json["code"], reply.json["audit_id"]], [500, "internal", null])
      yield* owner`alter table audit_records_away rename to audit_records`
      yield* Scope.close(scope, Exit.void)
    }))
})
