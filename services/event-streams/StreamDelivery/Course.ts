/**
 * One claim's memory of a stream while it is pushed: what was taken and is not settled yet, what failed, and which
 * subjects are held up. All of it is written by `Settle`, and by nobody else while the claim holds.
 */
import { createHash } from "node:crypto"
import type { Subject } from "../../../schemas/identity/Subjects.ts"
import { canonical } from "../../platform/security/Canonical.ts"
import type { OwnKind } from "../Streams/Own.ts"

/** What is claimed, as far as a course begins with it. */
export interface Claimed {
  readonly id: string
  readonly claim: bigint
  /** Failures in a row, and one for this claim. */
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

/** What a filtered stream keeps in order: a person's events, or those of one other subject. */
export const orderedBy = (subId: Subject): { readonly key: string; readonly subject: unknown } => {
  const subject = subId["user"] ?? subId
  return { key: createHash("sha256").update(canonical(subject)).digest("hex"), subject }
}

/** Pushes of one event that were not taken. */
export interface Missed {
  readonly position: number
  readonly attempts: number
  readonly at: string
  readonly outcome: "failed" | "refused" | "ambiguous"
}

export class Course {
  readonly id: string
  readonly claim: bigint
  leaseUntil: number
  /** In a row. */
  failures: number
  /** Failures in a row under this claim. */
  misses = 0
  failingSince: number | null
  error: string | null
  /** How far everything was delivered, held up, or not for the stream. Null: no further than was read. */
  reached: number | null = null
  /** An event of an unfiltered stream was delivered up to here since the last settlement. */
  delivered: number | null = null
  /** Events that a stream which leaves something out delivered since then. */
  given: Array<number> = []
  /** Events that were not taken since then, by position. */
  readonly missed = new Map<number, Missed>()
  /** What events took from their signatures since then, in milliseconds. */
  took: Array<number> = []
  /** Own messages that are done with. */
  own: Array<string> = []
  verified = false
  unsettled = 0
  /** When the first of them was taken. */
  unsettledSince = 0
  /** Subjects that were held up when the stream was read last, or are by now; and of which it changed since. */
  readonly held = new Map<string, HeldUp>()
  readonly changed = new Set<string>()

  constructor({ attempts, claim, failing_since, id, last_error, lease_until }: Claimed) {
    this.id = id
    this.claim = claim
    this.leaseUntil = lease_until.getTime()
    this.failures = Math.max(0, attempts - 1)
    this.failingSince = failing_since?.getTime() ?? null
    this.error = last_error
  }

  /** `stopped`: it was told that it is, and why stays to be seen. */
  succeeded(stopped: boolean, now: number): void {
    if (this.unsettled++ === 0) this.unsettledSince = now
    this.misses = 0
    this.forgive()
    if (!stopped) this.error = null
  }

  /** Nothing has failed any more; what went wrong last is still said. */
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

  /** An event was not taken. A receiver that may have it may have it still after a try that came to nothing. */
  miss(position: number, outcome: Missed["outcome"], now: number): void {
    const known = this.missed.get(position)
    this.missed.set(position, {
      position,
      attempts: (known?.attempts ?? 0) + 1,
      at: new Date(now).toISOString(),
      outcome: outcome === "failed" && known?.outcome === "ambiguous" ? "ambiguous" : outcome,
    })
  }

  toldOwn(id: string, kind: OwnKind): void {
    this.own.push(id)
    if (kind === "verification") this.verified = true
  }

  hold(key: string, held: HeldUp): void {
    this.held.set(key, held)
    this.changed.add(key)
  }

  /** What a subject was held up at was taken: the rest of it is due from this position on. */
  advance(key: string, position: number): void {
    const held = this.held.get(key)
    if (held !== undefined) this.hold(key, { ...held, position, attempts: 0, notBefore: 0 })
  }

  release(key: string): void {
    this.held.delete(key)
    this.changed.add(key)
  }

  /** The stream's place: before whatever is held up first. */
  placeFrom(reached: number): number {
    return Math.min(reached, ...[...this.held.values()].map(({ position }) => position - 1))
  }
}
