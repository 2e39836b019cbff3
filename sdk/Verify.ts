/**
 * Verifies messages. After the envelope (TokenEnvelope.ts) it checks: exactly one event, `iat`, and that the event's
 * digest matches its body; for a stream's own messages, that they are about this stream.
 *
 * Standards: RFC 8417 (SET), RFC 8785 (canonical JSON), Shared Signals Framework 1.0.
 */
import type { VerifiedEvent } from "./VerifiedEvent.ts"
import { digestOf, type Json, member, sha256 } from "./Canonical.ts"
import { maxPartBytes, type Part } from "./ManifestParts.ts"
import {
  type Claims,
  claimsOf,
  isObject,
  issuedAt,
  jtiOf,
  type Pins,
  refuse,
  type VerifiedClaims,
} from "./TokenEnvelope.ts"

export type { Pins } from "./TokenEnvelope.ts"
export type { VerifiedEvent } from "./VerifiedEvent.ts"

/** The position of a snapshot, and the keys to pin after it. */
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

/** A snapshot of a large state: its parts, and the digest of all of them (see ManifestParts.ts). */
export interface VerifiedManifest extends Checkpoint {
  readonly parts: ReadonlyArray<Part>
  readonly stateDigest: string
}

/** A stream's own message; it is not part of the project's history. */
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

const isCount = (value: Json | undefined): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const isCursor = (value: Json | undefined): value is string =>
  typeof value === "string" && /^[\x21-\x7e]{1,200}$/.test(value)

/** The digest; refuses a value without a canonical form (a lone surrogate, a number that is not finite). */
const digested = (value: Json): string => {
  try {
    return digestOf(value)
  } catch {
    return refuse("digest", "the body has no canonical form")
  }
}

/** The one event of a token, by its type. */
const theEvent = ({ events }: Claims): readonly [string, Claims] => {
  const entries = isObject(events) ? Object.entries(events) : []
  const [type, body] = entries.length === 1 ? entries[0]! : refuse("events", "not exactly one event")
  return isObject(body) ? [type, body] : refuse("events", "not an object")
}

const eventOf = ({ claims, kid }: VerifiedClaims, pins: Pins): VerifiedEvent => {
  const [type, body] = theEvent(claims)
  const { sub_id: subId, txn } = claims
  const at = issuedAt(claims, pins.now())
  const jti = jtiOf(claims)
  if (typeof member(subId, "format") !== "string") {
    return refuse("sub_id", "without a format")
  }
  const { lifecycle, ...payload } = body
  const { cursor, digest, epoch, position, prev_digest: prevDigest } = isObject(lifecycle) ? lifecycle : {}
  if (!isCount(epoch) || !isCount(position) || position === 0 || !isCursor(cursor)) {
    return refuse("lifecycle", "without a valid epoch, position or cursor")
  }
  if (typeof digest !== "string" || typeof prevDigest !== "string" || !digestPattern.test(prevDigest)) {
    return refuse("lifecycle", "without a valid chain digest")
  }
  const made = digested({ sub_id: subId!, events: { [type]: payload } })
  if (sha256(`${prevDigest}\n${epoch}\n${position}\n${made}`) !== digest) {
    refuse("digest", "does not match the body")
  }
  return {
    jti,
    kid,
    txn: typeof txn === "string" ? txn : null,
    issuedAt: at,
    type,
    subId: subId!,
    payload,
    epoch,
    position,
    cursor,
    digest,
    prevDigest,
  }
}

/**
 * Verifies a security event token of a project's history. Rejects with Refusal; any other error (the keys could not be
 * fetched) says nothing about the message.
 */
export const verifyEvent = async (token: string, pins: Pins): Promise<VerifiedEvent> =>
  eventOf(await claimsOf(token, "secevent+jwt", eventBytes, pins), pins)

const statuses = ["enabled", "paused", "disabled"] as const
const isStatus = (value: Json | undefined): value is typeof statuses[number] =>
  statuses.some((status) => status === value)

const textOf = (value: Json | undefined): string | null => typeof value === "string" ? value : null

/** Verifies a message of a stream: an event of the project's history, or the stream's own. Rejects as `verifyEvent`. */
export const verifyMessage = async (token: string, streamId: string, pins: Pins): Promise<Message> => {
  const verified = await claimsOf(token, "secevent+jwt", eventBytes, pins)
  const { claims } = verified
  const [type, body] = theEvent(claims)
  if (!type.startsWith(ssf)) return { kind: "event", event: eventOf(verified, pins) }
  issuedAt(claims, pins.now())
  const jti = jtiOf(claims)
  const { sub_id: subId } = claims
  if (member(subId, "format") !== "opaque" || member(subId, "id") !== streamId) refuse("stream", "about another stream")
  switch (type.slice(ssf.length)) {
    case "verification": {
      const { state } = body
      return state === undefined || typeof state === "string"
        ? { kind: "verification", jti, state: textOf(state) }
        : refuse("verification", "the state is not a string")
    }
    case "stream-updated": {
      const { reason, status } = body
      return isStatus(status)
        ? { kind: "stream-updated", jti, status, reason: textOf(reason) }
        : refuse("stream", "unknown status")
    }
    default:
      return refuse("stream", "unknown event type")
  }
}

const maxParts = 100_000

const isPart = (value: Json): boolean => {
  const [bytes, digest] = [member(value, "bytes"), member(value, "digest")]
  return Number.isSafeInteger(bytes) && Number(bytes) > 0 && Number(bytes) <= maxPartBytes &&
    typeof digest === "string" && digestPattern.test(digest)
}

/**
 * Verifies a snapshot: of this project, at most five minutes old, with a state that matches its digest or with a valid
 * list of parts. Rejects as `verifyEvent`.
 */
export const verifyCheckpoint = async (
  token: string,
  projectId: string,
  pins: Pins,
): Promise<VerifiedSnapshot | VerifiedManifest> => {
  const { claims } = await claimsOf(token, "lifecycle-snapshot+jwt", snapshotBytes, pins)
  const at = issuedAt(claims, pins.now())
  if (at < pins.now() - snapshotAgeSeconds - skewSeconds) {
    refuse("iat", "the snapshot is too old")
  }
  const jti = jtiOf(claims)
  if (claims["project_id"] !== projectId) {
    refuse("project", "another project")
  }
  const { chain_head: chainHead, cursor, epoch, key_set: keySet, position, state } = claims
  if (!isCount(epoch) || !isCount(position) || !isCursor(cursor)) {
    return refuse("lifecycle", "without a valid epoch, position or cursor")
  }
  if (typeof chainHead !== "string" || !digestPattern.test(chainHead)) {
    return refuse("lifecycle", "without a valid chain digest")
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
    if (!Array.isArray(parts) || parts.length === 0 || parts.length > maxParts || !parts.every(isPart)) {
      return refuse("state", "invalid list of parts")
    }
    const named = parts.map((part): Part => ({
      digest: String(member(part, "digest")),
      bytes: Number(member(part, "bytes")),
    }))
    return { ...checkpoint, parts: named, stateDigest }
  }
  if (!isObject(state)) return refuse("state", "not an object")
  if (digested(state) !== stateDigest) refuse("digest", "does not match the state")
  return { ...checkpoint, state }
}

/** As `verifyCheckpoint`, but refuses a state in parts. */
export const verifySnapshot = async (token: string, projectId: string, pins: Pins): Promise<VerifiedSnapshot> => {
  const checkpoint = await verifyCheckpoint(token, projectId, pins)
  return "state" in checkpoint ? checkpoint : refuse("state", "the state is in parts")
}
