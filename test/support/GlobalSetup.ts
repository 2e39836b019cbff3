/**
 * One PostgreSQL and one nats-server for the whole run, in a folder that is deleted at its end. Each test file takes a
 * database and a broker account of its own (TestDatabase, TestBus), so files share nothing and run side by side.
 */
import "../../src/process/HideAsyncHooks.ts"
import { Effect, Exit, Redacted, Scope } from "effect"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync } from "node:fs"
import { freemem, tmpdir } from "node:os"
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
    /** Whether the run may keep its folder in memory; from the configuration. */
    readonly inMemory: boolean
    /** A folder of this run; `accounts/N` exists for each broker account that was given out. */
    readonly runFolder: string
  }
}

const natsAccounts = 512
const prefix = "bailiwick-test-run-"
const memory = "/dev/shm"
const gigabyte = 2 ** 30

/**
 * Where the run's folder goes. Copying and dropping a database of 800 files took 0.2 s of processor time on ext4 and
 * 0.03 s in memory. A run held at most 0.4 GB at once; small memory file systems, as in containers, are left alone.
 */
const newFolder = (inMemory: boolean) => {
  if (!inMemory || !existsSync(memory)) return tmpdir()
  const { bavail, bsize } = statfsSync(memory)
  return bavail * bsize >= 2 * gigabyte && freemem() >= 4 * gigabyte ? memory : tmpdir()
}

/** A run that begins holds its folder within moments: until then it may not be taken for a leftover. */
const begins = (home: string) => Date.now() - statSync(home).mtimeMs < 60_000

const leftovers = () =>
  [tmpdir(), memory].filter((parent) => existsSync(parent)).flatMap((parent) =>
    readdirSync(parent).filter((name) => name.startsWith(prefix)).map((name) => join(parent, name))
  )

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
  for (const home of leftovers()) {
    if ((yield* Home.holder(home))._tag === "Some" || begins(home)) continue
    yield* clearPrograms(home)
    yield* clearServers(home)
    rmSync(home, { recursive: true, force: true })
  }
})

const start = Effect.fnUntraced(function* (parent: string) {
  yield* Effect.ignore(sweep)
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(parent, prefix))),
    (folder) =>
      clearPrograms(folder).pipe(
        // The helpers of an ended browser may still write for a moment.
        Effect.andThen(Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))),
      ),
  )
  const home = yield* Home.open(folder)
  for (const folder of ["accounts", "keys"]) mkdirSync(join(home, folder))
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
  const parent = newFolder(project.config.provide.inMemory === true)
  const { home, natsPassword, postgres, nats } = await Effect.runPromise(Scope.provide(start(parent), scope)).catch(
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
  // Read by files that also run without this set-up, and then make keys of their own.
  process.env["TEST_RSA_KEYS"] = join(home, "keys")
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
