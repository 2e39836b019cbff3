/** The Merkle tree as RFC 6962 (sections 2.1 to 2.1.2) defines it: recursive, over all entries. */
import { createHash } from "node:crypto"

const sha256 = (prefix: number, ...parts: ReadonlyArray<Uint8Array>) =>
  createHash("sha256").update(Buffer.concat([Buffer.of(prefix), ...parts])).digest()

/** The largest power of two that is smaller than `n`. */
const split = (n: number) => 2 ** (Math.ceil(Math.log2(n)) - 1)

type Entries = ReadonlyArray<Uint8Array>

export const rootOf = (entries: Entries): Uint8Array => {
  if (entries.length === 0) return createHash("sha256").digest()
  if (entries.length === 1) return sha256(0, entries[0]!)
  const k = split(entries.length)
  return sha256(1, rootOf(entries.slice(0, k)), rootOf(entries.slice(k)))
}

export const pathOf = (m: number, entries: Entries): Entries => {
  if (entries.length === 1) return []
  const k = split(entries.length)
  const [left, right] = [entries.slice(0, k), entries.slice(k)]
  return m < k ? [...pathOf(m, left), rootOf(right)] : [...pathOf(m - k, right), rootOf(left)]
}

const subproof = (m: number, entries: Entries, whole: boolean): Entries => {
  if (m === entries.length) return whole ? [] : [rootOf(entries)]
  const k = split(entries.length)
  const [left, right] = [entries.slice(0, k), entries.slice(k)]
  return m <= k ? [...subproof(m, left, whole), rootOf(right)] : [...subproof(m - k, right, false), rootOf(left)]
}

export const proofOf = (m: number, entries: Entries): Entries => m === 0 ? [] : subproof(m, entries, true)
