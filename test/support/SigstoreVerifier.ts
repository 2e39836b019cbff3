/**
 * Verifies what the program's log signs and proves by the verifier of Sigstore, which knows nothing of this program: its
 * reading of signed notes and checkpoints, and of inclusion proofs by RFC 6962. It reads no tlog-proof, whose lines are
 * split here as C2SP writes them, and passes over lines of witnesses.
 */
import { verifyCheckpoint } from "@sigstore/verify/dist/tlog/checkpoint.js"
import { verifyMerkleInclusion } from "@sigstore/verify/dist/tlog/merkle.js"
import { createPublicKey } from "node:crypto"

type Logged = Parameters<typeof verifyCheckpoint>[0]
type Logs = Parameters<typeof verifyCheckpoint>[1]

/** A log's key as its operator publishes it (`name+id+base64`), as Sigstore is told the key of a log. */
const logOf = (published: string): Logs[number] => {
  const [name, id, ...encoded] = published.split("+")
  const x = Buffer.from(encoded.join("+"), "base64").toString("base64url", 1)
  return {
    logID: Buffer.from(id!, "hex"),
    baseURL: `https://${name}`,
    publicKey: createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" }),
    validFor: { start: new Date(0), end: new Date(8.64e15) },
  }
}

/** Throws where Sigstore does not find the entry in the log that the proof's checkpoint signs; else its index and size. */
export const bySigstore = (proof: string, entry: Uint8Array, keys: ReadonlyArray<string>) => {
  const end = proof.indexOf("\n\n")
  const [, index, ...hashes] = proof.slice(0, end).split("\n")
  const logIndex = index!.slice("index ".length)
  const logged = {
    canonicalizedBody: Buffer.from(entry),
    inclusionProof: {
      logIndex,
      hashes: hashes.map((hash) => Buffer.from(hash, "base64")),
      checkpoint: { envelope: proof.slice(end + 2) },
    },
  } as unknown as Logged
  const checkpoint = verifyCheckpoint(logged, keys.map(logOf))
  verifyMerkleInclusion(logged, checkpoint)
  return { index: Number(logIndex), size: Number(checkpoint.logSize) }
}
