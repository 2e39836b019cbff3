/**
 * Integrates leaves: gives each the next index, adds its hash to the tiles, and moves the head, in one transaction.
 * One process at a time does so, under an advisory lock. Nothing is integrated before the head was confirmed against
 * the broker in the installation's present epoch: a restored database might give indexes that its lost history gave to
 * other leaves.
 *
 * Killed before the commit: the leaves still wait. Killed after it: they have their indexes, and the next turn
 * publishes the checkpoint.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { tryLock } from "../../platform/database/AdvisoryLocks.ts"
import { isAnother } from "../../platform/database/Installation.ts"
import { insertion, type Part, writeParts } from "../../platform/database/UnitOfWork.ts"
import { faultPoint } from "../../platform/Failpoints.ts"
import { edgeTiles } from "../LogTiles.ts"
import { grownTree, type StoredTile } from "./GrownTree.ts"
import { readTiles } from "./StoredLog.ts"

/** Leaves that are integrated at a time. */
export const integratedAtOnce = 1_000

interface Leaf {
  readonly record_id: string
  readonly salt: Uint8Array
  readonly digest: Uint8Array
}

/** Bytes as PostgreSQL reads them in JSON. */
const bytea = (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}`

/** Stores tiles as far as they have grown. */
const tilesPart = (sql: PgClient.PgClient, tiles: ReadonlyArray<StoredTile>): Part => ({
  name: "grown_tiles",
  statement: sql`
    insert into log_tiles (level, index, hashes)
    select level, index, hashes from json_to_recordset(${
    JSON.stringify(tiles.map(({ hashes, ...at }) => ({ ...at, hashes: bytea(hashes) })))
  }::json) t(level smallint, index bigint, hashes bytea)
    on conflict (level, index) do update set hashes = excluded.hashes`,
})

export const integration = (sql: PgClient.PgClient) => {
  const entries = insertion(sql, "log_entries", {
    index: "bigint",
    record_id: "uuid",
    salt: "bytea",
    digest: "bytea",
  })

  /** Adds leaves behind the first `size`. The caller holds the lock, and the head has this size. */
  const add = Effect.fnUntraced(function* (size: number, leaves: readonly [Leaf, ...ReadonlyArray<Leaf>]) {
    const edge = yield* readTiles(sql, edgeTiles(size))
    const { root, tiles } = grownTree(size, edge, leaves.map(({ digest }) => digest))
    const now = new Date(yield* Clock.currentTimeMillis)
    const moved = yield* sql`
      update log_head set size = ${size + leaves.length}, root = ${root}, changed_at = ${now}
      where size = ${size} and held_reason is null returning 1`
    if (moved.length === 0) return yield* Effect.die(new Error("The head of the log moved"))
    const [first, ...rest] = leaves.map(({ digest, record_id, salt }, i) => ({
      index: size + i,
      record_id,
      salt: bytea(salt),
      digest: bytea(digest),
    }))
    yield* writeParts(sql, [
      ...entries.parts([first!, ...rest]),
      tilesPart(sql, tiles),
      {
        name: "integrated",
        statement: sql`
          delete from log_pending where record_id in (
            select id from json_to_recordset(${JSON.stringify(leaves.map(({ record_id: id }) => ({ id })))}::json)
              l(id uuid))`,
      },
    ])
  })

  /** Integrates some leaves; returns how many. */
  const integrate = Effect.gen(function* () {
    if (!(yield* tryLock(sql, "transparencyLog"))) return 0
    const [head] = yield* sql<{ size: number }>`
      select h.size::float8 as size from log_head h, installation i
      where h.held_reason is null and h.confirmed_epoch = i.epoch and not ${isAnother(sql)}`
    if (head === undefined) return 0
    const [first, ...rest] = yield* sql<Leaf>`
      select record_id::text as record_id, salt, digest from log_pending order by record_id limit ${integratedAtOnce}`
    if (first === undefined) return 0
    yield* add(head.size, [first, ...rest])
    yield* faultPoint("log.written")
    return 1 + rest.length
  }).pipe(sql.withTransaction, Effect.withSpan("DecisionLog.integrate"))

  return { integrate }
}
