/**
 * The data folder of the embedded PostgreSQL: its path, its permissions, and how it is made.
 *
 * It is `<home>/postgres`. Only where root starts the program and the server's user cannot reach the home (below /root,
 * say) it is a folder outside of the home, which `postgres.json` names (it outlives a home that is removed by hand;
 * `cli reset` removes both). A data folder is made under another name, with roles and database, and renamed when
 * complete: a kill half-way leaves no folder that a later start would take for data.
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
import { run } from "./ChildProcess.ts"
import { EmbeddedError } from "./EmbeddedError.ts"
import { writePrivate } from "./Home.ts"
import { sharedFolder } from "./SharedFolders.ts"
import { type PostgresBinaries, postgresBinaries } from "./PostgresBinaries.ts"
import { canEnter, serverUser } from "./PostgresUser.ts"
import type { ServerUser } from "./ServerUser.ts"

export const owner = "bailiwick_owner"
export const app = "bailiwick_app"
export const database = "bailiwick"

const Placement = Schema.Struct({ data: Schema.String, ownerPassword: Schema.String, appPassword: Schema.String })

export interface PostgresData extends Schema.Schema.Type<typeof Placement> {
  readonly binaries: PostgresBinaries
  readonly user: ServerUser | undefined
}

const placementIn = (home: string) =>
  Effect.try(() => readFileSync(join(home, "postgres.json"), "utf8")).pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Schema.fromJsonString(Placement))),
    Effect.option,
  )

/** The data folder of a home that was used before. */
export const locate = (home: string) => Effect.map(placementIn(home), Option.map(({ data }) => data))

/** Lets the server's user pass through the home, where that suffices to reach the data folder. */
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

const choosePlacement = Effect.fnUntraced(function* (home: string) {
  const file = join(home, "postgres.json")
  const inside = join(home, "postgres")
  const known = yield* placementIn(home)
  if (Option.isNone(known) && existsSync(inside)) {
    return yield* new EmbeddedError({ message: `${file} holds the passwords of ${inside} and cannot be read` })
  }
  // A reset that was killed half-way leaves the folder without the data.
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
    yield* Effect.logWarning(`${known.value.data} is gone: an empty database takes its prepared`)
  }
  const secret = () => randomBytes(24).toString("base64url")
  const placement = {
    ...Option.getOrElse(known, () => ({ ownerPassword: secret(), appPassword: secret() })),
    data,
  }
  writePrivate(file, JSON.stringify(placement))
  return { placement, user }
})

const create = Effect.fnUntraced(
  function* (prepared: PostgresData, throwaway: boolean, underway: Effect.Effect<unknown>) {
    const { binaries, data, user } = prepared
    if (!throwaway) yield* Effect.logInfo(`making the database in ${data}, once for this home`)
    const base = dirname(data)
    mkdirSync(base, { recursive: true, mode: 0o711 })
    for (const name of readdirSync(base)) {
      if (/^postgres\.(new|old)-/.test(name)) rmSync(join(base, name), { recursive: true, force: true })
    }
    const work = join(base, `postgres.new-${randomBytes(6).toString("hex")}`)
    const password = join(work, "password")
    mkdirSync(work, { mode: 0o700 })
    writeFileSync(password, prepared.ownerPassword, { mode: 0o600 })
    if (user !== undefined) { for (const path of [work, password]) chownSync(path, user.uid, user.gid) }
    const fresh = join(work, "data")
    const flags = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    // Hashing a password 4,096 times costs each connection milliseconds, and is needless: these have 192 random bits.
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
    // Takes over the database `postgres`, which initdb makes and no program would use: another one would be 300 more
    // files to write.
    const statements = [
      `create role ${app} login password '${prepared.appPassword}'`,
      `alter database postgres rename to ${database}`,
      `comment on database ${database} is null`,
    ].map((statement) => `${statement}\n`).join("")
    const single = ["--single", "-D", fresh, ...(throwaway ? ["-F"] : []), "template1"]
    const answer = yield* run({ file: binaries.postgres, args: single, cwd: work, user }, statements)
    // The single-user server reports a failed statement and goes on.
    if (/ERROR|FATAL/.test(answer)) return yield* new EmbeddedError({ message: `cannot make the database: ${answer}` })
    renameSync(fresh, data)
    rmSync(work, { recursive: true })
  },
)

/** Finds the data folder of this home, makes it where it is missing, and returns what a server needs to run on it. */
export const postgresData = Effect.fn("PostgresData.find")(function* (
  home: string,
  throwaway: boolean,
  underway: Effect.Effect<unknown> = Effect.void,
) {
  const { placement, user } = yield* choosePlacement(home)
  const binaries = yield* postgresBinaries(user)
  const prepared: PostgresData = { ...placement, binaries, user }
  if (!existsSync(prepared.data)) yield* create(prepared, throwaway, underway)
  const major = readFileSync(join(prepared.data, "PG_VERSION"), "utf8").trim()
  if (major === binaries.major) return prepared
  return yield* new EmbeddedError({
    message:
      `${prepared.data} was made by PostgreSQL ${major}, this one is ${binaries.major}: dump it there and restore it here`,
  })
})
