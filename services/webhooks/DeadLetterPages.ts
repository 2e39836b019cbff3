/** Reads pages of dead letters of all accounts, newest first by their delivery (DeadLetters.ts). */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { AccountId, DeliveryId, WebhookId } from "../../schemas/BrandedIds.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { leastIdAt } from "../platform/Ids.ts"

export interface DeadLetter {
  readonly delivery_id: DeliveryId
  readonly webhook_id: WebhookId
  readonly account_id: AccountId
  readonly event_type: string
  readonly response_status: number | null
  readonly error: string | null
  readonly endpoint_url: string | null
  readonly died_at: Date
}

export interface PagedLetter extends DeadLetter {
  readonly created_at: Date
  /** Whether its webhook was deleted: then it cannot be sent again. */
  readonly webhook_deleted: boolean
}

/** Conditions that all have to hold. An id that is no UUID finds nothing. */
export interface LetterFilter {
  readonly accountId?: AccountId | undefined
  readonly webhookId?: WebhookId | undefined
  readonly eventType?: string | undefined
  /** Milliseconds since the epoch: deliveries created from `since` on and before `until`. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

export interface LetterPage {
  readonly letters: ReadonlyArray<PagedLetter>
  /** Where the next page begins; null on the last page. It may lie behind the last dead letter of this one. */
  readonly nextAfterId: string | null
}

/** Dead letters that a page with a filter on their event looks at. */
const looked = 20_000
const highest = "ffffffff-ffff-ffff-ffff-ffffffffffff"

const earlier = (one: string, other: string) => one < other ? one : other

export const letterPages = (sql: PgClient.PgClient) =>
  Effect.fnUntraced(function* (filter: LetterFilter, limit: number, afterId: string = highest) {
    const { accountId, eventType, since, until, webhookId } = filter
    if (![accountId, webhookId].every((id) => id === undefined || isUuid(id))) return { letters: [], nextAfterId: null }
    const before = until === undefined ? afterId : earlier(afterId, leastIdAt(until))
    const scanned = sql`
      select * from dead_letters where ${
      sql.and([
        sql`delivery_id >= ${leastIdAt(since ?? 0)}::uuid and delivery_id < ${before}::uuid`,
        ...(accountId === undefined ? [] : [sql`account_id = ${accountId}::uuid`]),
        ...(webhookId === undefined ? [] : [sql`webhook_id = ${webhookId}::uuid`]),
      ])
    } order by delivery_id desc limit ${looked}`
    const found = yield* sql<PagedLetter>`
      select l.delivery_id::text as delivery_id, l.webhook_id::text as webhook_id, l.account_id::text as account_id,
        l.event_type, l.response_status, l.error, l.endpoint_url, l.created_at, l.died_at,
        not exists (select from webhooks w where w.id = l.webhook_id and w.deleted_at is null) as webhook_deleted
      from (${scanned}) l where ${eventType === undefined ? sql`true` : sql`event_type = ${eventType}`}
      order by l.delivery_id desc limit ${limit + 1}`
    const letters = found.slice(0, limit)
    if (found.length > limit) return { letters, nextAfterId: letters.at(-1)!.delivery_id } satisfies LetterPage
    const [end] = eventType === undefined ? [] : yield* sql<{ id: string }>`
      select l.delivery_id::text as id from (${scanned}) l order by l.delivery_id desc offset ${looked - 1} limit 1`
    const bound = end?.id
    return bound === undefined
      ? { letters, nextAfterId: null } satisfies LetterPage
      : { letters: letters.filter((one) => one.delivery_id >= bound), nextAfterId: bound } satisfies LetterPage
  })
