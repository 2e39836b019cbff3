import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  hashIn,
  hashOf,
  hashOfTile,
  newTiles,
  type Tile,
  tileOf,
  tileOfPath,
  tilePath,
} from "../../../services/transparency/LogTiles.ts"
import { consistencySteps, inclusionSteps, rootStep, type Subtree } from "../../../services/transparency/MerkleTree.ts"
import { pathOf, proofOf, rootOf } from "./NaiveTree.ts"
import { runs } from "../../support/Runs.ts"

const entries = Array.from({ length: 1_100 }, (_, n) => Buffer.from(`decision ${n}`))
const known = new Map<string, Uint8Array>()
const naive = ({ index, level }: Subtree): Uint8Array => {
  const key = `${level} ${index}`
  const hash = known.get(key) ?? rootOf(entries.slice(index * 2 ** level, (index + 1) * 2 ** level))
  known.set(key, hash)
  return hash
}

/** A tile by the definition: each hash is that of 256**level entries. */
const tileBytes = ({ index, level, width }: Tile): Uint8Array =>
  Buffer.concat(Array.from({ length: width }, (_, i) => naive({ level: 8 * Number(level), index: index * 256 + i })))

const hex = (hashes: ReadonlyArray<Uint8Array>) => hashes.map((hash) => Buffer.from(hash).toString("hex"))

describe("LogTiles", () => {
  it("paths are those of the specification, and each tile has one", () => {
    assert.strictEqual(tilePath({ level: 0, index: 1_234_067, width: 256 }), "tile/0/x001/x234/067")
    assert.strictEqual(tilePath({ level: "entries", index: 0, width: 7 }), "tile/entries/000.p/7")
    const level = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.constant("entries" as const))
    const tile = fc.record({ level, index: fc.maxSafeNat(), width: fc.integer({ min: 1, max: 256 }) })
    fc.assert(fc.property(tile, (tile) => assert.deepStrictEqual(tileOfPath(tilePath(tile)), tile)))
    const others = [
      ...["tile/0/0", "tile/0/1000", "tile/0/x000/001", "tile/0/x001/1", "tile/0/001/002", "tile/00/001", "tile/7/000"],
      ...["tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/01", "tile/0/000.p/", "tile/0/000.p/7/", "tile/0/000/"],
      ...["/tile/0/000", "tile/-1/000", "tile/0/-01", "tile/entries", "tile/0/..", "tile/0/%30", "tile/0/000\n", ""],
      ...["tile/0/x999/x999/x999/x999/x999/999"],
    ]
    assert.deepStrictEqual(others.filter((path) => tileOfPath(path) !== null), [])
  })

  it("a tree of 70,000 leaves has the tiles that the specification counts", () => {
    const count = (level: number, full: boolean) =>
      newTiles(0, 70_000).filter((tile) => tile.level === level && (tile.width === 256) === full).map(({ width }) =>
        width
      )
    assert.deepStrictEqual(count(0, true).length, 273)
    assert.deepStrictEqual([count(0, false), count(1, true), count(1, false)], [[112], [256], [17]])
    assert.deepStrictEqual([count(2, true), count(2, false), count(3, false)], [[], [1], []])
    assert.deepStrictEqual(newTiles(0, 256).map(tilePath), ["tile/0/000", "tile/1/000.p/1"])
    assert.deepStrictEqual(newTiles(7, 7), [])
  })

  it("a log that grows by any steps has every tile that the roots and proofs of its checkpoints need", () => {
    const growth = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(growth, fc.nat(), (steps, chosen) => {
        const files = new Map<string, string>()
        const read = (tile: Tile) => Buffer.from(files.get(tilePath(tile)) ?? assert.fail(tilePath(tile)), "hex")
        let size = 0
        for (const step of steps) {
          const before = size
          size = Math.min(size + step, entries.length)
          for (const tile of newTiles(before, size)) {
            const bytes = hex([tileBytes(tile)])[0]!
            // A file under its path never changes.
            assert.strictEqual(files.get(tilePath(tile)) ?? bytes, bytes)
            files.set(tilePath(tile), bytes)
          }
          const now = entries.slice(0, size)
          const index = chosen % size
          assert.deepStrictEqual(hex([hashOf(rootStep(size), size, read)]), hex([rootOf(now)]))
          const path = inclusionSteps(index, size).map((step) => hashOf(step, size, read))
          assert.deepStrictEqual(hex(path), hex(pathOf(index, now)))
          const proof = consistencySteps(before, size).map((step) => hashOf(step, size, read))
          assert.deepStrictEqual(hex(proof), hex(proofOf(before, now)))
        }
      }),
      { numRuns: runs(12) },
    )
  })

  it("the tile above holds a full tile's hash", () => {
    const tile = tileBytes({ level: 0, index: 2, width: 256 })
    const above: Subtree = { level: 8, index: 2 }
    assert.deepStrictEqual(tileOf(above, 1_100), { level: 1, index: 0, width: 4 })
    const hash = hashIn(tileBytes({ level: 1, index: 0, width: 4 }), above)
    assert.deepStrictEqual(hex([hashOfTile(tile)]), hex([hash]))
  })
})
