/** A network that swallows everything sent to the database: connections stay open without any answer. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { until } from "../e2e/support/Until.ts"
import { fixture } from "../e2e/support/ProgramFixture.ts"
import { relay } from "../support/TcpRelay.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

const apart = Effect.gen(function* () {
  const made = yield* TestDatabase.make
  const way = yield* relay(new URL(Redacted.value(made.url)))
  const by = (address: Redacted.Redacted) => {
    const url = new URL(Redacted.value(address))
    url.port = String(way.port)
    return Redacted.make(url.href)
  }
  const around = yield* fixture({}, { database: { url: by(made.url), ownerUrl: by(made.ownerUrl) } })
  return { ...around, way }
})

describe.concurrent("a database that does not answer", () => {
  it.live("does not keep a process from stopping", () =>
    Effect.gen(function* () {
      const { api, instance, way } = yield* apart
      way.cut()
      yield* until("not ready", api.get("/ready"), ({ json }) => json.status === "not_ready")
      // It ends once every wait has reached its bound, or by the shutdown timeout on a slow machine.
      assert.include([0, 1], yield* instance.end("SIGTERM"))
    }).pipe(Effect.scoped), 240_000)

  it.live(
    "gives requests a 503, and is used again once it answers",
    () =>
      Effect.gen(function* () {
        const { account, way } = yield* apart
        const { api } = yield* account()
        way.cut()
        const post = api.post("/v1/webhooks/", { url: "https://127.0.0.1:1/", events: ["email.sent"] })
        const replies = yield* Effect.all([api.get("/v1/webhooks/"), post], { concurrency: "unbounded" })
        assert.deepStrictEqual(replies.map(({ json, status }) => [status, json.code]), [
          [503, "dependency_unavailable"],
          [503, "dependency_unavailable"],
        ])
        way.mend()
        yield* until("a list", api.get("/v1/webhooks/"), ({ status }) => status === 200, 60)
        yield* until("ready", api.get("/ready"), ({ json }) => json.status === "ready", 60)
      }).pipe(Effect.scoped),
    240_000,
  )
})
