/**
 * The state of a webhook's queue and of a destination. A webhook's queue has a line of first tries and a line of later
 * tries; each line has a status, which says what the line waits for.
 */
import type { AccountId, WebhookId } from "../../../schemas/BrandedIds.ts"
import type { SendRate } from "./SendRate.ts"
import type { Turns } from "./Turns.ts"

export const kinds = ["first", "later"] as const
export type Kind = typeof kinds[number]

/**
 * `ready`: the line takes turns. `window`: its webhook has reached its limit of active sends. `rate`: its webhook has
 * begun as many sends within the last second as it allows. `host`: its destination
 * has reached its limit. `silent`: all destinations that do not answer have together reached theirs. `none`: it is
 * empty.
 */
export type LineStatus = "none" | "ready" | "window" | "rate" | "host" | "silent"

export interface WebhookQueue<Task> {
  readonly webhookId: WebhookId
  readonly accountId: AccountId
  window: number
  claimed: number
  active: number
  answers: boolean
  /** Null where the webhook limits none. */
  rate: SendRate | null
  readonly waiting: Readonly<Record<Kind, Array<Task>>>
  readonly status: Record<Kind, LineStatus>
}

export interface Host<Task> {
  readonly key: string
  active: number
  answers: boolean
  /** Number of lines with their next task for this destination that are `ready` or `silent`. */
  readonly near: Record<Kind, number>
  /** Lines with status `host`; created with the first one. */
  readonly parked: Partial<Record<Kind, Turns<WebhookQueue<Task>>>>
  /** Lines with status `silent` and their next task for this destination. */
  readonly quiet: Partial<Record<Kind, Set<WebhookQueue<Task>>>>
}

export const newQueue = <Task>(webhookId: WebhookId, accountId: AccountId, window: number): WebhookQueue<Task> => ({
  webhookId,
  accountId,
  window,
  claimed: 0,
  active: 0,
  answers: false,
  rate: null,
  waiting: { first: [], later: [] },
  status: { first: "none", later: "none" },
})

export const newHost = <Task>(key: string): Host<Task> => ({
  key,
  active: 0,
  answers: false,
  near: { first: 0, later: 0 },
  parked: {},
  quiet: {},
})
