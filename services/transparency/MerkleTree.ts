/**
 * The Merkle tree of RFC 6962 (section 2.1; RFC 9162, section 2.1, has the same hashes): SHA-256 over leaves, which a
 * zero byte marks, and over pairs, which a one byte marks, so that no leaf passes for a node.
 *
 * A tree that grows keeps its complete subtrees: the hash of the leaves [index * 2**level, (index + 1) * 2**level) never
 * changes. Roots and proofs are given as steps, each the complete subtrees that one hash is made of. A caller reads the
 * hashes of all steps at once, from wherever they are kept, and folds each step. Sizes are safe integers.
 */
import { createHash } from "node:crypto"

/** A complete subtree of 2**level leaves. */
export interface Subtree {
  readonly level: number
  readonly index: number
}

/** The complete subtrees of a run of leaves, from left to right, each smaller than the one before. */
export type Step = ReadonlyArray<Subtree>

const sha256 = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest()
}

const leafPrefix = Uint8Array.of(0)
const nodePrefix = Uint8Array.of(1)

/** The hash of a leaf by its entry. */
export const leafHash = (entry: Uint8Array): Uint8Array => sha256(leafPrefix, entry)

/** The hash of a node by the hashes below it. */
export const nodeHash = (left: Uint8Array, right: Uint8Array): Uint8Array => sha256(nodePrefix, left, right)

/** The root of a tree without leaves. */
export const emptyRoot: Uint8Array = sha256()

/** The level of the largest complete subtree of at most so many leaves. */
const levelWithin = (leaves: number): number => {
  let level = 0
  while (2 ** (level + 1) <= leaves) level++
  return level
}

/** Where the leaves [from, to) are divided, two or more: after the largest power of two that is smaller. */
const middleOf = (from: number, to: number): number => from + 2 ** levelWithin(to - from - 1)

/** The step of the leaves [from, to), where `from` is a multiple of the first subtree's leaves. */
const stepOf = (from: number, to: number): Step => {
  const step: Array<Subtree> = []
  for (let at = from; at < to;) {
    const level = levelWithin(to - at)
    step.push({ level, index: at / 2 ** level })
    at += 2 ** level
  }
  return step
}

/** The hash of a step by the hashes of its subtrees, of which there is at least one. */
export const fold = (hashes: ReadonlyArray<Uint8Array>): Uint8Array =>
  hashes.reduceRight((right, left) => nodeHash(left, right))

/** The step of a tree's root; without subtrees for the empty tree, whose root is `emptyRoot`. */
export const rootStep = (size: number): Step => stepOf(0, size)

/** The steps of the proof that the leaf at `index` is in the tree of `size` leaves, in the proof's order. */
export const inclusionSteps = (index: number, size: number): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  let [from, to] = [0, size]
  while (to - from > 1) {
    const middle = middleOf(from, to)
    if (index < middle) {
      steps.push(stepOf(middle, to))
      to = middle
    } else {
      steps.push(stepOf(from, middle))
      from = middle
    }
  }
  return steps.reverse()
}

/**
 * The steps of the proof that the tree of `size` leaves begins with the tree of `before` leaves, in the proof's order.
 * There are none where one of the trees is empty, or both are the same.
 */
export const consistencySteps = (before: number, size: number): ReadonlyArray<Step> => {
  if (before === 0 || before === size) return []
  const steps: Array<Step> = []
  let [from, to] = [0, size]
  while (before < to) {
    const middle = middleOf(from, to)
    if (before <= middle) {
      steps.push(stepOf(middle, to))
      to = middle
    } else {
      steps.push(stepOf(from, middle))
      from = middle
    }
  }
  // Where the old tree is a complete subtree from the first leaf, the verifier has its hash: the old root.
  if (from > 0) steps.push(stepOf(from, to))
  return steps.reverse()
}
