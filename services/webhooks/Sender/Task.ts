import type { AccountId, DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import type { Endpoint } from "../Endpoints.ts"

/** A claimed delivery: only the process with this claim may POST it, until `leaseUntil`. */
export interface Task {
  readonly deliveryId: DeliveryId
  readonly webhookId: WebhookId
  readonly accountId: AccountId
  readonly eventType: string
  readonly body: string
  readonly endpoint: Endpoint
  readonly host: string
  readonly cycle: number
  readonly attempt: number
  /** A retry or a replay; first tries are sent before it. */
  readonly later?: boolean
  /** Sends that its webhook allows to begin in a second; null: any number. */
  readonly rate: number | null
  /** The number that fences the settlement. */
  readonly claim: bigint
  readonly leaseUntil: number
}

/**
 * How a claim ended. `released`: nothing was sent, and the delivery is due again at once. `interrupted`: it is unknown
 * whether it was sent; this does not count as one of the eight attempts, and `fatal` means that it happened too often.
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
  /** The header fields of the answer, where they are kept. */
  readonly headers?: Readonly<Record<string, string>> | null
  readonly body: string | null
  /** Milliseconds after the answer for which the receiver asks to be left alone, where its webhook honours that. */
  readonly askedWait?: number
  readonly url: string | null
}

/** The result of a claim that is given back: nothing was sent. */
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

/** The result of an abandoned POST: the receiver may have accepted it. */
export const interruptedOf = (task: Result["task"], startedAt: number): Result => ({
  ...releasedOf(task),
  ending: "interrupted",
  startedAt,
  error: "interrupted",
})
