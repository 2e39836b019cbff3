/** A PostgreSQL for one test alone, which may be killed and started again on its files. */
import { Effect, Exit, Option, type Redacted, Scope } from "effect"
import { appendFileSync, chownSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import * as EmbeddedPostgres from "../../src/embedded/EmbeddedPostgres.ts"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { locate } from "../../src/embedded/PostgresData.ts"
import { home as emptyHome } from "./Processes.ts"

export interface OwnPostgres {
  readonly url: Redacted.Redacted
  readonly ownerUrl: Redacted.Redacted
  readonly start: Effect.Effect<void>
  /** SIGKILL, and wait for its end. */
  readonly kill: Effect.Effect<void>
  /** After `kill`: makes the next start that of a promoted standby, with the same rows on another timeline. */
  readonly promote: Effect.Effect<void>
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
  const promote = Effect.gen(function* () {
    const data = Option.getOrThrow(yield* locate(home))
    const { gid, uid } = statSync(data)
    const signal = join(data, "recovery.signal")
    writeFileSync(signal, "")
    chownSync(signal, uid, gid)
    appendFileSync(join(data, "postgresql.auto.conf"), "restore_command = 'false'\n")
  })
  return { url: appUrl, ownerUrl, start: Effect.asVoid(launch), kill, promote }
})
