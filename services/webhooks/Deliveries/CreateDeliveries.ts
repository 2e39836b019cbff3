/**
 * From an event to its deliveries, in one statement, which is its own transaction: do the webhooks still listen that did
 * (Listeners)?, seen before?, the event once, one delivery and one queue row for each webhook, born claimed as far as the
 * Sender has slots. First tries do not travel again; what found no slot is due now and comes by way of the scan. Events of
 * an account whose webhooks have changed are left out, and go again with the webhooks that it has by then.
 *
 * Slots are taken before it is known which events are new, because that is known only where they are remembered; what
 * was seen before gives them back.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import { Ids } from "../../platform/Ids.ts"
import type { EndpointKey, Endpoints } from "../Endpoints.ts"
import type { Listeners, Listening } from "../Listeners.ts"
import type { Task } from "../Sender/Task.ts"
import { arrayOf } from "./PgArray.ts"
import { seenKeyOf } from "./SeenKey.ts"

/** Fewer rows than this are written by a plan that is made once (`Database.quick`). */
export const few = 50

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
  /** Positions of events that were left out, because their account's webhooks changed meanwhile. */
  readonly moved: ReadonlyArray<number>
  /** Whether some deliveries wait for the scan. */
  readonly overflow: boolean
}

/** An event to be remembered, and to be stored where it has deliveries. */
export interface NewEvent extends Accepted {
  readonly id: string
  readonly deliveries: ReadonlyArray<{ readonly id: string; readonly webhookId: string; readonly claimed: boolean }>
}

interface Inserted {
  readonly fresh: ReadonlySet<number>
  readonly claim: bigint
  readonly current: ReadonlySet<string>
}

interface InsertedRow {
  readonly fresh: ReadonlyArray<number>
  readonly claim: bigint
  readonly current: ReadonlyArray<string>
}

/** What no account's number is. */
const anyVersion = 0

/** The accounts that are as `versions` has them. By key, whatever the planner supposes of how many there are. */
const currentAccounts = (
  sql: PgClient.PgClient,
  events: ReadonlyArray<NewEvent>,
  versions: ReadonlyMap<string, bigint>,
) => {
  const accounts = [...new Set(events.map(({ accountId }) => accountId))]
  return sql`
      select c.id from unnest(${arrayOf(accounts)}::uuid[],
        ${arrayOf(accounts.map((id) => versions.get(id) ?? anyVersion))}::bigint[]) c(id, version)
      where c.version = ${anyVersion}
        or c.version = (select a.listeners from accounts a where a.id = c.id and not a.removed)`
}

/**
 * The events of accounts in `account`, by number, with the keys under which they are remembered.
 *
 * The rows come from a series, because PostgreSQL takes an array whose length it does not know for ten rows, and would
 * join hundreds in nested loops. The conditions on them, here and in `remembered`, are boolean subqueries for the same
 * reason: PostgreSQL takes a semi-join on an array's element, and `is null`, to leave two rows of 500, and compared every
 * event with every other.
 */
const keyedEvents = (sql: PgClient.PgClient, events: ReadonlyArray<NewEvent>) => {
  const keys = events.map(({ accountId, sourceId }) => seenKeyOf(accountId, sourceId))
  return sql`
      select k.n, k.account_id, k.key, k.before from (
        select n, (${arrayOf(events.map((e) => e.accountId))}::uuid[])[n] as account_id,
          (${arrayOf(keys.map(({ key }) => key))}::uuid[])[n] as key,
          (${arrayOf(keys.map(({ before }) => before))}::uuid[])[n] as before
        from generate_series(1, ${events.length}::int) n
      ) k where (select true from account a where a.id = k.account_id)`
}

/** An event that has deliveries. */
interface Heard {
  readonly event: NewEvent
  /** Its number in the statement, from 1 on. */
  readonly place: number
}

/** The events that have deliveries, as far as they are in `fresh`. */
const heardEvents = (sql: PgClient.PgClient, heard: ReadonlyArray<Heard>) =>
  sql`
      select f.n, f.account_id, e.id, e.source_id, e.event, e.body
      from unnest(${arrayOf(heard.map((h) => h.place))}::int[], ${arrayOf(heard.map((h) => h.event.id))}::uuid[],
        ${heard.map((h) => h.event.sourceId)}::text[], ${arrayOf(heard.map((h) => h.event.event))}::text[],
        ${heard.map((h) => h.event.body)}::text[]) e(n, id, source_id, event, body)
      join fresh f on f.n = e.n`

