/**
 * A log's checkpoint: its size and root in the text of C2SP tlog-checkpoint, as a signed note (C2SP signed-note) with
 * an Ed25519 signature (RFC 8032) of each key of the log. Witnesses add their lines below.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from "node:crypto"

/** The signature type "Ed25519" of signed-note. */
const ed25519 = Buffer.from([0x01])

/** How a log names itself, in its checkpoints and in its key: a URL without scheme, without spaces and `+`. */
export type LogOrigin = string

/** The 32 bytes of an Ed25519 public key. */
const rawKey = (key: KeyObject): Buffer => {
  const { x } = (key.type === "private" ? createPublicKey(key) : key).export({ format: "jwk" })
  return Buffer.from(x!, "base64url")
}

/** The first four bytes of the hash of the name, the signature type and the key. */
const keyId = (name: string, publicKey: Buffer): Buffer =>
  createHash("sha256").update(`${name}\n`).update(ed25519).update(publicKey).digest().subarray(0, 4)

/** The text by which verifiers are told the key: `<origin>+<key id>+<type and key>`. Takes either half of the pair. */
export const verifierKey = (origin: LogOrigin, key: KeyObject): string => {
  const publicKey = rawKey(key)
  return [
    origin,
    keyId(origin, publicKey).toString("hex"),
    Buffer.concat([ed25519, publicKey]).toString("base64"),
  ].join("+")
}

const lineOf = (text: string, name: string, privateKey: KeyObject): string => {
  const signature = sign(null, Buffer.from(text), privateKey)
  return `— ${name} ${Buffer.concat([keyId(name, rawKey(privateKey)), signature]).toString("base64")}\n`
}

/** The note of a text that ends with a line end. Ed25519 gives one text and key the same note each time. */
export const signedNote = (text: string, name: string, privateKey: KeyObject): string =>
  `${text}\n${lineOf(text, name, privateKey)}`

const textOf = ({ origin, root, size }: CheckpointTree) =>
  `${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n`

/** What a checkpoint says. */
export interface CheckpointTree {
  readonly origin: LogOrigin
  readonly size: number
  readonly root: Uint8Array
}

/** The signed checkpoint of a tree, with a line of each key. Ed25519 gives one tree and key the same line each time. */
export const signedCheckpoint = (tree: CheckpointTree, ...privateKeys: ReadonlyArray<KeyObject>): string => {
  const text = textOf(tree)
  return `${text}\n${privateKeys.map((key) => lineOf(text, tree.origin, key)).join("")}`
}

/** Whether one of these keys of the log (`verifierKey`) has signed the checkpoint, and it is this tree's. */
export const isSignedBy = (
  verifierKeys: ReadonlyArray<string>,
  checkpoint: string,
  tree: CheckpointTree,
): boolean => {
  const text = textOf(tree)
  if (!checkpoint.startsWith(`${text}\n`)) return false
  const lines = checkpoint.slice(text.length + 1).split("\n")
  return verifierKeys.some((published) => {
    // The key in base64 may have `+` as well.
    const [, id, ...encoded] = published.split("+")
    const x = Buffer.from(encoded.join("+"), "base64").toString("base64url", 1)
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
    const prefix = `— ${tree.origin} `
    return lines.some((line) => {
      const bytes = line.startsWith(prefix) ? Buffer.from(line.slice(prefix.length), "base64") : Buffer.alloc(0)
      return bytes.length === 68 && bytes.toString("hex", 0, 4) === id &&
        verify(null, Buffer.from(text), key, bytes.subarray(4))
    })
  })
}
