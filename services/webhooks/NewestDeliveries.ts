/**
 * The newest deliveries of a webhook, by one statement that reads only the partitions of yesterday and today: the lower
 * bound of the ids is a parameter, so PostgreSQL prunes the other partitions before it opens them. A page that may need
 * older rows is read by the statement over all partitions (DeliveryRecords.ts).
 *
 * The rows are returned as values and become JSON here: PostgreSQL's row_to_json and to_char took more time than the
 * rest of the statement. Both give the same bytes.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { ApiKeyId, WebhookId } from "../../schemas/BrandedIds.ts"
import type { Credential } from "../../schemas/api/CredentialsApi.ts"
import { whoText } from "../authentication/Principals.ts"

export interface Newest {
  readonly keyId: ApiKeyId | null
  readonly found: boolean
  /** JSON text of the page; null if older partitions may have a part of it. */
  readonly body: string | null
}

type Head = readonly [keyId: ApiKeyId | null, hookId: WebhookId | null, total: bigint | number]

type Row = readonly [
  id: string,
  eventType: string,
  status: string,
  responseStatus: number | null,
  attempt: number,
  nextRetryAt: Date | null,
  createdAt: Date,
]

/** The first row has the used key, the webhook's id and its count; the others are deliveries. */
type Answer = readonly [...Head, ...Row] | readonly [null, null, null, ...Row]

/**
 * Uses a range with one webhook_id instead of an equation, and an order that begins with it: only the index on the
 * webhook gives that order. For an equation the planner may walk all deliveries of a day by primary key, newest first;
 * for a webhook with few deliveries that reads the whole day.
 */
const statement = (via: Credential["Service"]["via"]) =>
  `with hook as materialized (
    select who.key_id, w.id, (select coalesce(sum(n), 0)::bigint from delivery_counts where webhook_id = w.id) as total
    from (${whoText(via)}) who
    left join webhooks w on w.id = $2::uuid and w.account_id = who.account_id and w.deleted_at is null
  )
  select key_id, id as hook_id, total, null::uuid as id, null as event_type, null as status, null::int as response_status,
    null::int as attempt, null::timestamptz as next_retry_at, null::timestamptz as created_at from hook
  union all
  (select null, null, null, id, event_type, status, response_status, attempt, next_retry_at, created_at from deliveries
    where webhook_id >= (select id from hook) and webhook_id <= (select id from hook) and id >= $3::uuid
    order by webhook_id, id desc limit $4::bigint offset $5::bigint)`

const byKey = statement("key")
const byCookie = statement("cookie")

const timeOf = (time: Date | null) => time === null ? "null" : `"${time.toISOString()}"`

const itemOf = (webhookId: WebhookId, [id, eventType, status, responseStatus, attempt, nextRetryAt, createdAt]: Row) =>
  `{"id":"${id}","webhook_id":"${webhookId}","event_type":${JSON.stringify(eventType)},"status":"${status}",` +
  `"response_status":${responseStatus},"attempt":${attempt},"next_retry_at":${timeOf(nextRetryAt)},` +
  `"created_at":${timeOf(createdAt)}}`

/** `recent`: the first id of the days to read. Gives null if the credential is refused. */
export const newest = (reads: PgClient.PgClient) =>
(
  credential: Credential["Service"],
  webhookId: WebhookId,
  { limit, page, recent }: { readonly page: number; readonly limit: number; readonly recent: string },
): Effect.Effect<Newest | null, SqlError.SqlError> => {
  const offset = page * limit
  const [text, who] = credential.via === "key" ? [byKey, credential.hash] : [byCookie, credential.accountId]
  return Effect.map(
    reads.unsafe(text, [who, webhookId, recent, limit, offset]).values as Effect.Effect<
      ReadonlyArray<Answer>,
      SqlError.SqlError
    >,
    (answers) => {
      const head = answers.find(([, , total]) => total !== null)
      if (head === undefined) return null
      const [keyId, hookId, counted] = head
      if (hookId === null) return { keyId, found: false, body: null }
      const total = Number(counted)
      let items = ""
      let read = 0
      for (const answer of answers) {
        if (answer === head) continue
        const [, , , ...row] = answer
        items += read++ === 0 ? itemOf(hookId, row) : `,${itemOf(hookId, row)}`
      }
      if (offset >= total) return { keyId, found: true, body: bodyOf("", total, page, limit) }
      const whole = read === limit || offset + read === total
      return { keyId, found: true, body: whole ? bodyOf(items, total, page, limit) : null }
    },
  )
}

const bodyOf = (items: string, total: number, page: number, limit: number) =>
  `{"items":[${items}],"total":${total},"page":${page},"limit":${limit}}`
