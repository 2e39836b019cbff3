/** What was done in each queue in the last full minute, where its rows say when they were done. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import { streamNames } from "../../schemas/bus/BusStreams.ts"
import type { QueueName } from "../../schemas/identity/QueueView.ts"
import { most } from "./QueueCounts.ts"

const minuteMillis = 60_000
/** Settlements of a minute's attempts are written so long after it at most. */
const settledMillis = 5_000

/** Maximum number of webhooks whose attempts are added up: each costs a look into an index, whether it had any or not. */
const mostWebhooks = 10_000

/** Null where there is more than is counted. */
export type QueueRates = ReadonlyMap<QueueName, number | null>

/**
 * Counts the rows of one minute, each found by an index, and at most so many of a table: above that the number is null and
 * not a part of itself. First tries and retries are not told apart where attempts are counted.
 */
const countMinute = (sql: PgClient.PgClient, from: Date) => {
  const to = new Date(from.getTime() + minuteMillis)
  const published = (ordered: "is null" | "is not null") =>
    sql`(select case when count(*) <= ${most} then (count(*) filter (where aggregate_id ${
      sql.literal(ordered)
    }))::int end
      from published)`
  const ended = (table: "mails" | "slack_messages") =>
    sql`(select case when count(*) <= ${most} then (count(*) filter (where state = 'sent'))::int end from (
      select state from ${sql(table)} where ended_at >= ${from} and ended_at < ${to} limit ${most + 1}) r)`
  return sql<Record<"first_tries" | "outbox_unordered" | "outbox_ordered" | "mails" | "slack", number | null>>`
    with lanes as materialized (
      select webhook_id from webhook_lanes limit ${mostWebhooks + 1}
    ), tries as materialized (
      select m.n from lanes l join delivery_minutes m on m.webhook_id = l.webhook_id and m.minute = ${from}
      where (select count(*) from lanes) <= ${mostWebhooks}
      limit ${most + 1}
    ), published as materialized (
      select o.aggregate_id from unnest(${[...streamNames]}::text[]) s(stream) join outbox o on o.stream = s.stream
      where o.published_at >= ${from} and o.published_at < ${to}
      limit ${most + 1}
    )
    select
      (select case when count(*) <= ${most} and (select count(*) from lanes) <= ${mostWebhooks}
        then coalesce(sum(n), 0)::int end from tries) as first_tries,
      ${published("is null")} as outbox_unordered, ${published("is not null")} as outbox_ordered,
      ${ended("mails")} as mails, ${ended("slack_messages")} as slack`
}

/** The rates, which are counted once a minute however often they are asked for. */
export const queueRates = (sql: PgClient.PgClient): Effect.Effect<QueueRates, SqlError.SqlError> => {
  let last: { readonly minute: number; readonly rates: QueueRates } | undefined
  return Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const minute = (Math.floor((now - settledMillis) / minuteMillis) - 1) * minuteMillis
    if (last?.minute === minute) return last.rates
    const [row] = yield* countMinute(sql, new Date(minute))
    const rates = new Map(Object.entries(row!) as Array<[QueueName, number | null]>)
    last = { minute, rates }
    return rates
  })
}
