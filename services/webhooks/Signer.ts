/**
 * The two signatures of a delivery, and its headers.
 *
 * - `X-Webhook-Signature` (the specification): lowercase hex HMAC-SHA256 of the body, the key being the bytes of the
 *   whole secret, `whsec_` included.
 * - `webhook-signature` (Standard Webhooks 1.0): `v1,` + base64 HMAC-SHA256 of `id.timestamp.body`, the key being the
 *   base64 decoded after `whsec_`; during a rotation's overlap one for each secret, separated by a space.
 *
 * Under Deno the system's OpenSSL computes them if it can be loaded (OpenSslHmac.ts), in a quarter of the time.
 * Otherwise HMAC is two one-shot hashes with pads that are computed once per secret (RFC 2104, section 4), at about
 * half the cost of `createHmac`.
 */
import { Buffer } from "node:buffer"
import { createHash, hash } from "node:crypto"
import { type Mac, openSslMac } from "../platform/security/OpenSslHmac.ts"

const prefix = "whsec_"
const blockBytes = 64
const digestBytes = 32
const generationSecrets = 2_048
const shown = Buffer.alloc(digestBytes)

export const userAgent = "Bailiwick-Webhooks/0.2.0"

// The message is copied once to `messageAt`, and each key writes its pad and head right before it, for all signatures
// of a delivery. All of this is synchronous, so no other delivery writes to the buffer in between.
const messageAt = 1_024
let scratch = Buffer.allocUnsafe(messageAt + 64 * 1_024)
let messageEnd = messageAt

const lay = (message: Uint8Array | string): void => {
  const length = typeof message === "string" ? Buffer.byteLength(message) : message.length
  messageEnd = messageAt + length
  if (scratch.length < messageEnd) scratch = Buffer.allocUnsafe(messageEnd)
  if (typeof message === "string") scratch.write(message, messageAt)
  else scratch.set(message, messageAt)
}

/** HMAC-SHA256 with one key (RFC 2104); by node:crypto if `macOf` gives null. */
export class HmacKey {
  readonly #mac: Mac | null
  readonly #inner = Buffer.alloc(blockBytes, 0x36)
  readonly #outer = Buffer.alloc(blockBytes + digestBytes, 0x5c)

  constructor(key: Uint8Array, macOf: (key: Uint8Array) => Mac | null = openSslMac) {
    const bytes = key.length > blockBytes ? createHash("sha256").update(key).digest() : key
    for (let index = 0; index < bytes.length; index++) {
      this.#inner[index]! ^= bytes[index]!
      this.#outer[index]! ^= bytes[index]!
    }
    this.#mac = macOf(bytes)
  }

  /** The digest of `head` (ASCII, at most 960 characters) followed by `message`. */
  digest(head: string, message: Uint8Array | string, encoding: "hex" | "base64"): string {
    lay(message)
    return this.ofLaid(head, encoding)
  }

  /** The digest of `head` followed by the message in the buffer. */
  ofLaid(head: string, encoding: "hex" | "base64"): string {
    const headAt = messageAt - head.length
    for (let index = 0; index < head.length; index++) scratch[headAt + index] = head.charCodeAt(index)
    if (this.#mac !== null) {
      // A plain view: under Deno, creating a Buffer view takes longer than the hash.
      shown.set(this.#mac(new Uint8Array(scratch.buffer, scratch.byteOffset + headAt, messageEnd - headAt)))
      return shown.toString(encoding)
    }
    const start = headAt - blockBytes
    scratch.set(this.#inner, start)
    this.#outer.set(hash("sha256", scratch.subarray(start, messageEnd), "buffer"), blockBytes)
    return hash("sha256", this.#outer, encoding)
  }
}

interface Keys {
  readonly whole: HmacKey
  readonly standard: HmacKey
}

// A cache of two generations instead of an LRU list: a hit is one look-up; keys not used for a whole generation are
// dropped.
let recent = new Map<string, Keys>()
let older = new Map<string, Keys>()

const keysOf = (secret: string): Keys => {
  const found = recent.get(secret)
  if (found !== undefined) return found
  const keys = older.get(secret) ?? {
    whole: new HmacKey(Buffer.from(secret, "utf8")),
    standard: new HmacKey(Buffer.from(secret.startsWith(prefix) ? secret.slice(prefix.length) : secret, "base64")),
  }
  if (recent.size >= generationSecrets) {
    older = recent
    recent = new Map()
  }
  recent.set(secret, keys)
  return keys
}

/** Number of secrets in the cache. */
export const secretsKept = (): number => recent.size + older.size

/** Generates a signing secret: `whsec_` and the base64 of 32 random bytes. */
export const generateSecret = (): string =>
  prefix + Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(32))).toString("base64")

const standardOfLaid = (secrets: ReadonlyArray<string>, id: string, timestamp: number): string => {
  const head = `${id}.${timestamp}.`
  const signed = (secret: string) => `v1,${keysOf(secret).standard.ofLaid(head, "base64")}`
  return secrets.length === 1 ? signed(secrets[0]!) : secrets.map(signed).join(" ")
}

/** The value of `X-Webhook-Signature`. */
export const signature = (secret: string, body: Uint8Array | string): string =>
  keysOf(secret).whole.digest("", body, "hex")

/** The value of `webhook-signature`; `id` is ASCII, `timestamp` in seconds, the newest secret first. */
export const standardSignature = (
  secrets: ReadonlyArray<string>,
  id: string,
  timestamp: number,
  body: Uint8Array | string,
): string => {
  lay(body)
  return standardOfLaid(secrets, id, timestamp)
}

export interface Delivery {
  readonly deliveryId: string
  readonly eventType: string
  /** 1 … 8. */
  readonly attempt: number
  /** The time of this attempt, in seconds since the epoch. */
  readonly timestampSeconds: number
  /** The body as sent, the same for every attempt. */
  readonly body: Uint8Array | string
  /** The webhook's secret and, during a rotation's overlap, the previous one. */
  readonly secrets: readonly [current: string, previous?: string]
}

/** The headers of a delivery's request. */
export const headersFor = (delivery: Delivery): Record<string, string> => {
  const { attempt, deliveryId, eventType, secrets: [current, previous], timestampSeconds } = delivery
  lay(delivery.body)
  return {
    "content-type": "application/json",
    "User-Agent": userAgent,
    "X-Webhook-Signature": keysOf(current).whole.ofLaid("", "hex"),
    "X-Webhook-Event": eventType,
    "X-Webhook-Delivery": deliveryId,
    "X-Webhook-Attempt": String(attempt),
    "webhook-id": deliveryId,
    "webhook-timestamp": String(timestampSeconds),
    "webhook-signature": standardOfLaid(
      previous === undefined ? [current] : [current, previous],
      deliveryId,
      timestampSeconds,
    ),
  }
}
