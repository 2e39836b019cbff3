/** The notices of deliveries that became dead letters: which event, which endpoint, and how its last attempt ended. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Notice } from "../../notifications/Notice.ts"
import { shownUrl } from "../Webhooks/ShownUrl.ts"
import type { Settled } from "./SettleAttempts.ts"

interface Row {
  readonly id: string
  readonly event_type: string
  readonly url: string | null
  readonly attempt: number
  readonly response_status: number | null
  readonly error: string | null
}

const outcome = ({ error, response_status }: Row): string =>
  [
    ...(response_status === null ? [] : [`the response was ${response_status}`]),
    ...(error === null ? [] : [`the error was ${error}`]),
  ].join(", ")

const bodyOf = (row: Row): string =>
  `Delivery ${row.id} of ${row.event_type} to ${shownUrl(row.url)} is in the dead letter queue: ${outcome(row)} ` +
  `at attempt ${row.attempt}.`

/** Reads the dead letters that the current transaction has written; one notice a delivery, coalesced by webhook. */
export const deadLetterNotices = Effect.fnUntraced(function* (sql: PgClient.PgClient, dead: ReadonlyArray<Settled>) {
  if (dead.length === 0) return []
  const rows = yield* sql<Row>`
    select d.delivery_id::text as id, d.event_type, coalesce(d.endpoint_url, w.url) as url, d.attempt, d.response_status,
      d.error
    from dead_letters d left join webhooks w on w.id = d.webhook_id
    where d.delivery_id = any(${dead.map(({ delivery_id }) => delivery_id)}::uuid[])`
  const byId = new Map(rows.map((row) => [row.id, row]))
  return dead.map(({ account_id, delivery_id, webhook_id }): Notice => ({
    accountId: account_id,
    category: "alerts",
    severity: "warning",
    title: "A webhook delivery failed for good",
    body: bodyOf(byId.get(delivery_id)!),
    href: `/webhooks/${webhook_id}/deliveries/${delivery_id}`,
    coalesceKey: `dead-letter.${webhook_id}`,
  }))
})
