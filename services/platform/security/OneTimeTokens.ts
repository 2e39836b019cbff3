/**
 * One-time tokens, for links in mails. A token is never stored: it is an HMAC over kind, id and a nonce under a key of
 * the Vault that serves no other purpose, so a process with the row and the ring can make it again (the Mailer does)
 * and a reader of the database alone cannot. A row stores kid, nonce and the token's SHA-256; the kid keeps the token
 * valid through a change of keys, so a key stays in the ring while a live row names it.
 *
 * The row makes sure that a token acts once: the statement that uses the token also deletes its hash, or marks it as
 * used.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { createHash, createHmac, randomBytes } from "node:crypto"
import { Vault } from "./Vault.ts"

const purpose = "one-shot-tokens"

/** The values that a row stores beside its own kind and id. */
export interface IssuedToken {
  readonly kid: string
  /** 16 random bytes. */
  readonly nonce: Uint8Array
  /** SHA-256 of the token, 32 bytes: what a lookup compares. */
  readonly hash: Uint8Array
}

export interface TokenInput {
  /** The token's purpose, for example `transfer-accept`. */
  readonly kind: string
  /** The row that the token acts on. */
  readonly id: string
  readonly kid: string
  readonly nonce: Uint8Array
}

export class OneTimeTokens extends Context.Service<OneTimeTokens, {
  /** Makes a new token's row values; neither argument may hold 0x00. */
  readonly issue: (kind: string, id: string) => IssuedToken
  /** The token: 256 bits in base64url (43 characters). Throws VaultError where the ring lacks the kid. */
  readonly derive: (input: TokenInput) => Redacted.Redacted<string>
  /** The hash of any text that claims to be a token, as `issue` makes it. */
  readonly hash: (token: string) => Uint8Array
}>()("bailiwick/services/platform/security/OneTimeTokens") {
  static readonly layer = Layer.effect(
    OneTimeTokens,
    Effect.map(Vault, (vault) => {
      const derive = ({ id, kid, kind, nonce }: TokenInput) => {
        if (kind.includes("\0") || id.includes("\0")) throw new Error("0x00 separates the parts of a token")
        const key = Redacted.value(vault.derive(purpose, kid).key)
        const token = createHmac("sha256", key).update(`${kind}\0${id}\0`).update(nonce).digest("base64url")
        return Redacted.make(token, { label: "token" })
      }
      const hash = (token: string): Uint8Array => new Uint8Array(createHash("sha256").update(token).digest())
      return OneTimeTokens.of({
        issue: (kind, id) => {
          const { kid } = vault.derive(purpose)
          const nonce = new Uint8Array(randomBytes(16))
          return { kid, nonce, hash: hash(Redacted.value(derive({ kind, id, kid, nonce }))) }
        },
        derive,
        hash,
      })
    }),
  )
}
