/**
 * Tiles, the static files of a transparency log (C2SP tlog-tiles): each holds up to 256 hashes of one level of the
 * Merkle tree, a full one all that its subtree of height 8 needs. The n-th hash of a tile at level L is the hash of
 * 256**L leaves. A tile that is not full yet is served under its width as well, and is replaced as it grows.
 */
import { fold, nodeHash, type Step, type Subtree } from "./MerkleTree.ts"

export const tileHeight = 8
export const tileWidth = 2 ** tileHeight
export const hashBytes = 32

/** A tile of hashes, or of the log's entries. */
export interface Tile {
  /** Of hashes: its level of tiles. */
  readonly level: number | "entries"
  readonly index: number
  /** The number of hashes or entries in it, 1 to 256. */
  readonly width: number
}

/** Levels of tiles that a tree of safe integers has. */
const maxLevel = 6

/** The number of hashes that a level of tiles has in a tree of `size` leaves. */
export const hashesAt = (level: number, size: number): number => Math.floor(size / tileWidth ** level)

/** A tile's path below the log's prefix: `tile/0/x001/234`, `tile/entries/000.p/7`. */
export const tilePath = ({ index, level, width }: Tile): string => {
  const thousands = [String(index % 1_000).padStart(3, "0")]
  for (let rest = Math.floor(index / 1_000); rest > 0; rest = Math.floor(rest / 1_000)) {
    thousands.unshift(`x${String(rest % 1_000).padStart(3, "0")}`)
  }
  return `tile/${level}/${thousands.join("/")}${width < tileWidth ? `.p/${width}` : ""}`
}

const pathForm = /^tile\/(entries|[0-6])\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/

/** The tile of a path; null where no tile of any log has this path. Each tile has one path. */
export const tileOfPath = (path: string): Tile | null => {
  const [, level, index, width] = pathForm.exec(path) ?? []
  if (level === undefined || index === undefined) return null
  const tile: Tile = {
    level: level === "entries" ? level : Number(level),
    index: Number(index.replace(/[x/]/g, "")),
    width: width === undefined ? tileWidth : Number(width),
  }
  return tilePath(tile) === path ? tile : null
}

/** The tiles of hashes that a tree gains by growing from `before` to `size` leaves, partial ones at their new width. */
export const newTiles = (before: number, size: number): ReadonlyArray<Tile & { readonly level: number }> => {
  const tiles: Array<Tile & { level: number }> = []
  for (let level = 0; level <= maxLevel; level++) {
    const [from, to] = [hashesAt(level, before), hashesAt(level, size)]
    if (from === to) break
    for (let index = Math.floor(from / tileWidth); index * tileWidth < to; index++) {
      tiles.push({ level, index, width: Math.min(tileWidth, to - index * tileWidth) })
    }
  }
  return tiles
}

/** The tiles of hashes that are not full in a tree of `size` leaves: one a level, at its right edge. */
export const edgeTiles = (size: number): ReadonlyArray<Tile & { readonly level: number }> =>
  Array.from({ length: maxLevel + 1 }, (_, level) => ({
    level,
    index: Math.floor(hashesAt(level, size) / tileWidth),
    width: hashesAt(level, size) % tileWidth,
  })).filter(({ width }) => width > 0)

/** The tile of a tree of `size` leaves that has a complete subtree's hash, or the hashes that it is made of. */
export const tileOf = ({ index, level }: Subtree, size: number): Tile & { readonly level: number } => {
  const tileLevel = Math.floor(level / tileHeight)
  const tile = Math.floor((index * 2 ** (level % tileHeight)) / tileWidth)
  return { level: tileLevel, index: tile, width: Math.min(tileWidth, hashesAt(tileLevel, size) - tile * tileWidth) }
}

/** The hash of a complete subtree by the hashes of its leaves, a power of two. */
const completeHash = (hashes: ReadonlyArray<Uint8Array>): Uint8Array => {
  let level = hashes
  while (level.length > 1) {
    const below = level
    level = Array.from({ length: below.length / 2 }, (_, i) => nodeHash(below[2 * i]!, below[2 * i + 1]!))
  }
  return level[0]!
}

const hashesIn = (tile: Uint8Array, first: number, count: number): ReadonlyArray<Uint8Array> =>
  Array.from({ length: count }, (_, i) => tile.subarray((first + i) * hashBytes, (first + i + 1) * hashBytes))

/** The hash of a full tile, which the tile above it holds. */
export const hashOfTile = (tile: Uint8Array): Uint8Array => completeHash(hashesIn(tile, 0, tileWidth))

/** The hash of a complete subtree out of the bytes of its tile (`tileOf`). */
export const hashIn = (tile: Uint8Array, { index, level }: Subtree): Uint8Array => {
  const count = 2 ** (level % tileHeight)
  return completeHash(hashesIn(tile, (index * count) % tileWidth, count))
}

/** The hash of a step of a tree of `size` leaves, by a reader of its tiles. */
export const hashOf = (step: Step, size: number, read: (tile: Tile) => Uint8Array): Uint8Array =>
  fold(step.map((subtree) => hashIn(read(tileOf(subtree, size)), subtree)))
