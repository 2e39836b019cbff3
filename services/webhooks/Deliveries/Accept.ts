/**
 * From an event to its deliveries, in one transaction (RULES, Deliveries): seen before?, who listens?, then the event
 * once, one delivery and one queue row for each webhook, born claimed as far as the Sender has slots. First tries do not
 * travel again; what found no slot is due now and comes by way of the scan.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import { hash } from "node:crypto"
import { Ids } from "../../platform/Ids.ts"
import type { Endpoints } from "../Endpoints.ts"
import type { Task } from "../Sender/Task.ts"
import { arrayOf } from "./arrayOf.ts"

/** A decoded event and the exact text that its receivers get. */
export interface Accepted {
  readonly sourceId: string
  readonly accountId: string
  readonly event: string
  readonly body: string
}

export interface Acceptance {
  /** Positions of events whose account is not known (yet). */
  readonly unknown: ReadonlyArray<number>
  readonly duplicates: number
  readonly deliveries: number
  readonly tasks: ReadonlyArray<Task>
  /** Whether some deliveries wait for the scan. */
  readonly overflow: boolean
}

interface FanOut {
  readonly ord: number
  readonly known: boolean
  readonly fresh: boolean
  readonly webhook_id: string | null
  readonly version: number | null
  readonly claim: bigint
}

interface Heard extends FanOut {
  readonly webhook_id: string
  readonly version: number
}

