/**
 * The log's static files (C2SP tlog-tiles): its checkpoint, and the tiles of hashes and of entries as far as the
 * checkpoint goes. A tile never changes under its path, so every cache may keep it.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../platform/database/Database.ts"
import { hashBytes, type Tile, tileOfPath, tileWidth } from "./LogTiles.ts"

/** The bundle of entries: each after its length, two bytes. */
const bundle = (entries: ReadonlyArray<Uint8Array>): Uint8Array =>
  Buffer.concat(entries.flatMap((entry) => [Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry]))

/** The size from which on a tree has the tile. */
const sizeOf = ({ index, level, width }: Tile) =>
  (index * tileWidth + width) * tileWidth ** (level === "entries" ? 0 : level)

export class LogFiles extends Context.Service<LogFiles, {
  /** The newest checkpoint that the broker has; null before the first. */
  readonly checkpoint: Effect.Effect<string | null, SqlError.SqlError>
  /** The tile of a path below the log's prefix; null where the checkpoint's tree has none. */
  readonly tile: (path: string) => Effect.Effect<Uint8Array | null, SqlError.SqlError>
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
            where t.level = ${tile.level} and t.index = ${tile.index} and h.published_size >= ${sizeOf(tile)}`,
          ([row]) => row?.hashes ?? null,
        )

      const entries = (tile: Tile) =>
        Effect.map(
          sql<{ digest: Uint8Array }>`
            select e.digest from log_entries e cross join log_head h
            where e.index >= ${tile.index * tileWidth} and e.index < ${tile.index * tileWidth + tile.width}
              and h.published_size >= ${sizeOf(tile)}
            order by e.index`,
          (rows) => rows.length === tile.width ? bundle(rows.map(({ digest }) => digest)) : null,
        )

      return LogFiles.of({
        checkpoint: Effect.map(
          sql<{ checkpoint: string | null }>`select checkpoint from log_head`,
          ([row]) => row?.checkpoint ?? null,
        ),
        tile: Effect.fn("LogFiles.tile")((path: string) => {
          const tile = tileOfPath(path)
          if (tile === null || !Number.isSafeInteger(sizeOf(tile))) return Effect.succeed(null)
          return tile.level === "entries" ? entries(tile) : hashes(tile)
        }),
      })
    }),
  )
}
