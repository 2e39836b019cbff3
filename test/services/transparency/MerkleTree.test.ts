/** Hashes, proofs and tiles against the recursive definition, and against the kit's verifier, which is code of its own. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { isContinued, isIncluded, leafHashOf } from "../../../sdk/MerkleProof.ts"
import {
  consistencySteps,
  emptyRoot,
  fold,
  inclusionSteps,
  leafHash,
  nodeHash,
  rootStep,
  type Step,
  type Subtree,
} from "../../../services/transparency/MerkleTree.ts"
import { pathOf, proofOf, rootOf } from "./NaiveTree.ts"

const entry = (n: number) => Buffer.from(`decision ${n}`)
const entries = Array.from({ length: 140 }, (_, n) => entry(n))

const naive = ({ index, level }: Subtree) => rootOf(entries.slice(index * 2 ** level, (index + 1) * 2 ** level))
const hashed = (steps: ReadonlyArray<Step>) => steps.map((step) => fold(step.map(naive)))
const hex = (hashes: ReadonlyArray<Uint8Array>) => hashes.map((hash) => Buffer.from(hash).toString("hex"))

/** A tree whose leaves are all the same, so that it can be as large as a number can count. */
const uniform = Array.from({ length: 54 }).reduce<Array<Uint8Array>>(
  (levels) => [...levels, levels.length === 0 ? leafHash(entry(0)) : nodeHash(levels.at(-1)!, levels.at(-1)!)],
  [],
)
const uniformHash = (step: Step) => fold(step.map(({ level }) => uniform[level]!))

const sizes = fc.integer({ min: 1, max: entries.length })
const hugeSizes = fc.maxSafeInteger().filter((size) => size > 0)

describe("MerkleTree", () => {
  it("has the roots that the Certificate Transparency projects publish for their eight reference leaves", () => {
    const leaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
      .map((digits) => Buffer.from(digits, "hex"))
    const roots = [
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
      "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
      "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
      "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
      "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
      "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
      "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
      "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ]
    const known = leaves.map(leafHash)
    const hashOf = ({ index, level }: Subtree): Uint8Array =>
      level === 0 ? known[index]! : nodeHash(
        hashOf({ level: level - 1, index: 2 * index }),
        hashOf({ level: level - 1, index: 2 * index + 1 }),
      )
    const found = roots.map((_, size) => size === 0 ? emptyRoot : fold(rootStep(size).map(hashOf)))
    assert.deepStrictEqual(hex(found), roots)
  })

  it("roots and proofs are those of the definition, and the kit verifies them", () => {
    fc.assert(
      fc.property(sizes, sizes, (a, b) => {
        const [before, size] = a < b ? [a, b] : [b, a]
        const index = before - 1
        const root = fold(rootStep(size).map(naive))
        assert.deepStrictEqual(hex([root]), hex([rootOf(entries.slice(0, size))]))
        const path = hashed(inclusionSteps(index, size))
        assert.deepStrictEqual(hex(path), hex(pathOf(index, entries.slice(0, size))))
        assert.isTrue(isIncluded({ leafHash: leafHashOf(entry(index)), index, size, root, proof: path }))
        const proof = hashed(consistencySteps(before, size))
        assert.deepStrictEqual(hex(proof), hex(proofOf(before, entries.slice(0, size))))
        const old = { size: before, root: rootOf(entries.slice(0, before)) }
        assert.isTrue(isContinued(old, { size, root }, proof))
      }),
    )
    assert.deepStrictEqual(consistencySteps(0, 7), [])
    assert.isTrue(isContinued({ size: 0, root: emptyRoot }, { size: 7, root: rootOf(entries.slice(0, 7)) }, []))
    const empty = { size: 0, root: emptyRoot }
    const notEmpty = { size: 0, root: rootOf(entries) }
    assert.isTrue(isContinued(empty, empty, []))
    assert.deepStrictEqual([[empty, notEmpty], [notEmpty, notEmpty]].map(([a, b]) => isContinued(a!, b!, [])), [
      false,
      false,
    ])
  })

  it("the kit refuses a proof with one bit changed, another index, another size, and a hash too few or too many", () => {
    fc.assert(
      fc.property(sizes, fc.nat(), fc.nat(), fc.nat({ max: 255 }), (size, chosen, which, bit) => {
        const index = chosen % size
        const root = rootOf(entries.slice(0, size))
        const proof = pathOf(index, entries.slice(0, size))
        const right = { leafHash: leafHashOf(entry(index)), index, size, root, proof }
        const flipped = (hash: Uint8Array) =>
          hash.map((byte, at) => at === Math.floor(bit / 8) ? byte ^ 2 ** (bit % 8) : byte)
        const wrong = [
          { ...right, leafHash: flipped(right.leafHash) },
          { ...right, root: flipped(root) },
          { ...right, proof: [...proof, root] },
          { ...right, index: index + size },
          { ...right, index: index === 0 ? -1 : index - 1 },
          { ...right, index: index + 0.5 },
        ]
        const at = proof.length === 0 ? -1 : which % proof.length
        if (at >= 0) {
          wrong.push({ ...right, proof: proof.map((hash, i) => i === at ? flipped(hash) : hash) })
          wrong.push({ ...right, proof: proof.slice(1) }, { ...right, proof: proof.slice(0, -1) })
        }
        assert.deepStrictEqual(wrong.map(isIncluded), wrong.map(() => false))
      }),
    )
  })

  it("the kit refuses the proof of a fork: a tree of which one earlier entry was changed or taken away", () => {
    fc.assert(
      fc.property(sizes, sizes, fc.nat(), fc.boolean(), (a, b, chosen, taken) => {
        const [before, size] = a < b ? [a, b] : [b, a]
        fc.pre(before < size)
        const changed = chosen % before
        const forked = entries.slice(0, size)
        forked.splice(changed, 1, ...(taken ? [] : [Buffer.from("another decision")]))
        if (taken) forked.push(entry(entries.length))
        const old = { size: before, root: rootOf(entries.slice(0, before)) }
        const now = { size, root: rootOf(forked) }
        // The best that a log with a fork can show is the proof of either of its trees.
        assert.isFalse(isContinued(old, now, proofOf(before, forked)))
        assert.isFalse(isContinued(old, now, proofOf(before, entries.slice(0, size))))
      }),
    )
  })

  it("trees up to the largest safe integer have proofs of at most 53 hashes, which the kit verifies", () => {
    fc.assert(
      fc.property(hugeSizes, hugeSizes, (a, b) => {
        const [before, size] = a < b ? [a, b] : [b, a]
        const root = uniformHash(rootStep(size))
        const path = inclusionSteps(before - 1, size).map(uniformHash)
        assert.isAtMost(path.length, 53)
        assert.isTrue(isIncluded({ leafHash: uniform[0]!, index: before - 1, size, root, proof: path }))
        const old = { size: before, root: uniformHash(rootStep(before)) }
        assert.isTrue(isContinued(old, { size, root }, consistencySteps(before, size).map(uniformHash)))
      }),
    )
  })
})
