import type { Json } from "./Canonical.ts"

/** An event of a project's history that passed verification. */
export interface VerifiedEvent {
  readonly jti: string
  /** The key that signed it. */
  readonly kid: string
  /** The same for all events with one cause. */
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
  /** The transmitter's cursor after this event. */
  readonly cursor: string
  readonly digest: string
  readonly prevDigest: string
}
