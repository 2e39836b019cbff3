/**
 * Whether a message may be believed. After its envelope (see TokenEnvelope.ts): exactly one event, `iat`, and that the
 * event's digest is made of its own body; of a stream's own messages, that they are about that stream.
 *
 * Standards: RFC 8417 (SET), RFC 8785 (canonical JSON), Shared Signals Framework 1.0.
 */
import type { VerifiedEvent } from "./VerifiedEvent.ts"
import { digestOf, type Json, member, sha256 } from "./Canonical.ts"
import { mostPartBytes, type Part } from "./ManifestParts.ts"
import { type Believed, type Claims, claimsOf, isObject, issuedAt, jtiOf, type Pins, refuse } from "./TokenEnvelope.ts"

export type { Pins } from "./TokenEnvelope.ts"
export type { VerifiedEvent } from "./VerifiedEvent.ts"

/** Where a snapshot was taken, and what to pin from then on. */
export interface Checkpoint {
  readonly jti: string
  readonly issuedAt: number
  readonly epoch: number
  readonly position: number
  readonly cursor: string
  readonly chainHead: string
  /** The thumbprints to pin from now on. */
  readonly keySet: ReadonlyArray<string>
}

export interface VerifiedSnapshot extends Checkpoint {
  readonly state: { readonly [group: string]: Json }
}

/** A snapshot of a large state: what its parts are, and what all of them come to (see ManifestParts.ts). */
export interface VerifiedManifest extends Checkpoint {
  readonly parts: ReadonlyArray<Part>
  readonly stateDigest: string
}

/** What a stream says of itself; it has no place in the project's history. */
export type StreamMessage =
  | { readonly kind: "verification"; readonly jti: string; readonly state: string | null }
  | {
    readonly kind: "stream-updated"
    readonly jti: string
    readonly status: "enabled" | "paused" | "disabled"
    readonly reason: string | null
  }

export type Message = { readonly kind: "event"; readonly event: VerifiedEvent } | StreamMessage

const eventBytes = 256 * 1024
const snapshotBytes = 64 * 1024 * 1024
const snapshotAgeSeconds = 300
const skewSeconds = 60
const digestPattern = /^sha256:[0-9a-f]{64}$/
const ssf = "https://schemas.openid.net/secevent/ssf/event-type/"

const place = (value: Json | undefined): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const isCursor = (value: Json | undefined): value is string =>
  typeof value === "string" && /^[\x21-\x7e]{1,200}$/.test(value)

/** What has no canonical form (a lone surrogate, a number beyond all numbers) has no digest either. */
const digested = (value: Json): string => {
  try {
    return digestOf(value)
  } catch {
    return refuse("digest", "of no canonical form")
  }
}

/** The one event of a token, by its type. */
const theEvent = ({ events }: Claims): readonly [string, Claims] => {
  const told = isObject(events) ? Object.entries(events) : []
  const [type, body] = told.length === 1 ? told[0]! : refuse("events", "not exactly one event")
  return isObject(body) ? [type, body] : refuse("events", "not an object")
}

const eventOf = ({ claims, kid }: Believed, pins: Pins): VerifiedEvent => {
  const [type, body] = theEvent(claims)
  const { sub_id: subId, txn } = claims
  const at = issuedAt(claims, pins.now())
  const jti = jtiOf(claims)
  if (typeof member(subId, "format") !== "string") {
    return refuse("sub_id", "without a format")
  }
  const { lifecycle, ...payload } = body
  const { cursor, digest, epoch, position, prev_digest: prevDigest } = isObject(lifecycle) ? lifecycle : {}
  if (!place(epoch) || !place(position) || position === 0 || !isCursor(cursor)) {
    return refuse("lifecycle", "no place in a history")
  }
  if (typeof digest !== "string" || typeof prevDigest !== "string" || !digestPattern.test(prevDigest)) {
    return refuse("lifecycle", "no place in a chain")
  }
  const made = digested({ sub_id: subId!, events: { [type]: payload } })
  if (sha256(`${prevDigest}\n${epoch}\n${position}\n${made}`) !== digest) {
    refuse("digest", "not of this body")
  }
  return {
    ...{ jti, kid, issuedAt: at, type, subId: subId!, payload, epoch, position, cursor, digest, prevDigest },
    txn: typeof txn === "string" ? txn : null,
  }
}

/**
 * Believes one security event token of a project's history. Fails with Refusal; anything else that it throws (the keys
 * could not be had) says nothing about the message.
 */
