/** A tree that grows: its changed tiles and its new root, by its unfinished tiles and the new entries. */
import { edgeTiles, hashBytes, hashOf, hashOfTile, newTiles, type Tile, tileWidth } from "../LogTiles.ts"
import { emptyRoot, leafHash, rootStep } from "../MerkleTree.ts"

/** A tile as it is stored: all hashes that it has so far. */
export interface StoredTile {
  readonly level: number
  readonly index: number
  readonly hashes: Uint8Array
}

const nameOf = ({ index, level }: Pick<Tile, "index" | "level">) => `${level}/${index}`

/** Reads stored tiles by their level and index. */
export const reader = (tiles: ReadonlyArray<StoredTile>) => {
  const known = new Map(tiles.map((tile) => [nameOf(tile), tile.hashes]))
  return (tile: Pick<Tile, "index" | "level">): Uint8Array => {
    const hashes = known.get(nameOf(tile))
    if (hashes === undefined) throw new Error(`The log lacks tile ${nameOf(tile)}`)
    return hashes
  }
}

/**
 * Grows a tree of `before` leaves by `entries`. `edge`: its unfinished tiles (`edgeTiles`). Throws where they are not
 * those of such a tree.
 */
export const grownTree = (
  before: number,
  edge: ReadonlyArray<StoredTile>,
  entries: ReadonlyArray<Uint8Array>,
): { readonly tiles: ReadonlyArray<StoredTile>; readonly root: Uint8Array } => {
  const size = before + entries.length
  const known = new Map(edge.map((tile) => [nameOf(tile), tile.hashes]))
  for (const tile of edgeTiles(before)) {
    const length = known.get(nameOf(tile))?.length
    if (length !== tile.width * hashBytes) throw new Error(`Tile ${nameOf(tile)} is not that of ${before} leaves`)
  }
  const tiles: Array<StoredTile> = []
  for (const tile of newTiles(before, size)) {
    const { index, level, width } = tile
    const old = known.get(nameOf(tile)) ?? new Uint8Array(0)
    const from = index * tileWidth + old.length / hashBytes
    const added = Array.from(
      { length: index * tileWidth + width - from },
      (_, i) =>
        level === 0
          ? leafHash(entries[from + i - before]!)
          : hashOfTile(known.get(nameOf({ level: level - 1, index: from + i }))!),
    )
    const hashes = Buffer.concat([old, ...added])
    known.set(nameOf(tile), hashes)
    tiles.push({ level, index, hashes })
  }
  const root = size === 0 ? emptyRoot : hashOf(rootStep(size), size, (tile) => known.get(nameOf(tile))!)
  return { tiles, root }
}
