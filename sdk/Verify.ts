/**
 * Whether a message may be believed. Fail closed, in this order: size, compact form, header (`typ`, `alg`, `kid` among
 * the pinned ones), signature, `iss`, `aud`, neither `sub` nor `exp`, exactly one event, `iat`, and that the event's digest
 * is made of its own body. Nothing in the header names a key: `jku`, `jwk`, `x5u`, `x5c` and `crit` are refused.
 *
 * Standards: RFC 7515 (JWS), RFC 8417 (SET), RFC 8785 (canonical JSON), Shared Signals Framework 1.0.
 */
import { compactVerify } from "jose"
import { digestOf, type Json, member, sha256 } from "./Canonical.ts"
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

/** One event of a project's history, believed. */
export interface VerifiedEvent {
  readonly jti: string
  /** Common to events of one cause. */
  readonly txn: string | null
  /** Seconds since the epoch. */
  readonly issuedAt: number
  /** The event type's URI. */
  readonly type: string
  readonly subId: Json
  /** Without its `lifecycle` member. */
  readonly payload: Json
  readonly epoch: number
  readonly position: number
  readonly digest: string
  readonly prevDigest: string
}

export interface VerifiedSnapshot {
  readonly jti: string
  readonly issuedAt: number
  readonly epoch: number
  readonly position: number
  readonly cursor: string
  readonly chainHead: string
  /** The thumbprints to pin from now on. */
  readonly keySet: ReadonlyArray<string>
  readonly state: { readonly [group: string]: Json }
}

type Claims = { readonly [name: string]: Json }

const skewSeconds = 60
const eventBytes = 256 * 1024
const snapshotBytes = 64 * 1024 * 1024
const snapshotAgeSeconds = 300
const digestPattern = /^sha256:[0-9a-f]{64}$/
const foreign = ["jku", "jwk", "x5u", "x5c", "crit", "b64"]

const refuse = (step: RefusalStep, message: string): never => {
  throw new Refusal(step, message)
}

const objectOf = (bytes: Uint8Array, step: RefusalStep): Claims => {
  try {
    const value = JSON.parse(
      new TextDecoder("utf-8", { fatal: true }).decode(bytes),
    )
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      return value
    }
  } catch {
    // Said below.
  }
  return refuse(step, "not a JSON object")
}

