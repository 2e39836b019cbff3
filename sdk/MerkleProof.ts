/**
 * Verifies proofs of a Merkle tree log (RFC 9162, sections 2.1.3.2 and 2.1.4.2; the trees of RFC 6962 are the same).
 * Computes upwards from the values of the caller, so it shares no code and no reasoning with the maker of the proofs.
 */
import { createHash } from "node:crypto"

const hashBytes = 32

/** The root of a tree without leaves. */
const emptyRoot = createHash("sha256").digest()

/** The hash of a log's entry as a leaf. */
export const leafHashOf = (entry: Uint8Array): Uint8Array =>
  createHash("sha256").update(Uint8Array.of(0)).update(entry).digest()

/** The hash of a node by the hashes below it. */
export const nodeHash = (left: Uint8Array, right: Uint8Array): Uint8Array =>
  createHash("sha256").update(Uint8Array.of(1)).update(left).update(right).digest()

/** The root of a tree by those of its complete subtrees, from left to right. */
export const treeOf = (subtrees: ReadonlyArray<Uint8Array>): Uint8Array =>
  subtrees.length === 0 ? emptyRoot : subtrees.reduceRight((right, left) => nodeHash(left, right))

const equal = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i])

const isSize = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

const areHashes = (hashes: ReadonlyArray<Uint8Array>): boolean => hashes.every(({ length }) => length === hashBytes)

/** The value without its lowest bits. `>>` would keep 32 bits only. */
const shifted = (value: number, bits = 1): number => Math.floor(value / 2 ** bits)
const isOdd = (value: number): boolean => value % 2 === 1

/** Whether the leaf is at `index` in the tree of `size` leaves with this root. */
export const isIncluded = (
  { index, leafHash, proof, root, size }: {
    readonly leafHash: Uint8Array
    readonly index: number
    readonly size: number
    readonly root: Uint8Array
    readonly proof: ReadonlyArray<Uint8Array>
  },
): boolean => {
  if (!isSize(index) || !isSize(size) || index >= size || !areHashes([leafHash, root, ...proof])) return false
  let [node, last, hash] = [index, size - 1, leafHash]
  for (const sibling of proof) {
    if (last === 0) return false
    if (isOdd(node) || node === last) {
      hash = nodeHash(sibling, hash)
      // At the right edge the levels at which the node has no sibling are left out.
      while (!isOdd(node) && node !== 0) [node, last] = [shifted(node), shifted(last)]
    } else {
      hash = nodeHash(hash, sibling)
    }
    ;[node, last] = [shifted(node), shifted(last)]
  }
  return last === 0 && equal(hash, root)
}

/** A tree by its number of leaves and its root. */
export interface Tree {
  readonly size: number
  readonly root: Uint8Array
}

/** Whether the tree `after` begins with all leaves of the tree `before`, in their order. */
export const isContinued = (before: Tree, after: Tree, proof: ReadonlyArray<Uint8Array>): boolean => {
  if (!isSize(before.size) || !isSize(after.size) || before.size > after.size) return false
  if (!areHashes([before.root, after.root, ...proof])) return false
  if (before.size === 0 && !equal(before.root, emptyRoot)) return false
  if (before.size === after.size) return proof.length === 0 && equal(before.root, after.root)
  if (before.size === 0) return proof.length === 0
  let [node, last] = [before.size - 1, after.size - 1]
  while (isOdd(node)) [node, last] = [shifted(node), shifted(last)]
  // Where the old tree is a complete subtree, the proof leaves its root out.
  const [first, ...siblings] = node === 0 ? [before.root, ...proof] : proof
  if (first === undefined) return false
  let [old, now] = [first, first]
  for (const sibling of siblings) {
    if (last === 0) return false
    if (isOdd(node) || node === last) {
      old = nodeHash(sibling, old)
      now = nodeHash(sibling, now)
      while (!isOdd(node) && node !== 0) [node, last] = [shifted(node), shifted(last)]
    } else {
      now = nodeHash(now, sibling)
    }
    ;[node, last] = [shifted(node), shifted(last)]
  }
  return last === 0 && equal(old, before.root) && equal(now, after.root)
}