/** The deliveries of the events in `event`. */
const madeDeliveries = (sql: PgClient.PgClient, heard: ReadonlyArray<Heard>) => {
  const made = heard.flatMap(({ event, place }) => event.deliveries.map((delivery) => ({ delivery, place })))
  return sql`
      select d.id, d.webhook_id, e.account_id, e.id as event_id, e.event, d.claimed
      from unnest(${arrayOf(made.map((m) => m.place))}::int[], ${arrayOf(made.map((m) => m.delivery.id))}::uuid[],
        ${arrayOf(made.map((m) => m.delivery.webhookId))}::uuid[],
        ${arrayOf(made.map((m) => m.delivery.claimed))}::bool[]) d(n, id, webhook_id, claimed)
      join event e on e.n = d.n`
}

/**
 * Remembers events, and writes events, deliveries, queue rows, counts and lanes of those that were not there before;
 * gives their places, from 0 on, the claim, and the accounts that were as `versions` has them: of another, nothing is
 * written. An account that it does not have is taken as it is. No event twice.
 *
 * Whoever puts into the queue what waits locks its lane, also where that points early enough: a scan that looks before
 * the commit would otherwise move the lane on, past rows that it cannot see yet (see `announceDue`).
 */
export const insertEvents = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  events: ReadonlyArray<NewEvent>,
  at: { readonly now: Date; readonly leaseUntil: Date },
  versions: ReadonlyMap<string, bigint> = new Map(),
): Effect.fn.Return<Inserted, SqlError.SqlError> {
  const heard = events.flatMap((event, i) => event.deliveries.length === 0 ? [] : [{ event, place: i + 1 }])
  const [row] = yield* sql<InsertedRow>`
    with account as materialized (${currentAccounts(sql, events, versions)}
    ), known as materialized (${keyedEvents(sql, events)}
    ), remembered as (
      insert into seen_ids (key, seen_on)
      select k.key, ${at.now}::timestamptz::date from known k
      -- What was remembered before there were days; one by one by key.
      where not coalesce(
        (select true from seen_events s where s.account_id = k.account_id and s.key = k.before), false)
      order by k.key
      on conflict do nothing returning key
    ), fresh as materialized (
      select n, account_id from known join remembered using (key)
    ), event as materialized (${heardEvents(sql, heard)}
    ), stored as (
      insert into events (id, account_id, source_id, event, body, created_at)
      select id, account_id, source_id, event, body, ${at.now} from event
    ), input as materialized (${madeDeliveries(sql, heard)}
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
    select array(select n - 1 from fresh) as fresh, (select claim from own) as claim,
      array(select id::text from account) as current`
  return { fresh: new Set(row!.fresh), claim: row!.claim, current: new Set(row!.current) }
})

/** Events with the webhooks that hear them, each its own: an event that is there twice is taken once. */
const heardBy = (
  events: ReadonlyArray<Accepted>,
  listening: ReadonlyMap<string, Listening>,
): ReadonlyArray<{ readonly event: Accepted; readonly by: ReadonlyArray<EndpointKey> }> => {
  const own = new Map<string, { readonly event: Accepted; readonly by: ReadonlyArray<EndpointKey> }>()
  for (const event of events) {
    const key = `${event.accountId}.${event.sourceId}`
    const account = listening.get(event.accountId)
    if (account !== undefined && !own.has(key)) own.set(key, { event, by: account.to(event.event) })
  }
  return [...own.values()]
}

export interface Acceptor {
  /** For many events, and for few. */
  readonly sql: PgClient.PgClient
  readonly quick: PgClient.PgClient
  readonly endpoints: Endpoints["Service"]
  readonly listeners: Listeners["Service"]
  /** Takes one slot of a webhook, if there is one; the caller gives slots back where this fails. */
  readonly reserve: (webhookId: string, accountId: string) => boolean
  /** Gives one slot back. */
  readonly release: (webhookId: string) => void
  /** How long a claim holds, in milliseconds. */
  readonly lease: number
}

