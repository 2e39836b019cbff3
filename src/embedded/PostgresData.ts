/**
 * The data folder of the embedded PostgreSQL: where it lies, who may enter, and how it comes to be.
 *
 * It is `<home>/postgres`. Only where root starts the program and the server's user cannot reach the home (it lies
 * below /root, say) it is a folder of its own outside, which `postgres.json` then names (it outlives a home that is
 * removed by hand; `cli reset` removes both). A data folder is made beside its place, with roles and database, and
 * renamed when complete: a kill half-way leaves nothing that a later start would trust.
 */
import { Effect, Option, Schema } from "effect"
import { randomBytes } from "node:crypto"
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import process from "node:process"
import { run } from "./Children.ts"
import { EmbeddedError } from "./EmbeddedError.ts"
import { writePrivate } from "./Home.ts"
import { sharedFolder } from "./Places.ts"
import { type PostgresBinaries, postgresBinaries } from "./PostgresBinaries.ts"
import { canEnter, serverUser } from "./PostgresUser.ts"
import type { ServerUser } from "./ServerUser.ts"

export const owner = "bailiwick_owner"
export const app = "bailiwick_app"
export const database = "bailiwick"

const Settled = Schema.Struct({ data: Schema.String, ownerPassword: Schema.String, appPassword: Schema.String })

export interface PostgresData extends Schema.Schema.Type<typeof Settled> {
  readonly binaries: PostgresBinaries
  readonly user: ServerUser | undefined
}

const settledIn = (home: string) =>
  Effect.try(() => readFileSync(join(home, "postgres.json"), "utf8")).pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Schema.fromJsonString(Settled))),
    Effect.option,
  )

/** The data folder of a home that was used before. */
export const locate = (home: string) => Effect.map(settledIn(home), Option.map(({ data }) => data))

/** Lets the server's user pass through the home, where that suffices for it to reach its folder. */
const admit = Effect.fnUntraced(function* (home: string, user: ServerUser | undefined) {
  if (user === undefined || (yield* canEnter(user, home))) return true
  if (statSync(home).uid !== process.getuid?.()) return false
  const group = statSync(home).gid
  chownSync(home, 0, user.gid)
  chmodSync(home, 0o710)
  if (yield* canEnter(user, home)) return true
  chmodSync(home, 0o700)
  chownSync(home, 0, group)
  return false
})

const settle = Effect.fnUntraced(function* (home: string) {
  const file = join(home, "postgres.json")
  const inside = join(home, "postgres")
  const known = yield* settledIn(home)
  if (Option.isNone(known) && existsSync(inside)) {
    return yield* new EmbeddedError({ message: `${file} holds the passwords of ${inside} and cannot be read` })
  }
  // Where a reset was killed half-way, the folder is there and the data are not.
  const before = Option.filter(known, ({ data }) => data !== inside && existsSync(dirname(data)))
  const user = yield* serverUser(Option.match(before, { onNone: () => inside, onSome: ({ data }) => data }))
  const elsewhere = Effect.gen(function* () {
    if (existsSync(inside)) {
      return yield* new EmbeddedError({
        message:
          `PostgreSQL runs as user ${user?.uid}, who cannot enter ${home}: move the home, or start as another user`,
      })
    }
    return join(yield* sharedFolder(user), `home-${randomBytes(8).toString("hex")}`, "postgres")
  })
  const data = Option.isSome(before) ? before.value.data : (yield* admit(home, user)) ? inside : yield* elsewhere
  if (Option.isSome(known) && known.value.data !== inside && !existsSync(data)) {
    yield* Effect.logWarning(`${known.value.data} is gone: an empty database takes its place`)
  }
  const secret = () => randomBytes(24).toString("base64url")
  const settled = {
    ...Option.getOrElse(known, () => ({ ownerPassword: secret(), appPassword: secret() })),
    data,
  }
  writePrivate(file, JSON.stringify(settled))
  return { settled, user }
})

const create = Effect.fnUntraced(function* (place: PostgresData, throwaway: boolean, underway: Effect.Effect<unknown>) {
  const { binaries, data, user } = place
  const base = dirname(data)
  mkdirSync(base, { recursive: true, mode: 0o711 })
  for (const name of readdirSync(base)) {
    if (/^postgres\.(new|old)-/.test(name)) rmSync(join(base, name), { recursive: true, force: true })
  }
  const work = join(base, `postgres.new-${randomBytes(6).toString("hex")}`)
  const password = join(work, "password")
  mkdirSync(work, { mode: 0o700 })
  writeFileSync(password, place.ownerPassword, { mode: 0o600 })
  if (user !== undefined) { for (const path of [work, password]) chownSync(path, user.uid, user.gid) }
  const fresh = join(work, "data")
  const flags = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
  // Hashing a password 4,096 times costs each connection milliseconds, for nothing: these have 192 random bits.
  const brief = ["--set=scram_iterations=1", ...(throwaway ? ["--no-sync"] : [])]
  const made = run({
    file: binaries.initdb,
    args: [
      "-D",
      fresh,
      "-U",
      owner,
      "-A",
      "scram-sha-256",
      `--pwfile=${password}`,
      "--no-instructions",
      ...flags,
      ...brief,
    ],
    cwd: work,
    user,
  })
  yield* Effect.all([made, underway], { concurrency: 2 })
  // One that initdb made, and nobody would use, is ours: to make another is to write 300 files more.
  const statements = [
    `create role ${app} login password '${place.appPassword}'`,
    `alter database postgres rename to ${database}`,
    `comment on database ${database} is null`,
  ].map((statement) => `${statement}\n`).join("")
  const single = ["--single", "-D", fresh, ...(throwaway ? ["-F"] : []), "template1"]
  const answer = yield* run({ file: binaries.postgres, args: single, cwd: work, user }, statements)
  // The single-user server reports a failed statement and goes on.
  if (/ERROR|FATAL/.test(answer)) return yield* new EmbeddedError({ message: `cannot make the database: ${answer}` })
  renameSync(fresh, data)
  rmSync(work, { recursive: true })
})

/** Finds the data folder of this home, makes it where there is none, and gives what a server needs to run on it. */
export const postgresData = Effect.fn("PostgresData.find")(function* (
  home: string,
  throwaway: boolean,
  underway: Effect.Effect<unknown> = Effect.void,
) {
  const { settled, user } = yield* settle(home)
  const binaries = yield* postgresBinaries(user)
  const place: PostgresData = { ...settled, binaries, user }
  if (!existsSync(place.data)) yield* create(place, throwaway, underway)
  const major = readFileSync(join(place.data, "PG_VERSION"), "utf8").trim()
  if (major === binaries.major) return place
  return yield* new EmbeddedError({
    message:
      `${place.data} was made by PostgreSQL ${major}, this one is ${binaries.major}: dump it there and restore it here`,
  })
})
