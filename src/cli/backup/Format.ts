/**
 * The format of a backup file: a line that identifies it, then chunks, then the manifest.
 *
 * A chunk is a line `<part> <bytes>\n` and that many bytes; the chunks of a part, joined, are the gzip of the table's
 * rows in PostgreSQL's COPY text format. The last two lines are `manifest <bytes>\n`, the manifest's JSON, and the
 * SHA-256 of that JSON. A truncated file has no manifest; a changed byte does not match its part's SHA-256.
 *
 * Secrets are sealed in the file, as in the database. The key ring is not in it; the manifest names the keys.
 */
import { Schema } from "effect"

export const magic = "bailiwick backup 1\n"
/** The most bytes of a chunk. */
export const chunkBytes = 1024 * 1024
/** Longest line of the frame. */
export const lineBytes = 200
export const manifestBytes = 64 * 1024 * 1024

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Whole = Schema.String.check(Schema.isPattern(/^\d{1,19}$/))
const Name = Schema.String.check(Schema.isPattern(/^[a-z_][a-z0-9_]{0,62}$/))

export const Part = Schema.Struct({
  table: Name,
  columns: Schema.Array(Name),
  rows: Count,
  /** The bytes of its chunks in the file. */
  bytes: Count,
  sha256: Schema.String,
})
export type Part = typeof Part.Type

/** `fillfactor=70, …`. One separator between two settings: an optional one could be read in 2^n ways. */
const Storage = Schema.String.check(
  Schema.isPattern(/^(?:[a-z_]+=[a-z0-9.]+(?:, [a-z_]+=[a-z0-9.]+)*)?$/),
)

/**
 * A partition by day or month. Its texts become part of statements of the tables' owner, so only texts of our own
 * partitions are admitted.
 */
const Partition = Schema.Struct({
  table: Name,
  name: Name,
  bound: Schema.String.check(
    Schema.isPattern(/^FOR VALUES FROM \((MINVALUE|'[0-9a-f-]{36}')\) TO \('[0-9a-f-]{36}'\)$/),
  ),
  storage: Storage,
})

const Unfinished = Schema.Struct({ migration: Count, steps: Count })
export type Unfinished = typeof Unfinished.Type

export const Manifest = Schema.Struct({
  /** RFC 3339, by the database's clock: later decisions are not in the backup. */
  made_at: Schema.String,
  /** The newest migration. */
  schema: Count,
  /** The migration that was in progress, and how many of its statements had committed; in no backup before 0.3. */
  unfinished: Schema.optional(Schema.NullOr(Unfinished)),
  epoch: Count,
  /** Projects that have a history, and events in all of them. */
  histories: Schema.Struct({ projects: Count, events: Count }),
  /**
   * Keys of the ring under which its secrets are sealed, each with a check value (hex) that tells it from another key
   * of that name.
   */
  keys: Schema.Array(Schema.Struct({ kid: Schema.String, check: Schema.String })),
  parts: Schema.Array(Part),
  partitions: Schema.Array(Partition),
  sequences: Schema.Array(Schema.Struct({ name: Name, last: Whole, called: Schema.Boolean })),
})
export type Manifest = typeof Manifest.Type

export const manifestText = Schema.fromJsonString(Manifest)