/** Takes in the events of accounts whose webhooks are as `listening` has them. */
const acceptOf = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { endpoints, lease, release, reserve }: Acceptor,
  events: ReadonlyArray<Accepted>,
  listening: ReadonlyMap<string, Listening>,
): Effect.fn.Return<Acceptance, SqlError.SqlError> {
  const unknown = events.flatMap(({ accountId }, i) => listening.has(accountId) ? [] : [i])
  const own = heardBy(events, listening)
  if (own.length === 0) return { ...nothing, unknown }
  const targets = yield* endpoints.get(new Set(own.flatMap(({ by }) => by)))
  const heard = own.map(({ by, event }) => ({ event, by: by.filter(({ webhookId }) => targets.has(webhookId)) }))

  const { batch } = yield* Ids
  const eventIds = yield* batch(heard.length)
  const deliveryIds = yield* batch(heard.reduce((sum, { by }) => sum + by.length, 0))
  let used = 0
  const made = heard.map(({ by, event }, i): NewEvent => ({
    ...event,
    id: eventIds[i]!,
    deliveries: by.map(({ webhookId }) => {
      return { id: deliveryIds[used++]!, webhookId, claimed: reserve(webhookId, event.accountId) }
    }),
  }))
  const now = yield* Clock.currentTimeMillis
  const leaseUntil = now + lease
  const at = { now: new Date(now), leaseUntil: new Date(leaseUntil) }
  const versions = new Map([...listening].map(([accountId, { version }]) => [accountId, version]))
  const { claim, current, fresh } = yield* insertEvents(sql, made, at, versions)

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
  const moved = events.flatMap(({ accountId }, i) => listening.has(accountId) && !current.has(accountId) ? [i] : [])
  const duplicates = events.length - unknown.length - moved.length - fresh.size
  return { unknown, moved, duplicates, deliveries, tasks, overflow: tasks.length < deliveries }
})

const nothing: Acceptance = { unknown: [], moved: [], duplicates: 0, deliveries: 0, tasks: [], overflow: false }

/**
 * Takes events in as far as their accounts' webhooks are as they are remembered; gives those that it left out. With `hold`
 * the accounts are locked first, and none is.
 */
export const accept = Effect.fnUntraced(function* (
  acceptor: Acceptor,
  events: ReadonlyArray<Accepted>,
  hold = false,
): Effect.fn.Return<Acceptance, SqlError.SqlError> {
  const { listeners, quick, sql } = acceptor
  const accountIds = new Set(events.map((event) => event.accountId))
  if (hold) {
    return yield* Effect.flatMap(listeners.held(accountIds), (listening) => acceptOf(sql, acceptor, events, listening))
      .pipe(sql.withTransaction)
  }
  const listening = yield* listeners.of(accountIds)
  // Within a transaction it is a part of that.
  const alone = Option.isNone(yield* Effect.serviceOption(sql.transactionService))
  const acceptance = yield* acceptOf(alone && events.length < few ? quick : sql, acceptor, events, listening)
  listeners.forget(new Set(acceptance.moved.map((i) => events[i]!.accountId)))
  return acceptance
})

/**
 * Takes all of these events in by `step`, which is `accept`: what it leaves out goes again. An account whose webhooks change
 * all the time is locked at its third turn.
 */
export const acceptAll = Effect.fnUntraced(function* <E>(
  step: (events: ReadonlyArray<Accepted>, hold: boolean) => Effect.Effect<Acceptance, E>,
  events: ReadonlyArray<Accepted>,
): Effect.fn.Return<Acceptance, E> {
  let all = yield* step(events, false)
  let left = all.moved
  for (let turn = 2; left.length > 0; turn++) {
    const positions = left
    const more: Acceptance = yield* step(positions.map((i) => events[i]!), turn > 2)
    all = {
      unknown: [...all.unknown, ...more.unknown.map((i) => positions[i]!)],
      moved: [],
      duplicates: all.duplicates + more.duplicates,
      deliveries: all.deliveries + more.deliveries,
      tasks: [...all.tasks, ...more.tasks],
      overflow: all.overflow || more.overflow,
    }
    left = more.moved.map((i) => positions[i]!)
  }
  return all
})
