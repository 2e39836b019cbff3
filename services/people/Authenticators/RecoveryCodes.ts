/** Recovery codes: ten of 128 random bits, shown once; only an HMAC under a key of the Vault is stored. */
import { Redacted } from "effect"
import { createHmac, randomBytes } from "node:crypto"
import type { AuthenticatorId } from "../../../schemas/BrandedIds.ts"
import type { Vault } from "../../platform/security/Vault.ts"

const purpose = "recovery-codes"
export const codesInSet = 10

const digits = "abcdefghijklmnopqrstuvwxyz234567"

/** 128 bits in base32, in groups that can be typed: `abcde-fghij-…`. */
const encode = (bytes: Uint8Array): string => {
  let value = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)
  let text = ""
  for (let i = 0; i < 26; i++) {
    text = digits[Number(value % 32n)] + text
    value /= 32n
  }
  return text.match(/.{1,5}/g)!.join("-")
}

export const newCodes = (): ReadonlyArray<string> =>
  Array.from({ length: codesInSet }, () => encode(new Uint8Array(randomBytes(16))))

/** The hash under which a code is stored; `kid` names the key of existing codes. */
export const hashOf = (vault: Vault["Service"], authenticatorId: AuthenticatorId, code: string, kid?: string) => {
  const key = vault.derive(purpose, kid)
  const plain = code.toLowerCase().replaceAll(/[^a-z2-7]/g, "")
  const hash = createHmac("sha256", Redacted.value(key.key)).update(`${authenticatorId}\0${plain}`).digest()
  return { kid: key.kid, hash: new Uint8Array(hash) }
}
