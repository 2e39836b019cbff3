/**
 * Removes what this program keeps in a home, and what the embedded PostgreSQL keeps for it elsewhere (PostgresData). The
 * caller holds the home (Home.open). Killed at any moment it can be run again; a start instead of that finds an empty
 * database, never a part of one: a data folder is renamed before it is removed, and its passwords go last.
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
  /** PostgreSQL's data alone; what the broker has told stays, and the demo's files, and mail. */
  readonly database: boolean
  /** The key ring, too. */
  readonly keys: boolean
}

const ofDatabase = /^postgres(\.(log(\.\d+)?|json|(new|old)-[0-9a-f]+))?$/
const ofKeys = /^keys\.json(\.|$)/
/** What a start makes, also what one left that was killed while it wrote. */
const others =
  /^(nats|nats\.token|nats\.log(\.\d+)?|nats-server|mailbox|(demo|issuer-key|runtime)\.json|apt-.{6}|[a-z.-]+\.\d+\.(new|old))$/

/** The names in the home of what would be removed; the user's own files are not among them. */
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

/** From now on no start takes it for data. */
const putAside = (data: string) => {
  if (existsSync(data)) renameSync(data, join(dirname(data), `postgres.old-${randomBytes(6).toString("hex")}`))
}

const removed = (path: string) => rmSync(path, { recursive: true, force: true })

/** Stops what a killed program left running, and removes it all. */
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
