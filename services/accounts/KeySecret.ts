/** The secret of an API key: `mail_k_` and 256 random bits in 43 base62 digits, the number that 256 bits need. */
import { Effect } from "effect"

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const length = 43
const start = "mail_k_"

/** 32 bytes in base62, the most significant digit first. */
export const encode = (bytes: Uint8Array): string => {
  let value = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)
  let text = ""
  for (let i = 0; i < length; i++) {
    text = digits[Number(value % 62n)] + text
    value /= 62n
  }
  return text
}

/** A new key and the first 8 characters after `mail_k_`, by which people tell their keys apart. */
export const newKey = Effect.sync(() => {
  const secret = encode(globalThis.crypto.getRandomValues(new Uint8Array(32)))
  return { key: start + secret, prefix: secret.slice(0, 8) }
})
