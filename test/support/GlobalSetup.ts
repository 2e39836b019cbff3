/**
 * One PostgreSQL and one nats-server for the whole run, in a folder that is deleted at its end. Each test file takes a
 * database and a broker account of its own (TestDatabase, TestBus), so files share nothing and run side by side.
 */
import "../../src/process/HideAsyncHooks.ts"
import { Effect, Exit, Redacted, Scope } from "effect"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import type { TestProject } from "vitest/node"
import { signal } from "../../src/embedded/ChildProcess.ts"
import * as EmbeddedNats from "../../src/embedded/EmbeddedNats.ts"
import * as EmbeddedPostgres from "../../src/embedded/EmbeddedPostgres.ts"
import * as Home from "../../src/embedded/Home.ts"
import { startOf } from "../../src/embedded/ProcessTable.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** Addresses, for the superuser and the program, of the database that tests copy and never use. */
    readonly postgresOwnerUrl: string
    readonly postgresAppUrl: string
    readonly natsPort: number
    readonly natsPassword: string
    readonly natsAccounts: number
    /** A folder of this run; `accounts/N` exists for each broker account that was given out. */
    readonly runFolder: string
  }
}

const natsAccounts = 512

/** Ends programs of tests whose worker was killed, and servers that they left in their homes. */
const clearPrograms = Effect.fnUntraced(function* (home: string) {
  const processes = join(home, "processes")
  for (const name of existsSync(processes) ? readdirSync(processes) : []) {
    const pid = Number(name)
    if ((yield* startOf(pid)) === readFileSync(join(processes, name), "utf8")) signal(pid, "SIGKILL")
  }
  const homes = join(home, "homes")
  for (const name of existsSync(homes) ? readdirSync(homes) : []) yield* clearServers(join(homes, name))
})

const clearServers = (home: string) => Effect.andThen(EmbeddedPostgres.clearHome(home), EmbeddedNats.clearHome(home))

/** Stops servers of a killed run, which nothing else would stop; a live run's servers hold a lock. */
const sweep = Effect.gen(function* () {
  for (const name of readdirSync(tmpdir()).filter((name) => name.startsWith("bailiwick-test-run-"))) {
    const home = join(tmpdir(), name)
    if ((yield* Home.holder(home))._tag === "Some") continue
    yield* clearPrograms(home)
    yield* clearServers(home)
    rmSync(home, { recursive: true, force: true })
  }
})

const start = Effect.gen(function* () {
  yield* Effect.ignore(sweep)
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-test-run-"))),
    (folder) =>
      clearPrograms(folder).pipe(
        // The helpers of an ended browser may still write for a moment.
        Effect.andThen(Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))),
      ),
  )
  const home = yield* Home.open(folder)
  mkdirSync(join(home, "accounts"))
  const natsPassword = crypto.randomUUID()
  const accounts = Array.from({ length: natsAccounts }, (_, n) => ({ user: `t${n}`, password: natsPassword }))
  const [postgres, nats] = yield* Effect.all([
    EmbeddedPostgres.start({ home, throwaway: true }),
    EmbeddedNats.start({ home, accounts }),
  ], { concurrency: 2 })
  return { home, natsPassword, postgres, nats }
})

export default async function setup(project: TestProject) {
  const scope = Effect.runSync(Scope.make())
  const { home, natsPassword, postgres, nats } = await Effect.runPromise(Scope.provide(start, scope)).catch(
    async (error) => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      throw error
    },
  )
  project.provide("postgresOwnerUrl", Redacted.value(postgres.ownerUrl))
  project.provide("postgresAppUrl", Redacted.value(postgres.appUrl))
  project.provide("natsPort", nats.port)
  project.provide("natsPassword", natsPassword)
  project.provide("natsAccounts", natsAccounts)
  project.provide("runFolder", home)
  // For a run that is cut off before its teardown: only synchronous calls are possible then.
  const cutOff = () => {
    for (const pid of [postgres.pid, nats.pid]) signal(pid, "SIGQUIT")
    rmSync(home, { recursive: true, force: true })
  }
  process.once("exit", cutOff)
  return async () => {
    process.off("exit", cutOff)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
