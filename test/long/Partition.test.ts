/** A network that swallows whatever is sent to the database: connections stand, and nothing is ever answered. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { until } from "../e2e/support/until.ts"
import { world } from "../e2e/support/World.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

/** The way to a database; `cut` lets nothing through any more, in either direction. */
const relay = (to: URL) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly cut: () => void; readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      let whole = true
      const server = createServer((near) => {
        sockets.add(near.on("error", () => {}))
        if (!whole) return
        const far = connect(Number(to.port), to.hostname)
        sockets.add(far.on("error", () => {}))
        near.on("data", (bytes) => whole && far.write(bytes)).on("close", () => far.destroy())
        far.on("data", (bytes) => whole && near.write(bytes)).on("close", () => near.destroy())
      })
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({
          port: (server.address() as AddressInfo).port,
          cut: () => void (whole = false),
          close: () => {
            server.close()
            for (const socket of sockets) socket.destroy()
          },
        })))
    }),
    ({ close }) => Effect.sync(close),
  )

describe("a database that does not answer", () => {
  it.live("does not keep a process that was asked to end", () =>
    Effect.gen(function* () {
      const made = yield* TestDatabase.make
      const way = yield* relay(new URL(Redacted.value(made.url)))
      const by = (address: Redacted.Redacted) => {
        const url = new URL(Redacted.value(address))
        url.port = String(way.port)
        return Redacted.make(url.href)
      }
      const { api, instance } = yield* world({}, { database: { url: by(made.url), ownerUrl: by(made.ownerUrl) } })
      way.cut()
      yield* until("not ready", api.get("/ready"), ({ json }) => json.status === "not_ready")
      assert.strictEqual(yield* instance.end("SIGTERM"), 1)
    }).pipe(Effect.scoped), 240_000)
})
