/**
 * A log's checkpoint: its size and root in the text of C2SP tlog-checkpoint, as a signed note (C2SP signed-note) with
 * an Ed25519 signature (RFC 8032) of the log. Witnesses add their lines below.
 */
import { createHash, createPublicKey, type KeyObject, sign } from "node:crypto"

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

/** The note of a text that ends with a line end. Ed25519 gives one text and key the same note each time. */
export const signedNote = (text: string, name: string, privateKey: KeyObject): string => {
  const signature = sign(null, Buffer.from(text), privateKey)
  const line = Buffer.concat([keyId(name, rawKey(privateKey)), signature]).toString("base64")
  return `${text}\n— ${name} ${line}\n`
}

/** The signed checkpoint of a tree. */
export const signedCheckpoint = (
  { origin, root, size }: { readonly origin: LogOrigin; readonly size: number; readonly root: Uint8Array },
  privateKey: KeyObject,
): string => signedNote(`${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n`, origin, privateKey)
