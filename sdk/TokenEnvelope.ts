/**
 * The claims of a token that may be believed as far as its envelope goes. Fail closed, in this order: size, compact form,
 * header (`typ`, `alg`, `kid` among the pinned ones), signature, `iss`, `aud`, neither `sub` nor `exp`. Nothing in the
 * header names a key: `jku`, `jwk`, `x5u`, `x5c`, `crit` and `b64` are refused.
 *
 * Each message's own signature is checked, also where messages come in pages and chain each other. The chain's digests are
 * of the subject, the event and its place: a page that is believed for its last signature could have another `jti` in it
 * (a revocation under a number that was seen before changes nothing), another `txn`, `iat`, `kid` or cursor, and all of
 * these are acted on or handed on. Only the signature is of every byte.
 *
 * Standards: RFC 7515 (JWS), RFC 8417 (SET), Shared Signals Framework 1.0.
 */
import { isAscii } from "node:buffer"
import type { Json } from "./Canonical.ts"
import type { PinnedKeys } from "./Keys.ts"
import { Refusal, type RefusalStep } from "./Refusal.ts"

/** What a product holds messages to. */
export interface Pins {
  readonly issuer: string
  readonly audience: string
  readonly keys: PinnedKeys
  /** Seconds since the epoch. */
  readonly now: () => number
}

export type Claims = { readonly [name: string]: Json }

const skewSeconds = 60
const foreign = ["jku", "jwk", "x5u", "x5c", "crit", "b64"]

export const refuse = (step: RefusalStep, message: string): never => {
  throw new Refusal(step, message)
}

export const isObject = (value: Json | undefined): value is Claims =>
  value !== null && typeof value === "object" && !Array.isArray(value)

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** What a part of a token holds. */
const objectOf = (part: string, step: RefusalStep): Claims => {
  try {
    const bytes = Buffer.from(part, "base64url")
    const value: Json = JSON.parse(isAscii(bytes) ? bytes.toString("latin1") : utf8.decode(bytes))
    if (isObject(value)) return value
  } catch {
    // Said below.
  }
  return refuse(step, "not a JSON object")
}

const mediaType = (typ: Json | undefined): string | null =>
  typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : null

export interface Believed {
  readonly claims: Claims
  /** The key that signed it. */
  readonly kid: string
}

interface Header {
  readonly typ: string | null
  readonly kid: Json | undefined
}

/** What a header says, where it says nothing that is refused whatever is asked for. */
const headerOf = (head: string, typ: string): Header => {
  const header = objectOf(head, "header")
  const said = { typ: mediaType(header["typ"]), kid: header["kid"] }
  if (said.typ !== typ) refuse("typ", `not ${typ}`)
  if (header["alg"] !== "RS256") refuse("alg", "not RS256")
  const named = foreign.find((name) => name in header)
  return named === undefined ? said : refuse("header", `${named} is not honoured here`)
}

/** The header that was read last, by its very text: all messages of one key have the same. */
let last: { readonly head: string; readonly said: Header } | null = null

/** The kid of a header that says what it should. */
const kidOf = (head: string, typ: string, pins: Pins): string => {
  const said = last?.head === head && last.said.typ === typ ? last.said : headerOf(head, typ)
  // A copy: what is cut out of a token keeps the whole token.
  if (last?.said !== said) last = { head: Buffer.from(head, "latin1").toString("latin1"), said }
  const { kid } = said
  return typeof kid === "string" && pins.keys.pinned(kid) ? kid : refuse("kid", "not a key that was committed to")
}

/** The claims of a token of this type, signed by a pinned key, from and for whom it should be. */
export const claimsOf = async (token: string, typ: string, maxBytes: number, pins: Pins): Promise<Believed> => {
  if (token.length > maxBytes) refuse("size", `more than ${maxBytes} bytes`)
  if (!/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/.test(token)) refuse("compact", "not a compact JWS")
  const [head, body, end] = token.split(".") as [string, string, string]
  const kid = kidOf(head, typ, pins)
  const key = await pins.keys.key(kid)
  const signature = Buffer.from(end, "base64url")
  // Bits beyond the last byte are in no signature: with them a token would have several forms.
  if (signature.toString("base64url") !== end || !key.made(signature, token.slice(0, -end.length - 1))) {
    refuse("signature", "not made by that key")
  }
  const claims = objectOf(body, "claims")
  if (claims["iss"] !== pins.issuer) refuse("iss", "of another issuer")
  const { aud } = claims
  if (aud !== pins.audience && !(Array.isArray(aud) && aud.includes(pins.audience))) refuse("aud", "for somebody else")
  for (const name of ["sub", "exp"] as const) {
    if (name in claims) refuse(name, "has no place in such a message")
  }
  return { claims, kid }
}

/** When it was signed, seconds since the epoch; a minute ahead of our clock at most. */
export const issuedAt = ({ iat }: Claims, now: number): number =>
  typeof iat === "number" && Number.isFinite(iat) && iat >= 0 && iat <= now + skewSeconds
    ? iat
    : refuse("iat", "missing, or in the future")

/** Its number: visible ASCII of some length. */
export const jtiOf = ({ jti }: Claims): string =>
  typeof jti === "string" && /^[\x21-\x7e]{1,200}$/.test(jti) ? jti : refuse("jti", "missing or too long")
