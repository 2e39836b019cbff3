/**
 * The key of a witness as its operator publishes it, `name+id+base64`, and the check of its timestamped Ed25519
 * cosignatures (C2SP tlog-cosignature).
 */
import { createHash, createPublicKey, verify } from "node:crypto"

/** The signature type of a timestamped cosignature. */
const witnessType = 0x04

export interface WitnessKey {
  /** As it is published. */
  readonly key: string
  readonly name: string
  /** Whether the line is this witness's cosignature of a checkpoint's text. */
  readonly hasSigned: (text: string, line: string) => boolean
}

const keyForm = /^([^+\s\p{Cc}]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]{44})$/u

/** Reads a key; null where it is none of a witness. */
export const witnessKey = (key: string): WitnessKey | null => {
  const [, name, id, encoded] = keyForm.exec(key) ?? []
  if (name === undefined || id === undefined || encoded === undefined) return null
  const material = Buffer.from(encoded, "base64")
  const digest = createHash("sha256").update(`${name}\n`).update(material).digest()
  if (material[0] !== witnessType || digest.toString("hex", 0, 4) !== id) return null
  const jwk = { kty: "OKP", crv: "Ed25519", x: material.toString("base64url", 1) }
  const publicKey = createPublicKey({ key: jwk, format: "jwk" })
  const prefix = `— ${name} `
  const hasSigned = (text: string, line: string) => {
    if (!line.startsWith(prefix)) return false
    const bytes = Buffer.from(line.slice(prefix.length), "base64")
    // The spelling is checked as well: a line that another verifier finds malformed would spoil the whole checkpoint.
    if (bytes.length !== 4 + 8 + 64 || bytes.toString("base64") !== line.slice(prefix.length)) return false
    const time = bytes.readBigUInt64BE(4)
    return bytes.toString("hex", 0, 4) === id && time <= BigInt(Number.MAX_SAFE_INTEGER) &&
      verify(null, Buffer.from(`cosignature/v1\ntime ${time}\n${text}`), publicKey, bytes.subarray(12))
  }
  return { key, name, hasSigned }
}

/** One of `LOG_WITNESSES`. */
export interface ConfiguredWitness {
  readonly key: WitnessKey
  /** `add-checkpoint` is below it. */
  readonly url: string
}
