/**
 * An embedded nats-server with JetStream, where NATS_URL names none: on loopback, with a random token, on files in the
 * home.
 *
 * Guarantees: the server has ended when the scope has closed; a server that a killed program left behind is stopped at
 * the next start. The caller holds the home (Home.open). Messages that the broker may lose are published again from
 * PostgreSQL; after an orderly stop all are on disk, and the next server has the same name (BrokerRun.ts).
 */
import { Effect, Redacted, Schedule } from "effect"
import { randomBytes } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { open } from "node:fs/promises"
import { connect } from "node:net"
import { join } from "node:path"
import { isBrokerRun, newBrokerRun } from "../../services/platform/messaging/Bus/BrokerRun.ts"
import { type Child, dismiss, type Ended, type Farewell, lastLines, serve } from "./ChildProcess.ts"
import { attempting, EmbeddedError } from "./EmbeddedError.ts"
import { prepare, writePrivate } from "./Home.ts"
import { natsBinary, syncsAlways } from "./NatsBinary.ts"
import { ask } from "./NatsProbe.ts"
import { freePort } from "./FreePorts.ts"
import { commandLine, isAlive, stranger } from "./ProcessTable.ts"

/** An account of the server, with its own subjects and streams. */
export interface NatsAccount {
  readonly user: string
  readonly password: string
}

export interface NatsOptions {
  readonly home: string
  /** The port to listen on; a free one is chosen where it is missing. */
  readonly port?: number
  /** Separate accounts instead of the one token; `url` is then without a credential. */
  readonly accounts?: ReadonlyArray<NatsAccount>
  /** Files of a certificate and its key: clients must speak TLS. */
  readonly tls?: { readonly cert: string; readonly key: string }
}

export interface EmbeddedNats {
  /** `nats://TOKEN@127.0.0.1:PORT` */
  readonly url: Redacted.Redacted
  readonly port: number
  readonly pid: number
  /** Completes when the server has ended, for any reason. */
  readonly exited: Effect.Effect<Ended>
  /** Whether the server and its JetStream answer within 5 s. */
  readonly answers: Effect.Effect<boolean>
}

/** SIGTERM flushes and closes the stores; at most 3 s. */
const farewell: Farewell = [["SIGTERM", "2500 millis"], ["SIGKILL", "500 millis"]]

const tokenOf = (home: string) => {
  const file = join(home, "nats.token")
  if (!existsSync(file)) writePrivate(file, randomBytes(24).toString("base64url"))
  return readFileSync(file, "utf8").trim()
}

const credentialOf = (home: string, { accounts }: NatsOptions): Readonly<Record<string, string>> => {
  const [account] = accounts ?? []
  return account === undefined ? { auth_token: tokenOf(home) } : { user: account.user, pass: account.password }
}

interface Settings extends NatsOptions {
  readonly port: number
  readonly token: string
  /** The server's name. */
  readonly run: string
  readonly sync: boolean
}

const settings = (folder: string, { accounts, port, run, sync, tls, token }: Settings) =>
  [
    `server_name: "${run}"`,
    `listen: "127.0.0.1:${port}"`,
    `pid_file: ${JSON.stringify(join(folder, "pid"))}`,
    `max_payload: 1MB`,
    `jetstream { store_dir: ${JSON.stringify(folder)}${sync ? ", sync_interval: always" : ""} }`,
    ...(tls === undefined
      ? []
      : [`tls { cert_file: ${JSON.stringify(tls.cert)}, key_file: ${JSON.stringify(tls.key)}, timeout: 15 }`]),
    // The default of 2 s drops clients while a machine is busy with starting.
    ...(accounts === undefined ? [`authorization { token: "${token}", timeout: 15 }`] : [
      `authorization { timeout: 15 }`,
      `accounts {`,
      ...accounts.map(({ user, password }) =>
        `  ${user} { jetstream: enabled, users: [{ user: "${user}", password: "${password}" }] }`
      ),
      `}`,
    ]),
  ].join("\n")

const clear = Effect.fnUntraced(function* (folder: string, conf: string) {
  const file = join(folder, "pid")
  const pid = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0
  if (pid > 0 && isAlive(pid)) {
    const line = yield* commandLine(pid)
    if (line !== null && line.includes("nats-server") && line.includes(conf)) yield* dismiss(stranger(pid), farewell)
  }
  rmSync(file, { force: true })
})

/** Stops the server that a killed program left running in a home that no process holds. */
export const clearHome = (home: string) => clear(join(home, "nats"), join(home, "nats", "nats.conf"))

/**
 * nats-server greets clients once its streams are restored; the pid file shows that the greeting is from this server.
 */
const greeted = (port: number) =>
  Effect.callback<void, string>((resume) => {
    const socket = connect({ port, host: "127.0.0.1" })
    socket.once("data", (chunk) => resume(String(chunk).startsWith("INFO ") ? Effect.void : Effect.fail("not NATS")))
    socket.once("error", () => resume(Effect.fail("not yet")))
    socket.once("close", () => resume(Effect.fail("closed")))
    return Effect.sync(() => socket.destroy())
  })

