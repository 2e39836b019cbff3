/** Webhooks of an account and their deliveries, over HTTP. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { ApiClient, Reply } from "./ApiClient.ts"
import type { Receiver } from "./Receiver.ts"

export interface Hook {
  readonly id: string
  readonly path: string
  readonly secret: string
}

/** Makes a webhook that the receiver trusts. */
export const hook = Effect.fnUntraced(function* (
  api: ApiClient,
  receiver: Receiver,
  path: string,
  events: ReadonlyArray<string>,
) {
  const reply = yield* api.post("/v1/webhooks/", { url: receiver.url(path), events })
  assert.strictEqual(reply.status, 201, reply.text)
  receiver.trust(path, reply.json.secret)
  return { id: reply.json.id, path, secret: reply.json.secret } satisfies Hook
})

export const statuses = ["pending", "retrying", "delivered", "dead_letter", "cancelled"] as const

/** The number of a webhook's deliveries in each state, and in all, by the lists' totals. */
export const totals = Effect.fnUntraced(function* (api: ApiClient, hookId: string) {
  const total = (query: string) =>
    Effect.map(api.get(`/v1/webhooks/${hookId}/deliveries?limit=1${query}`), (reply: Reply): number => reply.json.total)
  const [all, ...each] = yield* Effect.all([total(""), ...statuses.map((status) => total(`&status=${status}`))])
  const [pending, retrying, delivered, dead_letter, cancelled] = each
  return {
    all: all!,
    pending: pending!,
    retrying: retrying!,
    delivered: delivered!,
    dead_letter: dead_letter!,
    cancelled: cancelled!,
  }
})

/** Every delivery record of a webhook, page by page. */
export const deliveries = Effect.fnUntraced(function* (api: ApiClient, hookId: string, status?: string) {
  const found: Array<Reply["json"]> = []
  const filter = status === undefined ? "" : `&status=${status}`
  for (let page = 0;; page++) {
    const { json, status: code, text } = yield* api.get(
      `/v1/webhooks/${hookId}/deliveries?limit=100&page=${page}${filter}`,
    )
    assert.strictEqual(code, 200, text)
    found.push(...json.items)
    if (json.items.length < 100) return found
  }
})
