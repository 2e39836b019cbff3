/**
 * Verifies the envelope of a token and returns its claims. It checks in this order and stops at the first failure:
 * size, compact form, header (`typ`, `alg`, a pinned `kid`), signature, `iss`, `aud`, neither `sub` nor `exp`. A header
 * cannot supply a key: `jku`, `jwk`, `x5u`, `x5c`, `crit` and `b64` are refused.
 *
 * Each message's own signature is checked, also in a page whose events chain each other. The chain's digests cover only
 * the subject, the event and its position. If a page were trusted for its last signature, an attacker could change a
 * `jti` (a revocation under a known `jti` changes nothing), a `txn`, `iat`, `kid` or cursor, and the product acts on
 * all of them. Only the signature covers every byte.
 *
 * Standards: RFC 7515 (JWS), RFC 8417 (SET), Shared Signals Framework 1.0.
 */
import { isAscii } from "node:buffer"
import type { Json } from "./Canonical.ts"
import type { PinnedKeys } from "./Keys.ts"
import { Refusal, type RefusalStep } from "./Refusal.ts"

/** The claims that a message must match to be accepted. */
export interface Pins {
  readonly issuer: string
  readonly audience: string
  readonly keys: PinnedKeys
  /** Seconds since the epoch. */
  readonly now: () => number
}

export type Claims = { readonly [name: string]: Json }

const skewSeconds = 60
const refusedHeaders = ["jku", "jwk", "x5u", "x5c", "crit", "b64"]

export const refuse = (step: RefusalStep, message: string): never => {
  throw new Refusal(step, message)
}

export const isObject = (value: Json | undefined): value is Claims =>
  value !== null && typeof value === "object" && !Array.isArray(value)

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The JSON object in a part of a token. */
const objectOf = (part: string, step: RefusalStep): Claims => {
  try {
    const bytes = Buffer.from(part, "base64url")
    const value: Json = JSON.parse(isAscii(bytes) ? bytes.toString("latin1") : utf8.decode(bytes))
    if (isObject(value)) return value
  } catch {
    // Refused below.
  }
  return refuse(step, "not a JSON object")
}

const mediaType = (typ: Json | undefined): string | null =>
  typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : null

/** Claims of a token whose envelope was verified. */
export interface VerifiedClaims {
  readonly claims: Claims
  /** The key that signed it. */
  readonly kid: string
}

interface Header {
  readonly typ: string | null
  readonly kid: Json | undefined
}

/** Reads and checks a header, except whether its `kid` is pinned. */
const headerOf = (head: string, typ: string): Header => {
  const header = objectOf(head, "header")
  const checked = { typ: mediaType(header["typ"]), kid: header["kid"] }
  if (checked.typ !== typ) refuse("typ", `not ${typ}`)
  if (header["alg"] !== "RS256") refuse("alg", "not RS256")
  const named = refusedHeaders.find((name) => name in header)
  return named === undefined ? checked : refuse("header", `${named} is not supported`)
}

/** The last header and its text, cached: all messages of one key have the same header. */
let last: { readonly head: string; readonly header: Header } | null = null

/** The pinned kid of a valid header. */
const kidOf = (head: string, typ: string, pins: Pins): string => {
  const header = last?.head === head && last.header.typ === typ ? last.header : headerOf(head, typ)
  // Copies the text: a substring would keep the whole token in memory.
  if (last?.header !== header) last = { head: Buffer.from(head, "latin1").toString("latin1"), header }
  const { kid } = header
  return typeof kid === "string" && pins.keys.pinned(kid) ? kid : refuse("kid", "not a pinned key")
}

/** The claims of a token of this type, signed by a pinned key, with the expected issuer and audience. */
export const claimsOf = async (token: string, typ: string, maxBytes: number, pins: Pins): Promise<VerifiedClaims> => {
  if (token.length > maxBytes) refuse("size", `more than ${maxBytes} bytes`)
  if (!/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/.test(token)) refuse("compact", "not a compact JWS")
  const [head, body, end] = token.split(".") as [string, string, string]
  const kid = kidOf(head, typ, pins)
  const key = await pins.keys.key(kid)
  const signature = Buffer.from(end, "base64url")
  // Unused bits at the end of the base64url text must be zero: otherwise a token would have several forms.
  if (signature.toString("base64url") !== end || !key.verify(signature, token.slice(0, -end.length - 1))) {
    refuse("signature", "does not match the key")
  }
  const claims = objectOf(body, "claims")
  if (claims["iss"] !== pins.issuer) refuse("iss", "another issuer")
  const { aud } = claims
  if (aud !== pins.audience && !(Array.isArray(aud) && aud.includes(pins.audience))) refuse("aud", "another audience")
  for (const name of ["sub", "exp"] as const) {
    if (name in claims) refuse(name, "must not be present")
  }
  return { claims, kid }
}

/** When the token was signed, in seconds since the epoch; at most one minute ahead of the local clock. */
export const issuedAt = ({ iat }: Claims, now: number): number =>
  typeof iat === "number" && Number.isFinite(iat) && iat >= 0 && iat <= now + skewSeconds
    ? iat
    : refuse("iat", "missing, or in the future")

/** The token's id: visible ASCII, at most 200 characters. */
export const jtiOf = ({ jti }: Claims): string =>
  typeof jti === "string" && /^[\x21-\x7e]{1,200}$/.test(jti)
    ? jti
    : refuse("jti", "missing, too long or not visible ASCII")
