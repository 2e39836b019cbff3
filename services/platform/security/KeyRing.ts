/**
 * The key ring: `{"active": "<kid>", "keys": {"<kid>": "<base64 of 32 bytes>"}}`. The active key seals new secrets, the
 * others open existing ones.
 */
import { Redacted, Schema } from "effect"
import { createHmac, hkdfSync, randomBytes } from "node:crypto"
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import process from "node:process"

/** The reason why a process must not start: one line for the operator. */
export class VaultError extends Schema.TaggedError<VaultError>()("VaultError", { message: Schema.String }) {}

export interface Ring {
  readonly active: string
  readonly keys: ReadonlyMap<string, Uint8Array>
}

const KeyId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._-]{1,64}$/))
const RingText = Schema.fromJsonString(
  Schema.Struct({ active: KeyId, keys: Schema.Record(KeyId, Schema.Uint8ArrayFromBase64) }),
)
const decode = Schema.decodeUnknownSync(RingText)
const example = `{"active":"k1","keys":{"k1":"<32 bytes in base64>"}}`

/** Reads a ring's text; `from` names the variable or file in the error, which never shows the text. */
export const parseRing = (text: Redacted.Redacted, from: string): Ring => {
  let ring: typeof RingText.Type
  try {
    ring = decode(Redacted.value(text))
  } catch {
    throw new VaultError({ message: `${from} is not a key ring: it should look like ${example}` })
  }
  const keys = new Map(Object.entries(ring.keys))
  for (const [kid, key] of keys) {
    if (key.length !== 32) {
      throw new VaultError({ message: `${from}: key ${kid} has ${key.length} bytes instead of 32` })
    }
  }
  if (!keys.has(ring.active)) throw new VaultError({ message: `${from}: the active key ${ring.active} is not in it` })
  return { active: ring.active, keys }
}

const hasCode = (error: unknown, code: string) => error instanceof Error && "code" in error && error.code === code

/** Reads a ring's file; null where there is none. Fails where users other than its owner may read the file. */
export const readRing = (file: string): Ring | null => {
  let text: string
  try {
    if (process.platform !== "win32" && (statSync(file).mode & 0o077) !== 0) {
      throw new VaultError({ message: `BAILIWICK_KEYS_FILE: ${file} can be read by others, type: chmod 600 ${file}` })
    }
    text = readFileSync(file, "utf8")
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null
    if (error instanceof VaultError) throw error
    throw new VaultError({ message: `BAILIWICK_KEYS_FILE: ${file} cannot be read: ${(error as Error).message}` })
  }
  return parseRing(Redacted.make(text), `BAILIWICK_KEYS_FILE ${file}`)
}

/** Syncs a folder's entries to the disk, where the system can sync folders. */
const syncFolder = (folder: string) => {
  if (process.platform === "win32") return
  const fd = openSync(folder, "r")
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/**
 * Makes a ring of one key and writes it, readable by its owner only, to the disk before this returns: a moment later
 * the database may hold secrets that only this ring opens. The file is complete or absent, whatever happens meanwhile.
 */
export const makeRing = (file: string): Ring => {
  const kid = `k${randomBytes(6).toString("hex")}`
  const text = JSON.stringify({ active: kid, keys: { [kid]: randomBytes(32).toString("base64") } })
  const unfinished = `${file}.${randomBytes(4).toString("hex")}.new`
  try {
    const fd = openSync(unfinished, "wx", 0o600)
    try {
      writeFileSync(fd, `${text}\n`)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(unfinished, file)
    syncFolder(dirname(file))
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw new VaultError({ message: `BAILIWICK_KEYS_FILE: ${file} cannot be written: ${(error as Error).message}` })
  }
  return parseRing(Redacted.make(text), file)
}

/** A key for one purpose only, from a key of the ring (HKDF-SHA-256, RFC 5869). */
export const deriveKey = (key: Uint8Array, purpose: string): Buffer =>
  Buffer.from(hkdfSync("sha256", key, "bailiwick", purpose, 32))

/**
 * The check value of a key in the database: shows whether two processes mean the same key by a kid, and nothing else.
 */
export const checkValue = (kid: string, key: Uint8Array): Uint8Array =>
  createHmac("sha256", deriveKey(key, "check")).update(kid).digest()
