/**
 * The state of one claim while it pushes a stream: deliveries that are not settled yet, failures, and the subjects that
 * are held up. `Settle` writes all of it, and while the claim holds nothing else does.
 */
import { createHash } from "node:crypto"
import type { Subject } from "../../../schemas/identity/SubjectIds.ts"
import { canonical } from "../../platform/security/CanonicalJson.ts"
import type { OwnKind } from "../Streams/ControlMessages.ts"

/** The claimed row's columns with which a session begins. */
export interface Claimed {
  readonly id: string
  readonly claim: bigint
  /** Failures in a row, plus one for this claim. */
  readonly attempts: number
  readonly lease_until: Date
  readonly failing_since: Date | null
  readonly last_error: string | null
}

/** A subject that is held up: all of its events from this position on wait. */
export interface HeldUp {
  readonly subject: unknown
  readonly position: number
  readonly attempts: number
  readonly notBefore: number
  readonly error: string
}

/** The subject within which a filtered stream keeps the order of events: a person, or another subject. */
export const orderedBy = (subId: Subject): { readonly key: string; readonly subject: unknown } => {
  const subject = subId["user"] ?? subId
  return { key: createHash("sha256").update(canonical(subject)).digest("hex"), subject }
}

/** Failed pushes of one event. */
export interface Missed {
  readonly position: number
  readonly attempts: number
  readonly at: string
  readonly outcome: "failed" | "refused" | "ambiguous"
}

export class PushState {
  readonly id: string
  readonly claim: bigint
  leaseUntil: number
  /** Failures in a row. */
  failures: number
  /** Failures in a row under this claim. */
  misses = 0
  failingSince: number | null
  error: string | null
  /**
   * Every event up to here was delivered, is held up, or is not for the stream. Null: no change since the stream was
   * read.
   */
  reached: number | null = null
  /** The last event that an unfiltered stream delivered since the last settlement. */
  delivered: number | null = null
  /** Events that a filtered stream delivered since the last settlement. */
  given: Array<number> = []
  /** Events whose pushes failed since the last settlement, by position. */
  readonly missed = new Map<number, Missed>()
  /** The times from signature to delivery since the last settlement, in milliseconds. */
  took: Array<number> = []
  /** Own messages that are done. */
  own: Array<string> = []
  verified = false
  /** Deliveries since the last settlement. */
  unsettled = 0
  /** When the first unsettled delivery was taken. */
  unsettledSince = 0
  /** Subjects that are held up. */
  readonly held = new Map<string, HeldUp>()
  /** Subjects that were held up or released since the last settlement. */
  readonly changed = new Set<string>()

  constructor({ attempts, claim, failing_since, id, last_error, lease_until }: Claimed) {
    this.id = id
    this.claim = claim
    this.leaseUntil = lease_until.getTime()
    this.failures = Math.max(0, attempts - 1)
    this.failingSince = failing_since?.getTime() ?? null
    this.error = last_error
  }

  /** A message was taken. `stopped`: the stream is not enabled; then the error that stopped it stays visible. */
  succeeded(stopped: boolean, now: number): void {
    if (this.unsettled++ === 0) this.unsettledSince = now
    this.misses = 0
    this.forgive()
    if (!stopped) this.error = null
  }

  /** Resets the count of failures; the last error stays visible. */
  forgive(): void {
    this.failures = 0
    this.failingSince = null
  }

  failed(error: string, now: number): void {
    this.failures++
    this.misses++
    this.failingSince ??= now
    this.error = error
  }

  /**
   * An event was not taken. `ambiguous` stays after a try that certainly failed: the receiver may have the first one.
   */
  miss(position: number, outcome: Missed["outcome"], now: number): void {
    const known = this.missed.get(position)
    this.missed.set(position, {
      position,
      attempts: (known?.attempts ?? 0) + 1,
      at: new Date(now).toISOString(),
      outcome: outcome === "failed" && known?.outcome === "ambiguous" ? "ambiguous" : outcome,
    })
  }

  finishOwn(id: string, kind: OwnKind): void {
    this.own.push(id)
    if (kind === "verification") this.verified = true
  }

  hold(key: string, held: HeldUp): void {
    this.held.set(key, held)
    this.changed.add(key)
  }

  /** The event at which a subject was held up was taken: its events from this position on are due. */
  advance(key: string, position: number): void {
    const held = this.held.get(key)
    if (held !== undefined) this.hold(key, { ...held, position, attempts: 0, notBefore: 0 })
  }

  release(key: string): void {
    this.held.delete(key)
    this.changed.add(key)
  }

  /** The stream's position: before the first event that is held up. */
  settledPosition(reached: number): number {
    return Math.min(reached, ...[...this.held.values()].map(({ position }) => position - 1))
  }
}