const place = (value: Json | undefined): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** The claims of a token of this type, signed by a pinned key, from and for whom it should be. */
const claimsOf = async (
  token: string,
  typ: string,
  maxBytes: number,
  pins: Pins,
): Promise<Claims> => {
  if (token.length > maxBytes) refuse("size", `more than ${maxBytes} bytes`)
  const head = /^([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/.exec(token)?.[1] ??
    refuse("compact", "not a compact JWS")
  const header = objectOf(Buffer.from(head, "base64url"), "header")
  if (
    String(header["typ"]).toLowerCase().replace(/^application\//, "") !== typ
  ) refuse("typ", `not ${typ}`)
  if (header["alg"] !== "RS256") refuse("alg", "not RS256")
  const named = foreign.find((name) => name in header)
  if (named !== undefined) refuse("header", `${named} is not honoured here`)
  const kid = header["kid"]
  if (typeof kid !== "string" || !pins.keys.pinned(kid)) {
    return refuse("kid", "not a key that was committed to")
  }
  const key = await pins.keys.key(kid)
  let payload: Uint8Array
  try {
    payload = (await compactVerify(token, key, { algorithms: ["RS256"] })).payload
  } catch {
    return refuse("signature", "not made by that key")
  }
  const claims = objectOf(payload, "claims")
  if (claims["iss"] !== pins.issuer) refuse("iss", "of another issuer")
  const { aud } = claims
  if (
    aud !== pins.audience &&
    !(Array.isArray(aud) && aud.includes(pins.audience))
  ) refuse("aud", "for somebody else")
  for (const name of ["sub", "exp"] as const) {
    if (name in claims) refuse(name, "has no place in such a message")
  }
  return claims
}

const issuedAt = ({ iat }: Claims, now: number): number =>
  typeof iat === "number" && Number.isFinite(iat) && iat >= 0 &&
    iat <= now + skewSeconds
    ? iat
    : refuse("iat", "missing, or in the future")

const jtiOf = ({ jti }: Claims): string =>
  typeof jti === "string" && /^[\x21-\x7e]{1,200}$/.test(jti) ? jti : refuse("jti", "missing or too long")

const without = (payload: Json, name: string): Json =>
  Object.fromEntries(
    Object.entries(payload as Claims).filter(([key]) => key !== name),
  )

/**
 * Believes one security event token of a project's history. Fails with Refusal; anything else that it throws (the keys
 * could not be had) says nothing about the message.
 */
export const verifyEvent = async (
  token: string,
  pins: Pins,
): Promise<VerifiedEvent> => {
  const claims = await claimsOf(token, "secevent+jwt", eventBytes, pins)
  const { events, sub_id: subId, txn } = claims
  const told = events !== null && typeof events === "object" && !Array.isArray(events) ? Object.entries(events) : []
  const [type, body] = told.length === 1 ? told[0]! : refuse("events", "not exactly one event")
  if (body === null || typeof body !== "object" || Array.isArray(body)) {
    return refuse("events", "not an object")
  }
  const at = issuedAt(claims, pins.now())
  const jti = jtiOf(claims)
  if (typeof member(subId, "format") !== "string") {
    return refuse("sub_id", "without a format")
  }
  const epoch = member(body, "lifecycle", "epoch")
  const position = member(body, "lifecycle", "position")
  const digest = member(body, "lifecycle", "digest")
  const prevDigest = member(body, "lifecycle", "prev_digest")
  if (!place(epoch) || !place(position) || position === 0) {
    return refuse("lifecycle", "no place in a history")
  }
  if (
    typeof digest !== "string" || typeof prevDigest !== "string" ||
    !digestPattern.test(prevDigest)
  ) {
    return refuse("lifecycle", "no place in a chain")
  }
  const payload = without(body, "lifecycle")
  const made = digestOf({ sub_id: subId!, events: { [type]: payload } })
  if (sha256(`${prevDigest}\n${epoch}\n${position}\n${made}`) !== digest) {
    refuse("digest", "not of this body")
  }
  return {
    ...{
      jti,
      issuedAt: at,
      type,
      subId: subId!,
      payload,
      epoch,
      position,
      digest,
      prevDigest,
    },
    txn: typeof txn === "string" ? txn : null,
  }
}

/** Believes a snapshot: one of this project, of now, whose state is what its digest says. Fails as `verifyEvent` does. */
export const verifySnapshot = async (
  token: string,
  projectId: string,
  pins: Pins,
): Promise<VerifiedSnapshot> => {
  const claims = await claimsOf(
    token,
    "lifecycle-snapshot+jwt",
    snapshotBytes,
    pins,
  )
  const at = issuedAt(claims, pins.now())
  if (at < pins.now() - snapshotAgeSeconds - skewSeconds) {
    refuse("iat", "an old snapshot")
  }
  const jti = jtiOf(claims)
  if (claims["project_id"] !== projectId) {
    refuse("project", "of another project")
  }
  const {
    chain_head: chainHead,
    cursor,
    epoch,
    key_set: keySet,
    position,
    state,
  } = claims
  if (!place(epoch) || !place(position) || typeof cursor !== "string") {
    return refuse("lifecycle", "no place in a history")
  }
  if (typeof chainHead !== "string" || !digestPattern.test(chainHead)) {
    return refuse("lifecycle", "no place in a chain")
  }
  if (state === null || typeof state !== "object" || Array.isArray(state)) {
    return refuse("state", "not an object")
  }
  if (digestOf(state!) !== claims["state_digest"]) {
    refuse("digest", "not of this state")
  }
  if (
    !Array.isArray(keySet) || keySet.length === 0 ||
    !keySet.every((kid) => typeof kid === "string")
  ) {
    return refuse("state", "without a key set")
  }
  return {
    jti,
    issuedAt: at,
    epoch,
    position,
    cursor,
    chainHead,
    keySet,
    state: state as Claims,
  }
}
