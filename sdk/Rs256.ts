/**
 * Whether an RSA key made a signature: RS256 (RFC 7518, 3.3), which is RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, 8.2.2).
 * What the signature comes to under the key is compared, as a whole number, with the one block that it should come to:
 * nothing is parsed, so no other padding, algorithm name or length can be taken for it, and a signature has one form.
 *
 * Node asks its OpenSSL, at once: 20 µs a signature, where a thread beside takes 32 to 56. Deno's own RSA takes 127 µs at
 * once and 180 to 200 beside, for 16 squarings and a product of numbers that its engine has in 27 µs: there the program
 * reckons, by the system's OpenSSL where it may (a third of that), else by its engine's numbers. It is the public key's
 * side: there is no secret that the time it takes could tell.
 */
import { createHash, createPublicKey, verify } from "node:crypto"
import process from "node:process"
import { powers } from "./Libcrypto.ts"

export interface PublicKey {
  /** Whether the key made this signature of the text's UTF-8. */
  readonly made: (signature: Uint8Array, text: string) => boolean
}

/** An RSA public key as a JWK has it. */
export interface RsaKey {
  readonly n: string
  readonly e: string
}

/** Of a modulus; RFC 7518, 3.3. */
const fewestBits = 2_048
/** 65537, the exponent of all keys that are made nowadays; it is what `reckoned` reckons with. */
const usual = "AQAB"

/** DigestInfo of SHA-256 up to the hash (RFC 8017, 9.2, note 1). */
const digestInfo = "3031300d060960864801650304020105000420"
const hashBits = 256n

const number = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString("hex") || "0"}`)

/** By whole numbers. */
export const reckoned = (modulus: bigint): PublicKey => {
  const size = Math.ceil(modulus.toString(16).length / 2)
  const padding = "ff".repeat(size - 3 - (digestInfo.length + 64) / 2)
  const block = BigInt(`0x01${padding}00${digestInfo}`) << hashBits
  return {
    made: (signature, text) => {
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

/** By the system's OpenSSL; null where that cannot be had, or reckons otherwise than the engine does. */
export const raised = (modulus: bigint): PublicKey | null => {
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
    made: (signature, text) => {
      const found = power(signature)
      if (found === null || before.compare(found, 0, size - 32) !== 0) return false
      // As text: of a hash Deno makes its digits faster than its bytes.
      return found.toString("hex", size - 32) === createHash("sha256").update(text, "utf8").digest("hex")
    },
  }
}

/** By what the runtime brings along. */
export const native = (key: RsaKey): PublicKey => {
  const known = createPublicKey({ key: { kty: "RSA", n: key.n, e: key.e }, format: "jwk" })
  return { made: (signature, text) => verify("sha256", Buffer.from(text, "utf8"), known, signature) }
}

/** Null where the key is none, or too short for anybody to rely on. */
export const rs256 = (key: RsaKey): PublicKey | null => {
  const modulus = number(Buffer.from(key.n, "base64url"))
  if (modulus.toString(2).length < fewestBits) return null
  try {
    const reckons = process.versions["deno"] !== undefined && key.e === usual
    return reckons ? raised(modulus) ?? reckoned(modulus) : native(key)
  } catch {
    return null
  }
}
