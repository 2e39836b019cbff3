/**
 * Verifies RS256 signatures (RFC 7518, 3.3): RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, 8.2.2). The result of the public
 * operation is compared, as a whole, with the one valid block. Nothing is parsed, so no other padding, algorithm
 * identifier or length passes, and a signature has exactly one form.
 *
 * Under Node: its OpenSSL, synchronously, 20 µs a signature (on another thread 32 to 56 µs). Under Deno, whose own RSA
 * takes 127 µs synchronously and 180 to 200 µs on another thread: BigInt arithmetic (27 µs), or the system's OpenSSL if
 * it may be loaded (a third of that). Only the public key is used, so timing reveals no secret.
 */
import { createHash, createPublicKey, verify as verifySignature } from "node:crypto"
import process from "node:process"
import { powers } from "./Libcrypto.ts"

export interface PublicKey {
  /** Whether this is the key's signature of the text's UTF-8. */
  readonly verify: (signature: Uint8Array, text: string) => boolean
}

/** An RSA public key, as in a JWK. */
export interface RsaKey {
  readonly n: string
  readonly e: string
}

/** Minimum length of a modulus; RFC 7518, 3.3. */
const minBits = 2_048
/** 65537, the exponent of nearly all keys; the only one that `bigIntKey` and `openSslKey` support. */
const exponent65537 = "AQAB"

/** DigestInfo of SHA-256 up to the hash (RFC 8017, 9.2, note 1). */
const digestInfo = "3031300d060960864801650304020105000420"
const hashBits = 256n

const number = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString("hex") || "0"}`)

/** A key that verifies by BigInt arithmetic. */
export const bigIntKey = (modulus: bigint): PublicKey => {
  const size = Math.ceil(modulus.toString(16).length / 2)
  const padding = "ff".repeat(size - 3 - (digestInfo.length + 64) / 2)
  const block = BigInt(`0x01${padding}00${digestInfo}`) << hashBits
  return {
    verify: (signature, text) => {
      if (signature.length !== size) return false
      const given = number(signature)
      if (given >= modulus) return false
      let power = given
      for (let squared = 0; squared < 16; squared++) power = power * power % modulus
      const hash = createHash("sha256").update(text, "utf8").digest("hex")
      return power * given % modulus === (block | BigInt(`0x${hash}`))
    },
  }
}

/** A key that verifies by the system's OpenSSL; null without OpenSSL, or if a probe differs from BigInt arithmetic. */
export const openSslKey = (modulus: bigint): PublicKey | null => {
  const digits = modulus.toString(16)
  const size = Math.ceil(digits.length / 2)
  const power = powers(Buffer.from(digits.padStart(2 * size, "0"), "hex"))
  if (power === null) return null
  const probe = modulus - 2n
  let expected = probe
  for (let squared = 0; squared < 16; squared++) expected = expected * expected % modulus
  const probed = power(Buffer.from(probe.toString(16).padStart(2 * size, "0"), "hex"))
  if (probed === null || number(probed) !== expected * probe % modulus) return null
  const before = Buffer.alloc(size - 32, 0xff)
  before.set([0, 1])
  before.write(`00${digestInfo}`, size - 32 - 1 - digestInfo.length / 2, "hex")
  return {
    verify: (signature, text) => {
      const found = power(signature)
      if (found === null || before.compare(found, 0, size - 32) !== 0) return false
      // Compares hexadecimal text: Deno gives a hash's digits faster than its bytes.
      return found.toString("hex", size - 32) === createHash("sha256").update(text, "utf8").digest("hex")
    },
  }
}

/** A key that verifies by the runtime's own `node:crypto`. */
export const nativeKey = (key: RsaKey): PublicKey => {
  const known = createPublicKey({ key: { kty: "RSA", n: key.n, e: key.e }, format: "jwk" })
  return { verify: (signature, text) => verifySignature("sha256", Buffer.from(text, "utf8"), known, signature) }
}

/** The fastest of them under this runtime; null if the key is invalid or shorter than 2048 bits. */
export const rs256 = (key: RsaKey): PublicKey | null => {
  const modulus = number(Buffer.from(key.n, "base64url"))
  if (modulus.toString(2).length < minBits) return null
  try {
    const own = process.versions["deno"] !== undefined && key.e === exponent65537
    return own ? openSslKey(modulus) ?? bigIntKey(modulus) : nativeKey(key)
  } catch {
    return null
  }
}
