/**
 * Verifies a whole log by its files (C2SP tlog-tiles): the tree of all entries is computed anew and compared with the
 * checkpoint, and on the way with a checkpoint that was verified before. The files may come from anywhere.
 */
import { leafHashOf, nodeHash, treeOf } from "./MerkleProof.ts"
import { Refusal } from "./Refusal.ts"
import { type LogPolicy, type TreeHead, verifyCheckpoint } from "./TransparencyLog.ts"

/** Reads a file of the log by its path below the log's prefix: `checkpoint`, `tile/entries/000`. */
export type ReadLogFile = (path: string) => Promise<Uint8Array>

const bundleWidth = 256

/** The path of the bundle of entries at `index` that has `width` of them. */
const bundlePath = (index: number, width: number): string => {
  const thousands = [String(index % 1_000).padStart(3, "0")]
  for (let rest = Math.floor(index / 1_000); rest > 0; rest = Math.floor(rest / 1_000)) {
    thousands.unshift(`x${String(rest % 1_000).padStart(3, "0")}`)
  }
  return `tile/entries/${thousands.join("/")}${width < bundleWidth ? `.p/${width}` : ""}`
}

/** The entries of a bundle; throws Refusal (`inclusion`) where it has another number of them. */
const entriesOf = (bundle: Uint8Array, width: number, path: string): ReadonlyArray<Uint8Array> => {
  const entries: Array<Uint8Array> = []
  let at = 0
  while (at + 2 <= bundle.length && entries.length < width) {
    const end = at + 2 + bundle[at]! * 256 + bundle[at + 1]!
    if (end > bundle.length) break
    entries.push(bundle.subarray(at + 2, end))
    at = end
  }
  if (at !== bundle.length || entries.length !== width) {
    throw new Refusal("inclusion", `${path} does not have ${width} entries`)
  }
  return entries
}

/**
 * Reads the first `width` entries of a bundle. A log may have deleted a partial bundle once the full one exists, so the
 * full one stands in for it (C2SP tlog-tiles).
 */
const readBundle = async (read: ReadLogFile, index: number, width: number): Promise<ReadonlyArray<Uint8Array>> => {
  const whole = async () => {
    const path = bundlePath(index, bundleWidth)
    return entriesOf(await read(path), bundleWidth, path).slice(0, width)
  }
  if (width === bundleWidth) return await whole()
  const path = bundlePath(index, width)
  const bundle = await read(path).catch((error: unknown) => ({ error }))
  if (bundle instanceof Uint8Array) return entriesOf(bundle, width, path)
  // Why the partial bundle cannot be read says more than that the full one does not exist yet.
  return await whole().catch((fault: unknown) => Promise.reject(fault instanceof Refusal ? fault : bundle.error))
}

const equal = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i])

/** A tree that grows leaf by leaf: the roots of its complete subtrees, the largest first, each with its leaves. */
const growing = () => {
  const subtrees: Array<{ readonly leaves: number; readonly hash: Uint8Array }> = []
  const add = (hash: Uint8Array): void => {
    let added = { leaves: 1, hash }
    while (subtrees.at(-1)?.leaves === added.leaves) {
      added = { leaves: 2 * added.leaves, hash: nodeHash(subtrees.pop()!.hash, added.hash) }
    }
    subtrees.push(added)
  }
  return { add, root: () => treeOf(subtrees.map(({ hash }) => hash)) }
}

const isOf = (error: unknown, step: Refusal["step"]): boolean => error instanceof Refusal && error.step === step

/**
 * The log's newest checkpoint. Where its witnesses have not cosigned that one yet, a log of this program has the newest
 * one that they have, unless it is older than what was remembered.
 */
const readHead = async (read: ReadLogFile, policy: LogPolicy, least: number): Promise<TreeHead> => {
  const verified = async (path: string) => verifyCheckpoint(new TextDecoder().decode(await read(path)), policy)
  return await verified("checkpoint").catch(async (error: unknown) => {
    if (!isOf(error, "witnesses")) throw error
    const head = await verified("cosigned-checkpoint").catch(() => null)
    if (head === null || head.size < least) throw error
    return head
  })
}

/**
 * Verifies that the checkpoint is the log's, that all of its entries make its root, and that the log continues
 * `remembered`, a checkpoint that was verified before. Throws Refusal: what `verifyCheckpoint` throws, `inclusion` (the
 * entries are others) or `consistency` (the log forked, or has become shorter).
 */
export const verifyLog = async (
  read: ReadLogFile,
  policy: LogPolicy,
  remembered: Pick<TreeHead, "size" | "root"> | null = null,
): Promise<TreeHead> => {
  const head = await readHead(read, policy, remembered?.size ?? 0)
  if (remembered !== null && remembered.size > head.size) {
    throw new Refusal("consistency", `the log had ${remembered.size} entries and has ${head.size}`)
  }
  const tree = growing()
  const compare = (size: number): void => {
    if (size !== remembered?.size || equal(tree.root(), remembered.root)) return
    throw new Refusal("consistency", `the first ${size} entries are not those that were verified before`)
  }
  compare(0)
  for (let first = 0; first < head.size; first += bundleWidth) {
    const width = Math.min(bundleWidth, head.size - first)
    for (const [i, entry] of (await readBundle(read, first / bundleWidth, width)).entries()) {
      tree.add(leafHashOf(entry))
      compare(first + i + 1)
    }
  }
  if (!equal(tree.root(), head.root)) {
    throw new Refusal("inclusion", `the ${head.size} entries do not make the checkpoint's root`)
  }
  return head
}
