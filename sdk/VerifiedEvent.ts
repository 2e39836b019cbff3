import type { Json } from "./Canonical.ts"

/** One event of a project's history, believed. */
export interface VerifiedEvent {
  readonly jti: string
  /** The key that signed it. */
  readonly kid: string
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
  /** What stands for its place where the transmitter is asked to go on from it. */
  readonly cursor: string
  readonly digest: string
  readonly prevDigest: string
}
