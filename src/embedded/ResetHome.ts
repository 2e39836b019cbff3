/**
 * Removes this program's data from a home, and the embedded PostgreSQL's data outside of it (PostgresData). The caller
 * holds the home (Home.open). A reset that was killed can be run again. A start in between finds an empty database,
 * never a part of one: a data folder is renamed before it is removed, and its passwords go last.
 */
import { Effect, Option } from "effect"
import { randomBytes } from "node:crypto"
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { attempting, EmbeddedError } from "./EmbeddedError.ts"
import * as EmbeddedNats from "./EmbeddedNats.ts"
import * as EmbeddedPostgres from "./EmbeddedPostgres.ts"
import { locate } from "./PostgresData.ts"

export interface What {
  /** PostgreSQL's data alone: the broker's streams, the demo's files and the mails stay. */
  readonly database: boolean
  /** The key ring, too. */
  readonly keys: boolean
}

const ofDatabase = /^postgres(\.(log(\.\d+)?|json|(new|old)-[0-9a-f]+))?$/
const ofKeys = /^keys\.json(\.|$)/
/** Files that a start makes, with the remains of a start that was killed while it wrote. */
const others =
  /^(nats|nats\.token|nats\.log(\.\d+)?|nats-server|mailbox|(demo|issuer-key|runtime)\.json|apt-.{6}|[a-z.-]+\.\d+\.(new|old))$/

/** The names in the home that would be removed; the user's own files are not among them. */
const namesOf = (home: string, { database, keys }: What) =>
  readdirSync(home).filter((name) =>
    ofDatabase.test(name) ||
    !database && (ofKeys.test(name) ? keys : others.test(name) && !name.startsWith("hold.json"))
  ).sort()

/** The folder outside of the home in which PostgreSQL has its data; fails where this program did not make it. */
const outside = Effect.fnUntraced(function* (home: string) {
  const data = Option.getOrNull(yield* locate(home))
  if (data === null || data === join(home, "postgres")) return null
  if (basename(data) === "postgres" && /^home-[0-9a-f]{16}$/.test(basename(dirname(data)))) return dirname(data)
  return yield* new EmbeddedError({
    message: `${join(home, "postgres.json")} names ${data}, a folder that no start made: remove both yourself`,
  })
})

/** Every path that `remove` removes. */
export const found = Effect.fn("Reset.found")(function* (home: string, what: What) {
  if (!existsSync(home)) return []
  const elsewhere = yield* outside(home)
  const names = namesOf(home, what).map((name) => join(home, name))
  return elsewhere !== null && existsSync(elsewhere) ? [elsewhere, ...names] : names
})

/** Renames a data folder, so that no start takes it for data. */
const putAside = (data: string) => {
  if (existsSync(data)) renameSync(data, join(dirname(data), `postgres.old-${randomBytes(6).toString("hex")}`))
}

const removed = (path: string) => rmSync(path, { recursive: true, force: true })

/** Stops servers that a killed program left running, and removes all of these paths. */
export const remove = Effect.fn("Reset.remove")(function* (home: string, what: What) {
  const elsewhere = yield* outside(home)
  yield* EmbeddedPostgres.clearHome(home)
  if (!what.database) yield* EmbeddedNats.clearHome(home)
  yield* Effect.try({
    try: () => {
      for (const folder of elsewhere === null ? [home] : [home, elsewhere]) putAside(join(folder, "postgres"))
      if (elsewhere !== null) removed(elsewhere)
      const last = "postgres.json"
      for (const name of namesOf(home, what)) if (name !== last) removed(join(home, name))
      removed(join(home, last))
    },
    catch: attempting(`cannot remove all of ${home}`),
  })
})
