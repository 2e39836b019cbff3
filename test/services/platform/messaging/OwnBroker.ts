/** A broker for one test alone, which may be killed and started again, with its files or without. */
import { Effect, Exit, Redacted, Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import * as EmbeddedNats from "../../../../src/embedded/EmbeddedNats.ts"
import { freePort } from "../../../../src/embedded/FreePorts.ts"

export interface OwnBroker {
  readonly url: Redacted.Redacted
  readonly start: Effect.Effect<void>
  /** An orderly stop. */
  readonly stop: Effect.Effect<void>
  /** SIGKILL, and wait for its end. */
  readonly kill: Effect.Effect<void>
  /** Deletes all its data; between `kill` and `start`. */
  readonly wipe: Effect.Effect<void>
}

/** Not started yet. */
export const brokerWith = Effect.fnUntraced(function* (
  options: Pick<EmbeddedNats.NatsOptions, "tls">,
): Effect.fn.Return<OwnBroker, never, Scope.Scope> {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-broker-"))),
    (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true })),
  )
  const port = yield* Effect.orDie(freePort())
  let running: { readonly scope: Scope.Closeable; readonly server: EmbeddedNats.EmbeddedNats } | null = null

  const start = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const server = yield* EmbeddedNats.start({ home, port, ...options }).pipe(Scope.provide(scope), Effect.orDie)
    running = { scope, server }
  })
  const kill = Effect.suspend(() => {
    if (running === null) return Effect.void
    const { scope, server } = running
    running = null
    process.kill(server.pid, "SIGKILL")
    return Effect.andThen(server.exited, Scope.close(scope, Exit.void))
  })
  const stop = Effect.suspend(() => {
    if (running === null) return Effect.void
    const { scope } = running
    running = null
    return Scope.close(scope, Exit.void)
  })
  yield* Effect.addFinalizer(() => kill)
  // The first start makes the token, which every later start keeps.
  yield* start
  const url = running!.server.url
  yield* kill
  const wipe = Effect.sync(() => rmSync(join(home, "nats"), { recursive: true, force: true }))
  yield* wipe
  return { url, start, stop, kill, wipe }
})

export const ownBroker = brokerWith({})
