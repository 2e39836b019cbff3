/**
 * Reads deliveries. A page is one statement: credential, webhook, count and rows. The newest page is read from the
 * newest partitions (NewestDeliveries.ts); other pages are read from all partitions, built as JSON in SQL and passed on
 * as text. Of days after their retention only dead letters exist; newer days are read from the deliveries alone.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { AccountId, ApiKeyId, DeliveryId, WebhookId } from "../../schemas/BrandedIds.ts"
import type { Credential } from "../../schemas/api/CredentialsApi.ts"
import type { InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import { DeliveryNotFound, WebhookNotFound } from "../../schemas/problems/WebhookProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Principals, who } from "../authentication/Principals.ts"
import { BoundedMap } from "../platform/BoundedMap.ts"
import { Database } from "../platform/database/Database.ts"
import { leastIdAt } from "../platform/Ids.ts"
import { counted } from "../platform/MapSizes.ts"
import { attemptsOf } from "./Deliveries/Attempts.ts"
import { userAgent } from "./Signer.ts"
import { newest } from "./NewestDeliveries.ts"

export interface PageRequest {
  /** From 0. */
  readonly page: number
  readonly limit: number
  /** Any text; an unknown status finds nothing. */
  readonly status?: string | undefined
}

const dayMillis = 24 * 60 * 60_000
/** An id that no webhook has. */
const noWebhook = "00000000-0000-0000-0000-000000000000"

/** Pages beyond this row run with the longer statement timeout. */
const deep = 20_000
/** Pages up to this row are first read from the newest partitions. */
const near = 1_000
/** Cache of webhooks with few recent deliveries: its size, and how long an entry is used. */
const mostSparse = 10_000
const sparseMillis = 60_000

const time = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

const record = `
  x.id, x.webhook_id, x.event_type, x.status, x.response_status, x.attempt,
  ${time("x.next_retry_at")} as next_retry_at, ${time("x.created_at")} as created_at`

/**
 * The headers of an attempt's request as `Signer.headersFor` made them, from stored values. Signatures need the secret
 * of that time and are shown as `…`; custom headers are not stored.
 */
const requestHeaders = (id: string, eventType: string) => `
  (select row_to_json(h) from (select 'application/json' as "content-type", '${userAgent}' as "User-Agent",
    '…' as "X-Webhook-Signature", ${eventType} as "X-Webhook-Event", ${id} as "X-Webhook-Delivery",
    a.attempt::text as "X-Webhook-Attempt", ${id} as "webhook-id",
    floor(extract(epoch from a.started_at::timestamptz))::bigint::text as "webhook-timestamp",
    'v1,…' as "webhook-signature") h) as request_headers`

/** The request of the last attempt. */
const request = `
  case when json_array_length(x.attempts) > 0 then (select row_to_json(r) from (
    select x.endpoint_url as url, x.attempts->-1->'request_headers' as headers, x.body) r) end as request`

const columns = "id, webhook_id, event_type, status, response_status, attempt, next_retry_at, created_at"
const letterColumns =
  "delivery_id as id, webhook_id, event_type, 'dead_letter' as status, response_status, attempt, null::timestamptz as next_retry_at, created_at"

/**
 * A range with one value, as in NewestDeliveries.ts: only the index on the webhook gives an order that begins with it.
 */
const ofHook = "webhook_id >= (select id from hook) and webhook_id <= (select id from hook)"

/** The rows of a page by status, over the parameters: hook (the webhook's id), oldest (first id kept), size. */
const source = (status: string | undefined): string => {
  const letters = (bound: string) =>
    `(select ${letterColumns} from dead_letters where webhook_id = (select id from hook) ${bound}
      order by delivery_id desc limit (select upto from span))`
  if (status === "dead_letter") return letters("")
  if (status === "pending" || status === "retrying") {
    return `(select ${columns} from deliveries where id in (
        select delivery_id from delivery_queue where webhook_id = (select id from hook) and claim is null
        union all
        select delivery_id from delivery_queue where webhook_id = (select id from hook) and claim is not null
      ) and status = (select status from span))`
  }
  if (status !== undefined) {
    return `(select ${columns} from deliveries where ${ofHook}
      and status = (select status from span) order by webhook_id, id desc limit (select upto from span))`
  }
  return `(select ${columns} from deliveries where ${ofHook}
      and (id >= (select oldest from span) or status <> 'dead_letter')
      order by webhook_id, id desc limit (select upto from span))
    union all ${letters("and delivery_id < (select oldest from span)")}`
}

