/** A PostgreSQL for one test alone, that may be killed and started again on its files. */
import { Effect, Exit, type Redacted, Scope } from "effect"
import process from "node:process"
import * as EmbeddedPostgres from "../../src/embedded/EmbeddedPostgres.ts"
import { freePort } from "../../src/embedded/Ports.ts"
import { home as emptyHome } from "./Processes.ts"

export interface OwnPostgres {
  readonly url: Redacted.Redacted
  readonly ownerUrl: Redacted.Redacted
  readonly start: Effect.Effect<void>
  /** SIGKILL, and wait until it is gone. */
  readonly kill: Effect.Effect<void>
}

/** Started, durable, with an empty database. */
export const ownPostgres: Effect.Effect<OwnPostgres, never, Scope.Scope> = Effect.gen(function* () {
  const home = yield* emptyHome
  const port = yield* Effect.orDie(freePort())
  let running: { readonly scope: Scope.Closeable; readonly server: EmbeddedPostgres.EmbeddedPostgres } | null = null

  const launch = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const server = yield* EmbeddedPostgres.start({ home, port }).pipe(Scope.provide(scope), Effect.orDie)
    running = { scope, server }
    return server
  })
  const kill = Effect.suspend(() => {
    if (running === null) return Effect.void
    const { scope, server } = running
    running = null
    process.kill(server.pid, "SIGKILL")
    return Effect.andThen(server.exited, Scope.close(scope, Exit.void))
  })
  yield* Effect.addFinalizer(() => kill)
  const { appUrl, ownerUrl } = yield* launch
  return { url: appUrl, ownerUrl, start: Effect.asVoid(launch), kill }
})
