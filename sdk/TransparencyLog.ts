/**
 * Verifies a transparency log offline, by keys that the verifier got beforehand: checkpoints (C2SP tlog-checkpoint)
 * with the cosignatures of witnesses, proofs that an entry is in the log (C2SP tlog-proof), and that a later checkpoint
 * continues an earlier one. Any log of these formats, not only the program's.
 */
import { isContinued, isIncluded, leafHashOf } from "./MerkleProof.ts"
import { Refusal } from "./Refusal.ts"
import { bytesOf, noteKey, openNote } from "./SignedNote.ts"

/** The keys and the policy that a verifier trusts. Keys as their owners publish them: `name+id+base64`. */
export interface LogPolicy {
  /** The first line of the log's checkpoints. */
  readonly origin: string
  /** Keys of the log; a checkpoint is signed by at least one. */
  readonly logKeys: ReadonlyArray<string>
  readonly witnessKeys?: ReadonlyArray<string>
  /** How many of the witnesses have to have cosigned, by default none. */
  readonly quorum?: number
}

/** A checkpoint that passed verification. */
export interface TreeHead {
  readonly size: number
  readonly root: Uint8Array
  /** The witnesses that cosigned it, with the times of their signatures in seconds since 1970. */
  readonly witnesses: ReadonlyArray<{ readonly name: string; readonly at: number }>
}

/** A number in the one spelling that the formats allow; null for any other text. */
const numberOf = (text: string): number | null => {
  const value = Number(text)
  return /^(0|[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(value) ? value : null
}

const hashOf = (text: string): Uint8Array | null => {
  const bytes = bytesOf(text)
  return bytes?.length === 32 ? bytes : null
}

/**
 * Verifies a checkpoint. Throws Refusal: what `openNote` throws, `note` (not a checkpoint), `origin` (another log's),
 * `kid` (the log did not sign it) or `witnesses` (too few of them did).
 */
export const verifyCheckpoint = (checkpoint: string, policy: LogPolicy): TreeHead => {
  const { origin, quorum = 0, witnessKeys = [] } = policy
  const keys = [...policy.logKeys, ...witnessKeys].map(noteKey)
  const { signers, text } = openNote(checkpoint, keys)
  const [named, count, hash, ...extensions] = text.slice(0, -1).split("\n")
  const size = numberOf(count ?? "")
  const root = hashOf(hash ?? "")
  if (size === null || root === null || extensions.includes("")) throw new Refusal("note", "not a checkpoint")
  if (named !== origin) throw new Refusal("origin", "another log's")
  const logKeys = new Set(keys.slice(0, policy.logKeys.length))
  if (!signers.some(({ key }) => logKeys.has(key) && !key.isWitness)) {
    throw new Refusal("kid", "the log did not sign it")
  }
  // A witness with two keys is one witness.
  const witnesses = new Map(
    signers.filter(({ key }) => key.isWitness && !logKeys.has(key)).map(({ at, key }) => [key.name, at]),
  )
  // With `<` a quorum that is not a number would admit every checkpoint.
  if (!(witnesses.size >= quorum)) throw new Refusal("witnesses", `${witnesses.size} of ${quorum}`)
  return { size, root, witnesses: [...witnesses].map(([name, at]) => ({ name, at })) }
}

/** The lines of a proof: its index and hashes, and the checkpoint below the first empty line. */
const proofOf = (text: string) => {
  const end = text.indexOf("\n\n")
  const [version, ...lines] = text.slice(0, Math.max(end, 0)).split("\n")
  if (lines[0]?.startsWith("extra ")) {
    if (bytesOf(lines.shift()!.slice("extra ".length)) === null) {
      throw new Refusal("note", "its extra data is malformed")
    }
  }
  const [index, ...encoded] = lines
  const at = index?.startsWith("index ") ? numberOf(index.slice("index ".length)) : null
  // A tree of safe integers has no longer path.
  const hashes = encoded.length > 53 ? [null] : encoded.map(hashOf)
  const proof = hashes.filter((hash) => hash !== null)
  if (version !== "c2sp.org/tlog-proof@v1" || at === null || at === undefined || proof.length !== hashes.length) {
    throw new Refusal("note", "not a proof of inclusion")
  }
  return { index: at, proof, checkpoint: text.slice(end + 2) }
}

const maxProof = 128 * 1024

/**
 * Verifies that an entry is in the log, by a proof and nothing else. The proof's extra data is not authenticated, and
 * is passed over. Throws Refusal: what `verifyCheckpoint` throws, `size`, `note` (not a proof) or `inclusion` (another
 * entry's).
 */
export const verifyInclusion = (
  proof: string,
  entry: Uint8Array,
  policy: LogPolicy,
): { readonly index: number; readonly head: TreeHead } => {
  if (proof.length > maxProof) throw new Refusal("size", `more than ${maxProof} characters`)
  const { checkpoint, index, proof: hashes } = proofOf(proof)
  const head = verifyCheckpoint(checkpoint, policy)
  if (!isIncluded({ leafHash: leafHashOf(entry), index, size: head.size, root: head.root, proof: hashes })) {
    throw new Refusal("inclusion", "the entry is not at this index of the checkpoint's tree")
  }
  return { index, head }
}

/**
 * Verifies that a later checkpoint has all entries of an earlier one, in their order. Throws Refusal (`consistency`):
 * the log forked, or the proof is of other checkpoints.
 */
export const verifyConsistency = (before: TreeHead, after: TreeHead, proof: ReadonlyArray<Uint8Array>): void => {
  if (!isContinued(before, after, proof)) {
    throw new Refusal("consistency", `the tree of ${after.size} does not continue that of ${before.size}`)
  }
}
