/**
 * The log's static files (C2SP tlog-tiles): its checkpoint, and the tiles of hashes and of entries as far as the
 * checkpoint goes. A tile never changes under its path, so every cache may keep it.
 */
import { Context, Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../platform/database/Database.ts"
import { readCosigned } from "./DecisionLog/StoredLog.ts"
import { hashBytes, type Tile, tileOfPath, tileWidth } from "./LogTiles.ts"

/** The bundle of entries: each after its length, two bytes. */
const bundle = (entries: ReadonlyArray<Uint8Array>): Uint8Array =>
  Buffer.concat(entries.flatMap((entry) => [Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry]))

/**
 * The log is held (docs/transparency.md): what this database has may contradict what was published, and caches would
 * keep it for ever.
 */
export class LogHeld extends Schema.TaggedError<LogHeld>()("LogHeld", {}) {}

/** The size from which on a tree has the tile. */
const sizeOf = ({ index, level, width }: Tile) =>
  (index * tileWidth + width) * tileWidth ** (level === "entries" ? 0 : level)

export class LogFiles extends Context.Service<LogFiles, {
  /** The newest checkpoint that the broker has, with the lines of its witnesses so far; null before the first. */
  readonly checkpoint: Effect.Effect<string | null, LogHeld | SqlError.SqlError>
  /** The checkpoint that most witnesses have cosigned, the newest of such; null where there is none. */
  readonly cosigned: Effect.Effect<string | null, LogHeld | SqlError.SqlError>
  /** The tile of a path below the log's prefix; null where the checkpoint's tree has none. */
  readonly tile: (path: string) => Effect.Effect<Uint8Array | null, LogHeld | SqlError.SqlError>
}>()("bailiwick/services/transparency/LogFiles") {
  static readonly layer = Layer.effect(
    LogFiles,
    Effect.gen(function* () {
      const { reads: sql } = yield* Database

      const hashes = (tile: Tile) =>
        Effect.map(
          sql<{ hashes: Uint8Array }>`
            select substring(t.hashes from 1 for ${tile.width * hashBytes}) as hashes
            from log_tiles t cross join log_head h
            where t.level = ${tile.level} and t.index = ${tile.index} and h.held_reason is null
              and h.published_size >= ${sizeOf(tile)}`,
          ([row]) => row?.hashes ?? null,
        )

      const entries = (tile: Tile) =>
        Effect.map(
          sql<{ digest: Uint8Array }>`
            select e.digest from log_entries e cross join log_head h
            where e.index >= ${tile.index * tileWidth} and e.index < ${tile.index * tileWidth + tile.width}
              and h.held_reason is null and h.published_size >= ${sizeOf(tile)}
            order by e.index`,
          (rows) => rows.length === tile.width ? bundle(rows.map(({ digest }) => digest)) : null,
        )

      /** Asks whether the log is held, for a missing file only: a file that is served needs no second statement. */
      const unlessHeld = Effect.fnUntraced(function* () {
        const [head] = yield* sql<{ held: boolean }>`select held_reason is not null as held from log_head`
        return head?.held === true ? yield* new LogHeld() : null
      })

      const tile = Effect.fn("LogFiles.tile")(function* (path: string) {
        const asked = tileOfPath(path)
        if (asked === null || !Number.isSafeInteger(sizeOf(asked))) return null
        const found = asked.level === "entries" ? yield* entries(asked) : yield* hashes(asked)
        return found ?? (yield* unlessHeld())
      })

      return LogFiles.of({
        checkpoint: Effect.flatMap(
          sql<{ checkpoint: string | null; held: boolean }>`
            select h.held_reason is not null as held, h.checkpoint || coalesce((
              select string_agg(w.line, '' order by w.verifier_key) from log_witnesses w
              where split_part(w.checkpoint, E'\n\n', 1) = split_part(h.checkpoint, E'\n\n', 1)), '') as checkpoint
            from log_head h`,
          ([row]) => row?.held === true ? Effect.fail(new LogHeld()) : Effect.succeed(row?.checkpoint ?? null),
        ),
        cosigned: Effect.flatMap(
          readCosigned(sql),
          (found) => found === null ? unlessHeld() : Effect.succeed(found.checkpoint),
        ),
        tile,
      })
    }),
  )
}
