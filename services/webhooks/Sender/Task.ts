import type { Endpoint } from "../Endpoints.ts"

/** One claimed delivery: whoever holds it is the only one that may POST it, until `leaseUntil`. */
export interface Task {
  readonly deliveryId: string
  readonly webhookId: string
  readonly accountId: string
  readonly eventType: string
  readonly body: string
  readonly endpoint: Endpoint
  readonly host: string
  readonly cycle: number
  readonly attempt: number
  /** A retry or a replay: first tries go before it. */
  readonly later?: boolean
  /** The number that fences the settlement. */
  readonly claim: bigint
  readonly leaseUntil: number
}

/**
 * How a claim ended. `released`: nothing was sent, it is due again at once. `interrupted`: nobody knows what was sent;
 * it does not count as one of the eight attempts, and `fatal` says that it happened too often.
 */
export type Ending = "answered" | "silent" | "released" | "interrupted"

export interface Result {
  readonly task: Pick<Task, "deliveryId" | "webhookId" | "cycle" | "attempt" | "claim" | "leaseUntil">
  readonly ending: Ending
  readonly fatal?: boolean
  readonly startedAt: number
  readonly durationMs: number
  readonly status: number | null
  readonly error: string | null
  readonly body: string | null
  readonly url: string | null
}

/** The result of a claim that came to nothing: it is given back. */
export const releasedOf = (task: Result["task"]): Result => ({
  task,
  ending: "released",
  startedAt: 0,
  durationMs: 0,
  status: null,
  error: null,
  body: null,
  url: null,
})

/** The result of a POST whose answer was not waited for: the receiver may have taken it. */
export const interruptedOf = (task: Result["task"], startedAt: number): Result => ({
  ...releasedOf(task),
  ending: "interrupted",
  startedAt,
  error: "interrupted",
})
