/**
 * Announces dead letters: a message of the stream DEAD_LETTERS for operators, and a notice to the account that says
 * which event, which endpoint, and how its last attempt ended.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { Subject } from "../../../schemas/bus/Subject.ts"
import type { DeadLetterMessage } from "../../../schemas/bus/WebhookMessages.ts"
import type { Notice } from "../../notifications/Notice.ts"
import type { Notifications } from "../../notifications/Notifications.ts"
import type { Outbox } from "../../platform/messaging/Outbox.ts"
import { shownUrl } from "../Webhooks/ShownUrl.ts"
import type { SettledRow } from "./SettleUndelivered.ts"
import { appPath } from "../../platform/AppPaths.ts"

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

/** The notices of the dead letters that the current transaction has written: one per delivery, coalesced by webhook. */
const noticesOf = Effect.fnUntraced(function* (sql: PgClient.PgClient, dead: ReadonlyArray<SettledRow>) {
  const rows = yield* sql<Row>`
    select d.delivery_id::text as id, d.event_type, coalesce(d.endpoint_url, w.url) as url, d.attempt, d.response_status,
      d.error
    from dead_letters d left join webhooks w on w.id = d.webhook_id
    where d.delivery_id = any(${dead.map(({ delivery_id }) => delivery_id)}::uuid[])`
  const byId = new Map(rows.map((row) => [row.id, row]))
  return dead.flatMap(({ account_id, delivery_id, webhook_id }): ReadonlyArray<Notice> => {
    const row = byId.get(delivery_id)
    // If the delivery's day was dropped, there is no dead letter.
    return row === undefined ? [] : [{
      accountId: account_id,
      category: "alerts",
      severity: "warning",
      title: "A webhook delivery failed for good",
      body: bodyOf(row),
      href: appPath("delivery", { webhook_id, delivery_id }),
      coalesceKey: `dead-letter.${webhook_id}`,
    }]
  })
})

export interface Announcing {
  readonly sql: PgClient.PgClient
  readonly outbox: Outbox["Service"]
  readonly notifications: Notifications["Service"]
}

/** Announces the dead letters that the current transaction has written; call it last in the transaction. */
export const announceDeadLetters = Effect.fnUntraced(function* (
  { notifications, outbox, sql }: Announcing,
  dead: ReadonlyArray<SettledRow>,
) {
  if (dead.length === 0) return
  yield* outbox.add(...dead.map(({ account_id, delivery_id, webhook_id }) => ({
    stream: "DEAD_LETTERS" as const,
    subject: `webhooks.v1.dead.${Subject.token(webhook_id)}`,
    payload: JSON.stringify({ delivery_id, webhook_id, account_id } satisfies DeadLetterMessage),
  })))
  yield* notifications.announce(...(yield* noticesOf(sql, dead)))
})