const ready = (folder: string, port: number, pid: number) =>
  Effect.suspend(() => {
    const file = join(folder, "pid")
    return existsSync(file) && Number(readFileSync(file, "utf8")) === pid ? greeted(port) : Effect.fail("starting")
  }).pipe(Effect.retry(Schedule.spaced("5 millis")), Effect.orDie)

class Refused extends EmbeddedError {}

/** The file that an orderly stop leaves: the name of the server that stopped. */
const stopped = (folder: string) => join(folder, "stopped")

/** Syncs a file, or a folder's list of names. */
const syncPath = async (path: string) => {
  const file = await open(path, "r")
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Syncs every file of a folder, and the folder itself: nats-server closes its files without. */
const synced = async (folder: string, signal: AbortSignal) => {
  const below = readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((one) => one.isFile() || one.isDirectory()).map((one) => join(one.parentPath, one.name))
  for (const path of [...below, folder]) {
    signal.throwIfAborted()
    await syncPath(path)
  }
}

/** The name of the next server; a name serves once, so that a crash leaves none behind. */
const nextRun = (folder: string): Effect.Effect<string> => {
  const file = stopped(folder)
  const kept = existsSync(file) ? readFileSync(file, "utf8") : ""
  rmSync(file, { force: true })
  // A power failure would otherwise bring the name back, beside messages that it took.
  return Effect.tryPromise(() => syncPath(folder)).pipe(
    Effect.match({ onSuccess: () => isBrokerRun(kept) ? kept : newBrokerRun(), onFailure: newBrokerRun }),
  )
}

/** Leaves the name where the server said goodbye and its files are on disk; without it the stop counts as a crash. */
const leave = Effect.fnUntraced(
  function* (child: Child, folder: string, log: string, run: string) {
    const { signal } = yield* child.exited
    if (signal !== null || !readFileSync(log, "utf8").trimEnd().endsWith("Server Exiting..")) return
    yield* Effect.tryPromise((aborted) => synced(join(folder, "jetstream"), aborted))
    writePrivate(stopped(folder), run)
  },
  Effect.timeout("2 seconds"),
  (leaving) => Effect.ignoreCause(leaving),
)

interface Launch extends NatsOptions {
  readonly program: string
  readonly port: number
  readonly run: string
}

const launch = Effect.fnUntraced(function* (options: Launch) {
  const { home, port, program, run } = options
  const folder = join(home, "nats")
  const conf = join(folder, "nats.conf")
  const log = join(home, "nats.log")
  yield* clear(folder, conf)
  const sync = yield* syncsAlways(program)
  writePrivate(conf, settings(folder, { ...options, token: tokenOf(home), sync }))
  let served: Child | null = null
  // Added first, so it runs last: when the server has ended.
  yield* Effect.addFinalizer(() => served === null ? Effect.void : leave(served, folder, log, run))
  const child = served = yield* serve({ file: program, args: ["-c", conf], cwd: folder }, log, farewell)
  const failed = Effect.flatMap(child.exited, () => {
    const output = lastLines(readFileSync(log, "utf8"))
    const fault = { message: `nats-server did not start, ${log} says: ${output}` }
    return Effect.fail(/in use/.test(output) ? new Refused(fault) : new EmbeddedError(fault))
  })
  yield* Effect.raceFirst(ready(folder, port, child.pid), failed)
  return child
})

/**
 * Starts nats-server on `<home>/nats` and returns its address once it accepts connections; stopped when the scope
 * closes.
 */
export const start = Effect.fn("EmbeddedNats.start")(function* (options: NatsOptions) {
  const home = yield* prepare(options.home)
  const program = yield* natsBinary(home)
  yield* Effect.try({
    try: () => mkdirSync(join(home, "nats"), { recursive: true, mode: 0o700 }),
    catch: attempting("cannot make the broker's folder"),
  })
  const run = yield* nextRun(join(home, "nats"))
  const attempt = Effect.gen(function* () {
    const port = options.port ?? (yield* freePort())
    return { port, child: yield* launch({ ...options, home, program, port, run }) }
  })
  const { port, child } = yield* attempt.pipe(
    Effect.retry({
      schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "10 seconds" })),
      while: (error) => error instanceof Refused,
    }),
    Effect.timeoutOrElse({
      duration: "2 minutes",
      orElse: () => Effect.fail(new EmbeddedError({ message: "nats-server did not restore its streams in 2 minutes" })),
    }),
  )
  const credential = options.accounts === undefined ? `${tokenOf(home)}@` : ""
  return {
    url: Redacted.make(`nats://${credential}127.0.0.1:${port}`),
    port,
    pid: child.pid,
    exited: child.exited,
    answers: Effect.map(
      ask({ host: "127.0.0.1", port, deadlineMillis: 5_000, credential: credentialOf(home, options) }),
      (answer) => answer === "answers",
    ),
  } satisfies EmbeddedNats
})
