/** The rows of the log: its head, its tiles and its entries. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { hashOf, type Tile, tileOf } from "../LogTiles.ts"
import { emptyRoot, rootStep, type Step } from "../MerkleTree.ts"
import { reader, type StoredTile } from "./GrownTree.ts"

/** Why the log gets no new checkpoint. */
export type HeldLogReason =
  /** A larger log is published: this database has lost its end. */
  | "behind"
  /** A log with other entries is published. */
  | "different"
  /** The newest published message is no checkpoint that this log has signed. */
  | "unreadable"
  /** After a restore, the broker has lost what this database knows to be published, and maybe more. */
  | "gone"

export interface LogHead {
  readonly origin: string
  readonly size: number
  readonly root: Uint8Array
  readonly confirmed_epoch: number | null
  readonly published_size: number | null
  readonly published_seq: number
  readonly published_at: Date | null
  readonly checkpoint: string | null
  readonly held_since: Date | null
  readonly held_reason: HeldLogReason | null
}

/** The head; null where the log has not begun. */
export const readHead = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<LogHead>`
      select origin, size::float8 as size, root, confirmed_epoch, published_size::float8 as published_size,
        published_seq::float8 as published_seq, published_at, checkpoint, held_since, held_reason
      from log_head`,
    ([row]) => row ?? null,
  )

/** Those of these tiles that are stored, each as far as it has grown. */
export const readTiles = (sql: PgClient.PgClient, tiles: ReadonlyArray<Pick<Tile, "index"> & { level: number }>) =>
  sql<StoredTile>`
    select level, index::float8 as index, hashes from log_tiles
    where (level, index) in (
      select level, index from json_to_recordset(${JSON.stringify(tiles)}::json) t(level smallint, index bigint))`

/** The hashes of steps in the tree of the first `size` leaves. */
export const readSteps = (sql: PgClient.PgClient, steps: ReadonlyArray<Step>, size: number) =>
  Effect.map(
    readTiles(sql, steps.flatMap((step) => step.map((subtree) => tileOf(subtree, size)))),
    (tiles) => {
      const read = reader(tiles)
      return steps.map((step) => hashOf(step, size, read))
    },
  )

/** The root of the first `size` leaves. */
export const readRoot = (sql: PgClient.PgClient, size: number) =>
  size === 0 ? Effect.succeed(emptyRoot) : Effect.map(readSteps(sql, [rootStep(size)], size), ([root]) => root!)

/** Entries from `first` on, to before `end`. */
export const readEntries = (sql: PgClient.PgClient, first: number, end: number) =>
  Effect.map(
    sql<{ digest: Uint8Array }>`
      select digest from log_entries where index >= ${first} and index < ${end} order by index`,
    (rows) => rows.map(({ digest }) => digest),
  )

/**
 * The checkpoint that most witnesses have cosigned, the newest of such, with their lines; null where there is none or
 * the log is held.
 */
export const readCosigned = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<{ size: number; checkpoint: string }>`
      select w.cosigned_size::float8 as size,
        min(w.checkpoint) || string_agg(w.line, '' order by w.verifier_key) as checkpoint
      from log_witnesses w join log_head h on h.held_reason is null and w.cosigned_size <= h.published_size
      group by w.cosigned_size, split_part(w.checkpoint, E'\n\n', 1)
      order by count(*) desc, w.cosigned_size desc limit 1`,
    ([row]) => row ?? null,
  )