export class DeliveryRecords extends Context.Service<DeliveryRecords, {
  /** JSON text of a `DeliveryPage`. */
  readonly page: (
    credential: Credential["Service"],
    webhookId: WebhookId,
    request: PageRequest,
  ) => Effect.Effect<string, InvalidCredentials | WebhookNotFound>
  /** JSON text of a `FullDeliveryRecord` of the account; with `webhookId` only if it is of that webhook. */
  readonly get: (
    accountId: AccountId,
    deliveryId: DeliveryId,
    webhookId?: WebhookId,
  ) => Effect.Effect<string, DeliveryNotFound>
}>()("bailiwick/services/webhooks/DeliveryRecords") {
  static readonly layer = (config: { readonly deliveredDays: number }) =>
    Layer.effect(
      DeliveryRecords,
      Effect.gen(function* () {
        const { reads, wide } = yield* Database
        const principals = yield* Principals

        const readNewest = newest(reads)
        // Webhooks whose newest page needs older partitions, and until when that is assumed.
        const sparse = new BoundedMap<string, number>(mostSparse)
        yield* counted("webhooks with few deliveries", () => sparse.size)

        // A frequent read: a named function would build a stack trace per call.
        const page: DeliveryRecords["Service"]["page"] = Effect.fnUntraced(
          function* (credential, webhookId, request) {
            const now = yield* Clock.currentTimeMillis
            const offset = request.page * request.limit
            if (request.status !== undefined || offset > near || !isUuid(webhookId)) {
              return yield* whole(credential, webhookId, request, now)
            }
            if ((sparse.get(webhookId) ?? 0) > now) return yield* whole(credential, webhookId, request, now)
            const recent = leastIdAt((Math.floor(now / dayMillis) - 1) * dayMillis)
            const read = yield* Effect.orDie(readNewest(credential, webhookId, { ...request, recent }))
            const { body, found } = yield* principals.seen(read === null ? undefined : { ...read, key_id: read.keyId })
            if (!found) return yield* new WebhookNotFound()
            if (body !== null) return body
            sparse.set(webhookId, now + sparseMillis)
            return yield* whole(credential, webhookId, request, now)
          },
        )

        const whole = Effect.fnUntraced(
          function* (
            credential: Credential["Service"],
            webhookId: WebhookId,
            { limit, page, status }: PageRequest,
            now: number,
          ) {
            const today = Math.floor(now / dayMillis)
            const oldest = leastIdAt((today - config.deliveredDays - 1) * dayMillis)
            const offset = page * limit
            const pool = offset > deep || status !== undefined ? wide : reads
            const rows = pool.literal(source(status))
            const [row] = yield* pool<{ key_id: ApiKeyId | null; found: boolean; body: string }>`
              with who as materialized (${who(pool, credential)}),
              hook as materialized (
                select w.id from webhooks w join who on w.account_id = who.account_id
                where w.id = ${isUuid(webhookId) ? webhookId : noWebhook}::uuid and w.deleted_at is null
              ), counted as materialized (
                select coalesce(sum(n), 0)::bigint as total from delivery_counts
                where webhook_id = (select id from hook) and status = coalesce(${status ?? null}::text, status)
              ), span as materialized (
                select ${status ?? null}::text as status, ${oldest}::uuid as oldest,
                  case when ${offset}::bigint < total then ${offset + limit}::bigint else 0 end as upto from counted
              )
              select key_id::text, exists (select from hook) as found, (select row_to_json(v) from (select
                array_to_json(array(
                  select row_to_json(i) from (
                    select ${pool.literal(record)} from (
                      select * from (${rows}) y order by id desc
                      limit case when (select upto from span) = 0 then 0 else ${limit} end offset ${offset}
                    ) x order by x.id desc
                  ) i)) as items,
                (select total from counted) as total, ${page}::int as page, ${limit}::int as limit
              ) v)::text as body
              from who`.pipe(Effect.orDie)
            const { body, found } = yield* principals.seen(row)
            return found ? body : yield* new WebhookNotFound()
          },
        )

        const get: DeliveryRecords["Service"]["get"] = Effect.fn("DeliveryRecords.get")(
          function* (accountId, deliveryId, webhookId) {
            if (
              !isUuid(deliveryId) || (webhookId !== undefined && !isUuid(webhookId))
            ) return yield* new DeliveryNotFound()
            const [row] = yield* reads<{ body: string }>`
              with found as materialized (
                select d.*, e.body, (
                  select array_to_json(array(select row_to_json(v) from (
                    select a.cycle, a.attempt, ${reads.literal(time("a.started_at"))} as started_at, a.duration_ms,
                      a.response_status, a.error, ${reads.literal(requestHeaders("d.id", "d.event_type"))},
                      a.response_headers, a.response_body
                    from (${reads.literal(attemptsOf("d"))}) a order by a.cycle, a.started_at, a.claim
                  ) v))
                ) as attempts
                from deliveries d join events e on e.id = d.event_id
                where d.id = ${deliveryId}::uuid and d.account_id = ${accountId}::uuid
              ), x as (
                select id, webhook_id, event_type, status, response_status, attempt, next_retry_at, created_at, error,
                  endpoint_url, response_body, body, attempts
                from found
                union all
                select delivery_id, webhook_id, event_type, 'dead_letter', response_status, attempt, null, created_at,
                  error, endpoint_url, response_body, body, array_to_json(array(
                    select row_to_json(v) from (
                      select a.cycle, a.attempt, a.started_at, a.duration_ms, a.response_status, a.error,
                        ${reads.literal(requestHeaders("delivery_id", "event_type"))}, a.response_headers,
                        a.response_body
                      from jsonb_array_elements(attempts) with ordinality e(one, n) cross join lateral
                        jsonb_to_record(e.one) as a(cycle integer, attempt integer, started_at text,
                          duration_ms integer, response_status integer, error text, response_headers jsonb,
                          response_body text)
                      order by e.n
                    ) v))
                from dead_letters where delivery_id = ${deliveryId}::uuid and account_id = ${accountId}::uuid
                  and not exists (select from found)
              )
              select row_to_json(v)::text as body from (
                select ${
              reads.literal(record)
            }, x.body::json as payload, x.response_body, x.endpoint_url, x.error, x.attempts${
              reads.literal(webhookId === undefined ? `, ${request}` : "")
            }
                from x where x.webhook_id = coalesce(${webhookId ?? null}::uuid, x.webhook_id)
              ) v`.pipe(Effect.orDie)
            return row === undefined ? yield* new DeliveryNotFound() : row.body
          },
        )

        return DeliveryRecords.of({ page, get })
      }),
    )
}