export const verifyEvent = async (token: string, pins: Pins): Promise<VerifiedEvent> =>
  eventOf(await claimsOf(token, "secevent+jwt", eventBytes, pins), pins)

const statuses = ["enabled", "paused", "disabled"] as const
const isStatus = (value: Json | undefined): value is typeof statuses[number] =>
  statuses.some((status) => status === value)

const textOf = (value: Json | undefined): string | null => typeof value === "string" ? value : null

/** What comes by a stream: an event of the project's history, or what the stream says of itself. Fails as above. */
export const verifyMessage = async (token: string, streamId: string, pins: Pins): Promise<Message> => {
  const believed = await claimsOf(token, "secevent+jwt", eventBytes, pins)
  const { claims } = believed
  const [type, body] = theEvent(claims)
  if (!type.startsWith(ssf)) return { kind: "event", event: eventOf(believed, pins) }
  issuedAt(claims, pins.now())
  const jti = jtiOf(claims)
  const { sub_id: subId } = claims
  if (member(subId, "format") !== "opaque" || member(subId, "id") !== streamId) refuse("stream", "of another stream")
  switch (type.slice(ssf.length)) {
    case "verification": {
      const { state } = body
      return state === undefined || typeof state === "string"
        ? { kind: "verification", jti, state: textOf(state) }
        : refuse("verification", "a state that is no text")
    }
    case "stream-updated": {
      const { reason, status } = body
      return isStatus(status)
        ? { kind: "stream-updated", jti, status, reason: textOf(reason) }
        : refuse("stream", "of no status that there is")
    }
    default:
      return refuse("stream", "nothing that a stream says")
  }
}

const mostParts = 100_000

const isPart = (value: Json): boolean => {
  const [bytes, digest] = [member(value, "bytes"), member(value, "digest")]
  return Number.isSafeInteger(bytes) && Number(bytes) > 0 && Number(bytes) <= mostPartBytes &&
    typeof digest === "string" && digestPattern.test(digest)
}

/**
 * Believes a snapshot: one of this project, of now, whose state is what its digest says, or whose manifest says of which
 * parts it is. Fails as `verifyEvent` does.
 */
export const verifyCheckpoint = async (
  token: string,
  projectId: string,
  pins: Pins,
): Promise<VerifiedSnapshot | VerifiedManifest> => {
  const { claims } = await claimsOf(token, "lifecycle-snapshot+jwt", snapshotBytes, pins)
  const at = issuedAt(claims, pins.now())
  if (at < pins.now() - snapshotAgeSeconds - skewSeconds) {
    refuse("iat", "an old snapshot")
  }
  const jti = jtiOf(claims)
  if (claims["project_id"] !== projectId) {
    refuse("project", "of another project")
  }
  const { chain_head: chainHead, cursor, epoch, key_set: keySet, position, state } = claims
  if (!place(epoch) || !place(position) || !isCursor(cursor)) {
    return refuse("lifecycle", "no place in a history")
  }
  if (typeof chainHead !== "string" || !digestPattern.test(chainHead)) {
    return refuse("lifecycle", "no place in a chain")
  }
  if (!Array.isArray(keySet) || keySet.length === 0 || !keySet.every((kid) => typeof kid === "string")) {
    return refuse("state", "without a key set")
  }
  const checkpoint: Checkpoint = { jti, issuedAt: at, epoch, position, cursor, chainHead, keySet }
  const { parts, state_digest: stateDigest } = claims
  if (parts !== undefined) {
    if (state !== undefined || typeof stateDigest !== "string" || !digestPattern.test(stateDigest)) {
      return refuse("state", "neither a state nor a manifest")
    }
    if (!Array.isArray(parts) || parts.length === 0 || parts.length > mostParts || !parts.every(isPart)) {
      return refuse("state", "parts that cannot be had")
    }
    const named = parts.map((part): Part => ({
      digest: String(member(part, "digest")),
      bytes: Number(member(part, "bytes")),
    }))
    return { ...checkpoint, parts: named, stateDigest }
  }
  if (!isObject(state)) return refuse("state", "not an object")
  if (digested(state) !== stateDigest) refuse("digest", "not of this state")
  return { ...checkpoint, state }
}

/** `verifyCheckpoint` for whoever takes no state in parts. */
export const verifySnapshot = async (token: string, projectId: string, pins: Pins): Promise<VerifiedSnapshot> => {
  const checkpoint = await verifyCheckpoint(token, projectId, pins)
  return "state" in checkpoint ? checkpoint : refuse("state", "in parts")
}
