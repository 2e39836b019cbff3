/**
 * Opens signed notes (C2SP signed-note): a text, an empty line, and a line for each signature. Two signature types are
 * known, both Ed25519 (RFC 8032): that of a note's author, and the timestamped cosignature of a witness (C2SP
 * tlog-cosignature). Lines of other keys are ignored, as the specification demands.
 */
import { createHash, createPublicKey, verify } from "node:crypto"
import { Refusal } from "./Refusal.ts"

/** A key that a verifier trusts. */
export interface NoteKey {
  readonly name: string
  /** Four bytes, in hexadecimal digits. */
  readonly id: string
  readonly isWitness: boolean
  /**
   * Checks the signature of a note's text; null: it is wrong. Returns the time of a witness's signature, in seconds since
   * 1970, and 0 for an author's.
   */
  readonly check: (text: string, signature: Uint8Array) => number | null
}

export interface OpenedNote {
  /** Ends with a line end. */
  readonly text: string
  /** The trusted keys that signed, each once. At least one. */
  readonly signers: ReadonlyArray<{ readonly key: NoteKey; readonly at: number }>
}

const maxNote = 64 * 1024
const maxSignatures = 100

const types = { author: 0x01, witness: 0x04 } as const
const signatureBytes = 64

/** The bytes of a text in canonical base64; null for any other text. */
export const bytesOf = (text: string): Buffer | null => {
  const bytes = Buffer.from(text, "base64")
  return bytes.toString("base64") === text ? bytes : null
}

const idOf = (name: string, material: Uint8Array): string =>
  createHash("sha256").update(`${name}\n`).update(material).digest("hex").slice(0, 8)

/** Names have no spaces and no plus sign. */
const keyForm = /^([^+\s\p{Cc}]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]{1,100})$/u

/** Reads a key as its owner publishes it: `name+id+base64`. Throws Refusal (`key`). */
export const noteKey = (published: string): NoteKey => {
  const [, name, id, encoded] = keyForm.exec(published) ?? []
  const material = bytesOf(encoded ?? "")
  if (name === undefined || id === undefined || material === null) {
    throw new Refusal("key", "not of the form name+id+base64")
  }
  const isWitness = material[0] === types.witness
  if (material.length !== 33 || (!isWitness && material[0] !== types.author)) {
    throw new Refusal("key", "not an Ed25519 key of a log or a witness")
  }
  if (idOf(name, material) !== id) throw new Refusal("key", "its id is another key's")
  const jwk = { kty: "OKP", crv: "Ed25519", x: material.subarray(1).toString("base64url") }
  const key = createPublicKey({ key: jwk, format: "jwk" })
  const signed = (text: string, signature: Uint8Array) =>
    signature.length === signatureBytes && verify(null, Buffer.from(text), key, signature)
  const checkCosignature = (text: string, signature: Uint8Array): number | null => {
    if (signature.length !== 8 + signatureBytes) return null
    const at = Buffer.from(signature).readBigUInt64BE(0)
    const seconds = Number(at)
    if (!Number.isSafeInteger(seconds)) return null
    return signed(`cosignature/v1\ntime ${seconds}\n${text}`, signature.subarray(8)) ? seconds : null
  }
  const check = isWitness
    ? checkCosignature
    : (text: string, signature: Uint8Array) => signed(text, signature) ? 0 : null
  return { name, id, isWitness, check }
}

const hasControls = (note: string): boolean => [...note].some((character) => character < " " && character !== "\n")

const lineForm = /^— ([^+\s\p{Cc}]+) ([A-Za-z0-9+/=]+)$/u

/** The name, the key id and the signature of a line. */
const lineOf = (line: string) => {
  const [, name, encoded] = lineForm.exec(line) ?? []
  const bytes = bytesOf(encoded ?? "")
  if (name === undefined || bytes === null || bytes.length < 5) {
    throw new Refusal("note", "a signature line is malformed")
  }
  return { name, id: bytes.subarray(0, 4).toString("hex"), signature: bytes.subarray(4) }
}

/**
 * Opens a note that at least one of the keys signed. Throws Refusal: `size`, `note` (malformed), `kid` (no trusted key
 * signed it) or `signature` (a trusted key's signature is of another text).
 */
export const openNote = (note: string, keys: ReadonlyArray<NoteKey>): OpenedNote => {
  if (note.length > maxNote) throw new Refusal("size", `more than ${maxNote} characters`)
  const end = note.lastIndexOf("\n\n")
  // A lone surrogate has no UTF-8.
  if (end < 1 || !note.endsWith("\n") || hasControls(note) || !note.isWellFormed()) {
    throw new Refusal("note", "not a text, an empty line and signatures")
  }
  const text = note.slice(0, end + 1)
  const lines = note.slice(end + 2, -1).split("\n")
  if (lines.length > maxSignatures) throw new Refusal("size", `more than ${maxSignatures} signatures`)
  const signers = new Map<NoteKey, number>()
  for (const { id, name, signature } of lines.map(lineOf)) {
    const key = keys.find((key) => key.name === name && key.id === id)
    if (key === undefined || signers.has(key)) continue
    const at = key.check(text, signature)
    if (at === null) throw new Refusal("signature", `not of this text, by ${name}`)
    signers.set(key, at)
  }
  if (signers.size === 0) throw new Refusal("kid", "no trusted key signed it")
  return { text, signers: [...signers].map(([key, at]) => ({ key, at })) }
}
