/**
 * From an event to its deliveries (RULES, Deliveries): who listens?, then in one statement, which is its own
 * transaction: seen before?, the event once, one delivery and one queue row for each webhook, born claimed as far as the
 * Sender has slots. First tries do not travel again; what found no slot is due now and comes by way of the scan.
 *
 * Slots are taken before it is known which events are new, because that is known only where they are remembered; what
 * was seen before gives them back.
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

/** A known account and its active webhooks. */
interface Account {
  readonly account_id: string
  readonly listeners: ReadonlyArray<readonly [webhookId: string, version: number, events: ReadonlyArray<string>]> | null
}

/**
 * Asked once an account, not once an event: matching each event with webhooks here would compare it with all of them,
 * and a row for each pair costs more to read than to find.
 */
const listening = (sql: PgClient.PgClient, accountIds: Iterable<string>) =>
  sql<Account>`
    select a.id as account_id, w.listeners from unnest(${arrayOf([...accountIds])}::uuid[]) i(id)
    cross join lateral (select id from accounts where id = i.id and not removed offset 0) a
    cross join lateral (
      select jsonb_agg(jsonb_build_array(id, version, events)) as listeners from webhooks
      where account_id = a.id and is_active and deleted_at is null
    ) w`

/** An event to be remembered, and to be stored where it has deliveries. */
export interface NewEvent extends Accepted {
  readonly id: string
  readonly deliveries: ReadonlyArray<{ readonly id: string; readonly webhookId: string; readonly claimed: boolean }>
}

/** What an event is known by from now on: 128 bits of a digest, in hexadecimal. */
const keyOf = ({ accountId, sourceId }: Accepted): string =>
  hash("sha256", `${accountId}.${sourceId}`, "hex").slice(0, 32)

/**
 * Remembers events, and writes events, deliveries, queue rows, counts and lanes of those that were not there before;
 * gives their places, from 0 on, and the claim. No event twice.
 *
 * Whoever puts into the queue what waits locks its lane, also where that points early enough: a scan that looks before
 * the commit would otherwise move the lane on, past rows that it cannot see yet (see `announceDue`).
 *
 * The first rows come from a series, because PostgreSQL takes an array whose length it does not know for ten rows, and
 * would join hundreds in nested loops.
 */
export const insertEvents = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  events: ReadonlyArray<NewEvent>,
  at: { readonly now: Date; readonly leaseUntil: Date },
): Effect.fn.Return<{ readonly fresh: ReadonlySet<number>; readonly claim: bigint }, SqlError.SqlError> {
  const heard = events.flatMap((event, i) => event.deliveries.length === 0 ? [] : [{ event, place: i + 1 }])
  const made = heard.flatMap(({ event, place }) => event.deliveries.map((delivery) => ({ delivery, place })))
  const [row] = yield* sql<{ readonly fresh: ReadonlyArray<number>; readonly claim: bigint }>`
    with known as materialized (
      select n, (${arrayOf(events.map((e) => e.accountId))}::uuid[])[n] as account_id,
        (${arrayOf(events.map(keyOf))}::uuid[])[n] as key
      from generate_series(1, ${events.length}::int) n
    ), remembered as (
      insert into seen_events (account_id, key, seen_on)
      select account_id, key, ${at.now}::timestamptz::date from known order by account_id, key
      on conflict do nothing returning key
    ), fresh as materialized (
      select n, account_id from known join remembered using (key)
    ), event as materialized (
      select f.n, f.account_id, e.id, e.source_id, e.event, e.body
      from unnest(${arrayOf(heard.map((h) => h.place))}::int[], ${arrayOf(heard.map((h) => h.event.id))}::uuid[],
        ${heard.map((h) => h.event.sourceId)}::text[], ${arrayOf(heard.map((h) => h.event.event))}::text[],
        ${heard.map((h) => h.event.body)}::text[]) e(n, id, source_id, event, body)
      join fresh f on f.n = e.n
    ), stored as (
      insert into events (id, account_id, source_id, event, body, created_at)
      select id, account_id, source_id, event, body, ${at.now} from event
    ), input as materialized (
      select d.id, d.webhook_id, e.account_id, e.id as event_id, e.event, d.claimed
      from unnest(${arrayOf(made.map((m) => m.place))}::int[], ${arrayOf(made.map((m) => m.delivery.id))}::uuid[],
        ${arrayOf(made.map((m) => m.delivery.webhookId))}::uuid[],
        ${arrayOf(made.map((m) => m.delivery.claimed))}::bool[]) d(n, id, webhook_id, claimed)
      join event e on e.n = d.n
    ), own as materialized (
      select nextval('delivery_claims') as claim
    ), delivery as (
      insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, created_at)
      select id, webhook_id, account_id, event_id, event, 'pending', 1, 1, ${at.now} from input
    ), queued as (
      insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at, claim, lease_until)
      select id, webhook_id, account_id, event_id, 1, 1, ${at.now},
        case when claimed then (select claim from own) end,
        case when claimed then ${at.leaseUntil}::timestamptz end
      from input
    ), counted as (
      insert into delivery_counts (webhook_id, day, status, n)
      select webhook_id, ${at.now}::timestamptz::date, 'pending', count(*) from input group by webhook_id
    ), lanes as materialized (
      select l.webhook_id, l.next_due_at from webhook_lanes l
      where l.webhook_id in (select webhook_id from input where not claimed)
      order by l.webhook_id for update
    ), moved as (
      update webhook_lanes l set next_due_at = ${at.now} from lanes
      where l.webhook_id = lanes.webhook_id and (lanes.next_due_at is null or lanes.next_due_at > ${at.now})
    )
    select array(select n - 1 from fresh) as fresh, (select claim from own) as claim`
  return { fresh: new Set(row!.fresh), claim: row!.claim }
})

