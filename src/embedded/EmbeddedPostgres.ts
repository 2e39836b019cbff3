/**
 * An embedded PostgreSQL 18, where DATABASE_URL names none: on loopback, with two roles and random passwords, on data
 * in the home.
 *
 * Guarantees: the server has ended when the scope has closed; committed data survive any kill; a server or a pid file
 * that a killed program left behind is removed at the next start. The caller holds the home (Home.open): a running
 * program's server is never taken for a leftover. TCP alone, since other programs read the address from runtime.json
 * and socket paths are limited to about 100 bytes.
 */
import { Duration, Effect, Option, Redacted, Schedule } from "effect"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { dismiss, type Ended, type Farewell, lastLines, serve } from "./ChildProcess.ts"
import { attempting, EmbeddedError } from "./EmbeddedError.ts"
import { prepare } from "./Home.ts"
import { freePort } from "./FreePorts.ts"
import { commandLine, isAlive, stranger } from "./ProcessTable.ts"
import { app, database, locate, owner, type PostgresData, postgresData } from "./PostgresData.ts"

export interface PostgresOptions {
  readonly home: string
  /** The port to listen on; a free one is chosen where it is missing. */
  readonly port?: number
  /** Faster and not durable: for data that are dropped after the run. */
  readonly throwaway?: boolean
  /** Run as soon as the first child process works, while this program would only wait for it. */
  readonly underway?: Effect.Effect<unknown>
  /** Settings beside those that every server gets. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface EmbeddedPostgres {
  /** The role that owns the tables; superuser. */
  readonly ownerUrl: Redacted.Redacted
  /** The program's own role; owns no table. */
  readonly appUrl: Redacted.Redacted
  readonly port: number
  readonly pid: number
  /** Completes when the server has ended, for any reason. */
  readonly exited: Effect.Effect<Ended>
}

/**
 * Fast shutdown first, then immediate (recovers at the next start): at most 6 s, since the program has 10 s to stop.
 */
const farewell: Farewell = [["SIGINT", "4 seconds"], ["SIGQUIT", "1500 millis"], ["SIGKILL", "500 millis"]]

const settings = (port: number, throwaway: boolean) => ({
  listen_addresses: "127.0.0.1",
  port,
  unix_socket_directories: "",
  shared_buffers: "128MB",
  max_connections: throwaway ? 300 : 100,
  wal_compression: "on",
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_line_prefix: "%m [%p] %u ",
  ...(throwaway
    ? { fsync: "off", full_page_writes: "off", wal_compression: "off", wal_level: "minimal", max_wal_senders: 0 }
    // For passwords that a user chooses later: the random ones of the program's own roles need no slow hash
    // (PostgresData.ts).
    : { scram_iterations: 4096 }),
})

const pidFile = (data: string) => {
  const path = join(data, "postmaster.pid")
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").map((line) => line.trim()) : []
}

/**
 * Stops the server that a killed program left on this data folder, and removes its pid file where the pid now belongs
 * to another process.
 */
const clear = Effect.fnUntraced(function* (data: string) {
  const pid = Number(pidFile(data)[0] ?? 0)
  if (pid <= 0) return
  const line = isAlive(pid) ? yield* commandLine(pid) : ""
  // Where the system does not show command lines, PostgreSQL itself decides.
  if (line === null) return
  if (line.includes("postgres") && line.includes(` -D ${data} `)) yield* dismiss(stranger(pid), farewell)
  rmSync(join(data, "postmaster.pid"), { force: true })
})

/** Stops the server that a killed program left running in a home that no process holds. */
export const clearHome = Effect.fn("EmbeddedPostgres.clearHome")(function* (home: string) {
  const data = yield* locate(home)
  if (Option.isSome(data)) yield* clear(data.value)
})

const ready = (data: string, pid: number) =>
  Effect.suspend(() => {
    const lines = pidFile(data)
    return Number(lines[0]) === pid && lines[7] === "ready" ? Effect.void : Effect.fail("starting")
  }).pipe(Effect.retry(Schedule.spaced("5 millis")), Effect.orDie)

class Refused extends EmbeddedError {}

const launch = Effect.fnUntraced(function* (
  prepared: PostgresData,
  log: string,
  given: Readonly<Record<string, string | number>>,
  underway: Effect.Effect<unknown>,
) {
  yield* clear(prepared.data)
  const args = Object.entries(given).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const command = {
    file: prepared.binaries.postgres,
    args: ["-D", prepared.data, ...args],
    cwd: prepared.data,
    user: prepared.user,
  }
  const child = yield* serve(command, log, farewell)
  yield* underway
  const failed = Effect.flatMap(child.exited, () => {
    const output = lastLines(readFileSync(log, "utf8"))
    const passing = /in use|could not bind|lock file|could not create any TCP/.test(output)
    const fault = { message: `PostgreSQL did not start, ${log} says: ${output}` }
    return Effect.fail(passing ? new Refused(fault) : new EmbeddedError(fault))
  })
  yield* Effect.raceFirst(ready(prepared.data, child.pid), failed)
  return child
})

/**
 * Starts PostgreSQL on `<home>/postgres`, made first where it is missing, and returns its addresses once it accepts
 * connections; it is stopped when the scope closes. Where another program took the port, or the last process of an old
 * server is still ending, it is tried again for 10 s.
 */
export const start = Effect.fn("EmbeddedPostgres.start")(function* (options: PostgresOptions) {
  const home = yield* prepare(options.home)
  const throwaway = options.throwaway ?? false
  const prepared = yield* postgresData(home, throwaway, options.underway).pipe(
    Effect.catchDefect((cause) => Effect.fail(attempting("cannot prepare PostgreSQL's data")(cause))),
  )
  const attempt = Effect.gen(function* () {
    const port = options.port ?? (yield* freePort())
    const given = { ...settings(port, throwaway), ...options.settings }
    return { port, child: yield* launch(prepared, join(home, "postgres.log"), given, options.underway ?? Effect.void) }
  })
  const { port, child } = yield* attempt.pipe(
    Effect.retry({
      schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: Duration.seconds(10) })),
      while: (error) => error instanceof Refused,
    }),
    Effect.timeoutOrElse({
      duration: "5 minutes",
      orElse: () => Effect.fail(new EmbeddedError({ message: "PostgreSQL did not recover its data within 5 minutes" })),
    }),
  )
  const url = (role: string, password: string) =>
    Redacted.make(`postgres://${role}:${password}@127.0.0.1:${port}/${database}`)
  return {
    ownerUrl: url(owner, prepared.ownerPassword),
    appUrl: url(app, prepared.appPassword),
    port,
    pid: child.pid,
    exited: child.exited,
  } satisfies EmbeddedPostgres
})
