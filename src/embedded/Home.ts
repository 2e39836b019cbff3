/**
 * The data home (`BAILIWICK_HOME`): a folder that no other user reads, held by one running program at a time.
 *
 * `hold.json` names the holder by pid and start time, so that a pid that was reused since, or that of another container
 * on the same volume, is not taken for the holder's. `runtime.json` gives the command line the addresses of the
 * instance; it exists while all of its servers run, and after a SIGKILL until the next start.
 *
 * The mode is 0700. Where PostgreSQL runs as another user (started as root) it is 0710 with that user's group: the
 * server can pass through to its own folder and can neither list the home nor read another file in it (all 0600).
 */
import { Effect, Option, Schema } from "effect"
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join, resolve } from "node:path"
import process from "node:process"
import { atExit } from "./AtExit.ts"
import { attempting, EmbeddedError } from "./EmbeddedError.ts"
import { isAlive, startOf } from "./ProcessTable.ts"

export const Runtime = Schema.Struct({
  pid: Schema.Int,
  http_url: Schema.String,
  /** The public origin; issuers are named after it. */
  public_url: Schema.optionalKey(Schema.String),
  database_url: Schema.String,
  /** Null where the instance has no owner's role. */
  database_owner_url: Schema.NullOr(Schema.String),
  nats_url: Schema.String,
})
export type Runtime = typeof Runtime.Type

const Hold = Schema.Struct({ pid: Schema.Int, started: Schema.NullOr(Schema.String) })

/** Writes a file that this user alone can read, completely or not at all. */
export const writePrivate = (path: string, text: string | Uint8Array) => {
  const unfinished = `${path}.${process.pid}.new`
  try {
    writeFileSync(unfinished, text, { mode: 0o600 })
    renameSync(unfinished, path)
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw error
  }
}

const readJson = <S extends Schema.Decoder<unknown>>(schema: S, path: string) =>
  Effect.try(() => readFileSync(path, "utf8")).pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Schema.fromJsonString(schema))),
    Effect.option,
  )

/** The running program that holds this home, if any. */
export const holder = Effect.fn("Home.holder")(function* (home: string) {
  const hold = yield* readJson(Hold, join(home, "hold.json"))
  if (Option.isNone(hold) || !isAlive(hold.value.pid)) return Option.none()
  return (yield* startOf(hold.value.pid)) === hold.value.started ? hold : Option.none()
})

/** Makes the folder where it is missing, closes it to other users, and returns its absolute path. */
export const prepare = (home: string) =>
  Effect.try({
    try: () => {
      const path = resolve(home)
      mkdirSync(path, { recursive: true, mode: 0o700 })
      const { mode } = statSync(path)
      // Closing a shared folder such as /tmp would lock all other users out.
      if ((mode & 0o1000) !== 0) throw new Error("it is shared by all users, name a folder of its own")
      const admitted = process.getuid?.() === 0 && (mode & 0o777) === 0o710
      if (!admitted) chmodSync(path, 0o700)
      return path
    },
    catch: attempting(`cannot use BAILIWICK_HOME ${home}`),
  })

/** Removes the hold of a program that has ended; never one that was taken meanwhile. */
const release = (file: string, stale: string) => {
  const aside = `${file}.${process.pid}.old`
  try {
    renameSync(file, aside)
    if (readFileSync(aside, "utf8") !== stale) linkSync(aside, file)
    rmSync(aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error
  }
}

const take = (file: string, hold: string) => {
  const mine = `${file}.${process.pid}.new`
  try {
    writeFileSync(mine, hold, { mode: 0o600 })
    linkSync(mine, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    return false
  } finally {
    rmSync(mine, { force: true })
  }
}

const hold = Effect.fnUntraced(function* (path: string) {
  const file = join(path, "hold.json")
  const mine = JSON.stringify({ pid: process.pid, started: yield* startOf(process.pid) })
  const current = existsSync(file) ? readFileSync(file, "utf8") : undefined
  const other = yield* holder(path)
  if (Option.isNone(other)) {
    if (current !== undefined) release(file, current)
    if (take(file, mine)) return file
  }
  const who = Option.match(other, { onNone: () => "another process", onSome: ({ pid }) => `process ${pid}` })
  return yield* new EmbeddedError({
    message: `BAILIWICK_HOME ${path} is in use by ${who}: stop it, or choose another home`,
  })
})

/**
 * Prepares the home and holds it until the scope closes. Fails when another running program holds it: its servers
 * would be taken for leftovers and stopped.
 */
export const open = Effect.fn("Home.open")(function* (home: string) {
  const path = yield* prepare(home)
  yield* Effect.acquireRelease(
    hold(path).pipe(Effect.catchDefect((cause) => Effect.fail(attempting(`cannot hold ${path}`)(cause)))),
    (file) => Effect.sync(() => rmSync(file, { force: true })),
  )
  return path
})

/** Writes `runtime.json` (0600) and removes it when the scope closes. */
export const publish = Effect.fn("Home.publish")(function* (home: string, runtime: Runtime) {
  const file = join(home, "runtime.json")
  yield* Effect.acquireRelease(
    Effect.try({
      try: () => {
        writePrivate(file, `${JSON.stringify(runtime, null, 2)}\n`)
        return atExit(() => rmSync(file, { force: true }))
      },
      catch: attempting(`cannot write ${file}`),
    }),
    (kept) => Effect.andThen(Effect.sync(() => rmSync(file, { force: true })), kept),
  )
})

/** The `runtime.json` of the instance that runs in this home; none where none runs. */
export const running = Effect.fn("Home.running")(function* (home: string) {
  const runtime = yield* readJson(Runtime, join(resolve(home), "runtime.json"))
  const current = yield* holder(resolve(home))
  return Option.filter(runtime, ({ pid }) => Option.isSome(current) && current.value.pid === pid)
})