export const accept = Effect.fnUntraced(function* (
  { sql, endpoints, reserve, release, lease }: {
    readonly sql: PgClient.PgClient
    readonly endpoints: Endpoints["Service"]
    /** Takes one slot of a webhook, if there is one; the caller gives slots back where this fails. */
    readonly reserve: (webhookId: string, accountId: string) => boolean
    /** Gives one slot back. */
    readonly release: (webhookId: string) => void
    /** How long a claim holds, in milliseconds. */
    readonly lease: number
  },
  events: ReadonlyArray<Accepted>,
): Effect.fn.Return<Acceptance, SqlError.SqlError> {
  const found = yield* listening(sql, new Set(events.map((event) => event.accountId)))
  const listeners = new Map(found.map((row) => [row.account_id, row.listeners ?? []]))
  const unknown = events.flatMap(({ accountId }, i) => listeners.has(accountId) ? [] : [i])
  const own = new Map<string, Accepted>()
  for (const event of events) {
    const key = `${event.accountId}.${event.sourceId}`
    if (listeners.has(event.accountId) && !own.has(key)) own.set(key, event)
  }
  if (own.size === 0) return { unknown, duplicates: 0, deliveries: 0, tasks: [], overflow: false }
  const targets = yield* endpoints.get(
    [...listeners.values()].flat().map(([webhookId, version]) => ({ webhookId, version })),
  )

  const { batch } = yield* Ids
  const heard = [...own.values()].map((event) => ({
    event,
    by: listeners.get(event.accountId)!.filter(([id, , events]) => events.includes(event.event) && targets.has(id)),
  }))
  const eventIds = yield* batch(heard.length)
  const deliveryIds = yield* batch(heard.reduce((sum, { by }) => sum + by.length, 0))
  let used = 0
  const made = heard.map(({ by, event }, i): NewEvent => ({
    ...event,
    id: eventIds[i]!,
    deliveries: by.map(([webhookId]) => {
      return { id: deliveryIds[used++]!, webhookId, claimed: reserve(webhookId, event.accountId) }
    }),
  }))
  const now = yield* Clock.currentTimeMillis
  const leaseUntil = now + lease
  const { claim, fresh } = yield* insertEvents(sql, made, { now: new Date(now), leaseUntil: new Date(leaseUntil) })

  const tasks: Array<Task> = []
  let deliveries = 0
  for (const [i, { accountId, body, deliveries: own, event: eventType }] of made.entries()) {
    if (fresh.has(i)) deliveries += own.length
    for (const { claimed, id: deliveryId, webhookId } of own) {
      if (!claimed) continue
      if (!fresh.has(i)) {
        release(webhookId)
        continue
      }
      const endpoint = targets.get(webhookId)!
      const { host } = endpoint
      const once = { cycle: 1, attempt: 1, claim, leaseUntil }
      tasks.push({ deliveryId, webhookId, accountId, eventType, body, endpoint, host, ...once })
    }
  }
  const duplicates = events.length - unknown.length - fresh.size
  return { unknown, duplicates, deliveries, tasks, overflow: tasks.length < deliveries }
})