const keyOf = ({ accountId, sourceId }: Accepted): string => {
  const hex = hash("sha256", `${accountId}.${sourceId}`, "hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

const fanOut = (sql: PgClient.PgClient, events: ReadonlyArray<Accepted>, keys: ReadonlyArray<string>, now: Date) =>
  sql<FanOut>`
    with input as materialized (
      select * from unnest(${arrayOf(events.map((e) => e.accountId))}::uuid[], ${arrayOf(keys)}::uuid[],
        ${arrayOf(events.map((e) => e.event))}::text[]) with ordinality i(account_id, key, event, ord)
    ), fresh as (
      insert into seen_events (account_id, key, seen_on)
      select i.account_id, i.key, ${now}::timestamptz::date
      from input i join accounts a on a.id = i.account_id and not a.removed
      order by i.account_id, i.key
      on conflict do nothing returning account_id, key
    )
    select i.ord::int as ord, a.id is not null as known, f.key is not null as fresh, w.id as webhook_id, w.version,
      (select nextval('delivery_claims')) as claim
    from input i
    left join accounts a on a.id = i.account_id and not a.removed
    left join fresh f on f.account_id = i.account_id and f.key = i.key
    left join webhooks w on f.key is not null and w.account_id = i.account_id and w.is_active
      and w.deleted_at is null and w.events @> array[i.event]`

export interface NewDelivery {
  readonly id: string
  readonly webhookId: string
  readonly accountId: string
  readonly eventId: string
  readonly event: string
  readonly claimed: boolean
}

/**
 * Writes events, deliveries, queue rows, counts and lanes in one statement of the caller's transaction.
 *
 * Whoever puts into the queue what waits locks its lane, also where that points early enough: a scan that looks before
 * the commit would otherwise move the lane on, past rows that it cannot see yet (see `announceDue`).
 */
export const insertDeliveries = (
  sql: PgClient.PgClient,
  events: ReadonlyArray<Accepted & { readonly id: string }>,
  deliveries: ReadonlyArray<NewDelivery>,
  at: { readonly now: Date; readonly claim: bigint; readonly leaseUntil: Date },
): Effect.Effect<void, SqlError.SqlError> =>
  Effect.asVoid(sql`
    with event as (
      insert into events (id, account_id, source_id, event, body, created_at)
      select e.id, e.account_id, e.source_id, e.event, e.body, ${at.now}
      from unnest(${arrayOf(events.map((e) => e.id))}::uuid[], ${arrayOf(events.map((e) => e.accountId))}::uuid[],
        ${events.map((e) => e.sourceId)}::text[], ${arrayOf(events.map((e) => e.event))}::text[],
        ${events.map((e) => e.body)}::text[])
        e(id, account_id, source_id, event, body)
    ), input as materialized (
      select * from unnest(${arrayOf(deliveries.map((d) => d.id))}::uuid[],
        ${arrayOf(deliveries.map((d) => d.webhookId))}::uuid[], ${arrayOf(deliveries.map((d) => d.accountId))}::uuid[],
        ${arrayOf(deliveries.map((d) => d.eventId))}::uuid[], ${arrayOf(deliveries.map((d) => d.event))}::text[],
        ${arrayOf(deliveries.map((d) => d.claimed))}::bool[]) d(id, webhook_id, account_id, event_id, event, claimed)
    ), delivery as (
      insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, created_at)
      select id, webhook_id, account_id, event_id, event, 'pending', 1, 1, ${at.now} from input
    ), queued as (
      insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at, claim, lease_until)
      select id, webhook_id, account_id, event_id, 1, 1, ${at.now},
        case when claimed then ${at.claim}::bigint end, case when claimed then ${at.leaseUntil}::timestamptz end
      from input
    ), counted as (
      insert into delivery_counts (webhook_id, day, status, n)
      select webhook_id, ${at.now}::timestamptz::date, 'pending', count(*) from input group by webhook_id
    ), lanes as materialized (
      select l.webhook_id, l.next_due_at from webhook_lanes l
      where l.webhook_id in (select webhook_id from input where not claimed)
      order by l.webhook_id for update
    )
    update webhook_lanes l set next_due_at = ${at.now} from lanes
    where l.webhook_id = lanes.webhook_id and (lanes.next_due_at is null or lanes.next_due_at > ${at.now})`)

export const accept = Effect.fnUntraced(function* (
  { sql, endpoints, reserve, lease }: {
    readonly sql: PgClient.PgClient
    readonly endpoints: Endpoints["Service"]
    /** Takes one slot of a webhook, if there is one; the caller gives slots back when the transaction fails. */
    readonly reserve: (webhookId: string, accountId: string) => boolean
    /** How long a claim holds, in milliseconds. */
    readonly lease: number
  },
  events: ReadonlyArray<Accepted>,
): Effect.fn.Return<Acceptance, SqlError.SqlError> {
  const keys = events.map(keyOf)
  const first = new Map(keys.map((key, i) => [key, i] as const).reverse())
  const own = events.flatMap((_, i) => first.get(keys[i]!) === i ? [i] : [])
  const now = new Date(yield* Clock.currentTimeMillis)
  const rows = yield* fanOut(sql, own.map((i) => events[i]!), own.map((i) => keys[i]!), now)
  const unknownKeys = new Set(rows.flatMap((row) => row.known ? [] : [keys[own[row.ord - 1]!]!]))
  const unknown = events.flatMap((_, i) => unknownKeys.has(keys[i]!) ? [i] : [])
  const fresh = new Set(rows.flatMap((row) => row.fresh ? [row.ord] : [])).size
  const duplicates = events.length - unknown.length - fresh

  const heard = rows.filter((row): row is Heard => row.webhook_id !== null).sort((a, b) => a.ord - b.ord)
  const found = yield* endpoints.get(heard.map((p) => ({ webhookId: p.webhook_id, version: p.version })))
  const pairs = heard.filter((pair) => found.has(pair.webhook_id))
  if (pairs.length === 0) return { unknown, duplicates, deliveries: 0, tasks: [], overflow: false }

  const { batch } = yield* Ids
  const ids = yield* batch(pairs.length)
  const ords = [...new Set(pairs.map((pair) => pair.ord))]
  const eventIds = yield* batch(ords.length)
  const eventId = new Map(ords.map((ord, i) => [ord, eventIds[i]!]))
  const claim = pairs[0]!.claim
  const leaseUntil = now.getTime() + lease
  const tasks: Array<Task> = []
  const deliveries = pairs.map(({ ord, webhook_id: webhookId }, i): NewDelivery => {
    const { accountId, body, event } = events[own[ord - 1]!]!
    const delivery = { id: ids[i]!, webhookId, accountId, event, eventId: eventId.get(ord)! }
    if (!reserve(webhookId, accountId)) return { ...delivery, claimed: false }
    const endpoint = found.get(webhookId)!
    const { host } = endpoint
    const once = { cycle: 1, attempt: 1, claim, leaseUntil }
    tasks.push({ deliveryId: delivery.id, webhookId, accountId, eventType: event, body, endpoint, host, ...once })
    return { ...delivery, claimed: true }
  })
  const stored = ords.map((ord) => ({ ...events[own[ord - 1]!]!, id: eventId.get(ord)! }))
  yield* insertDeliveries(sql, stored, deliveries, { now, claim, leaseUntil: new Date(leaseUntil) })
  return { unknown, duplicates, deliveries: pairs.length, tasks, overflow: tasks.length < pairs.length }
})
