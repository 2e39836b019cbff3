/**
 * Accepts events and creates their deliveries in one statement, which is its own transaction: it checks that the
 * account's webhooks are those that the cache has (Listeners), skips events that were seen before, and inserts each
 * event once, with one delivery and one queue row per webhook. The rows are inserted already claimed as far as the
 * Sender has slots, so that first tries are sent without a message on the bus; the others are due now and found by the
 * scan. Events of an account whose webhooks have changed are left out, and accepted again with its current webhooks.
 *
 * Slots are reserved before it is known which events are new, because only the statement knows that; the slots of
 * repeated events are given back afterwards.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, DeliveryId, EventId, SourceEventId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { Ids } from "../../platform/Ids.ts"
import type { EndpointKey, Endpoints } from "../Endpoints.ts"
import type { Listeners, Listening } from "../Listeners.ts"
import type { Task } from "../Sender/Task.ts"
import { arrayOf } from "./PgArray.ts"
import { seenKeyOf } from "./SeenKey.ts"

/** Fewer rows than this are written with a cached plan (`Database.quick`). */
export const few = 50

/** A decoded event and the exact body that its receivers get. */
export interface Accepted {
  readonly sourceId: SourceEventId
  readonly accountId: AccountId
  readonly event: string
  readonly body: string
}

export interface Acceptance {
  /** Indexes of events whose account is not known (yet). */
  readonly unknown: ReadonlyArray<number>
  readonly duplicates: number
  readonly deliveries: number
  readonly tasks: ReadonlyArray<Task>
  /** Indexes of events that were left out because their account's webhooks have changed. */
  readonly outdated: ReadonlyArray<number>
  /** Whether some deliveries wait for the scan. */
  readonly overflow: boolean
}

/** An event to remember; it is stored only if it has deliveries, or a paused webhook misses it. */
export interface NewEvent extends Accepted {
  readonly id: EventId
  readonly deliveries: ReadonlyArray<
    { readonly id: DeliveryId; readonly webhookId: WebhookId; readonly claimed: boolean }
  >
  /** The paused webhooks that subscribe to it (MissedEvents.ts). */
  readonly missedBy?: ReadonlyArray<WebhookId>
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

/** A version that no account has: an account with it is not checked. */
const anyVersion = 0

/**
 * SQL: the accounts whose listeners version is the one in `versions`, looked up by key, whatever number of rows the
 * planner expects.
 */
const currentAccounts = (
  sql: PgClient.PgClient,
  events: ReadonlyArray<NewEvent>,
  versions: ReadonlyMap<AccountId, bigint>,
) => {
  const accounts = [...new Set(events.map(({ accountId }) => accountId))]
  return sql`
      select c.id from unnest(${arrayOf(accounts)}::uuid[],
        ${arrayOf(accounts.map((id) => versions.get(id) ?? anyVersion))}::bigint[]) c(id, version)
      where c.version = ${anyVersion}
        or c.version = (select a.listeners from accounts a where a.id = c.id and not a.removed)`
}

/**
 * SQL: the events of accounts in the CTE `account`, by number, with the keys under which they are remembered.
 *
 * The rows come from `generate_series`, because PostgreSQL expects ten rows of an array of unknown length, and would
 * join hundreds in nested loops. The conditions on them, here and in `remembered`, are boolean subqueries for the same
 * reason: of a semi-join on an array's element, and of `is null`, PostgreSQL expects two rows out of 500, and then
 * compared every event with every other.
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

/** An event that is stored. */
interface Subscribed {
  readonly event: NewEvent
  /** Its number in the statement, from 1 on. */
  readonly number: number
}

/** SQL: the events to be stored that are in the CTE `fresh`. */
const subscribedEvents = (sql: PgClient.PgClient, subscribed: ReadonlyArray<Subscribed>) =>
  sql`
      select f.n, f.account_id, e.id, e.source_id, e.event, e.body
      from unnest(${arrayOf(subscribed.map((s) => s.number))}::int[],
        ${arrayOf(subscribed.map((s) => s.event.id))}::uuid[],
        ${subscribed.map((s) => s.event.sourceId)}::text[], ${arrayOf(subscribed.map((s) => s.event.event))}::text[],
        ${subscribed.map((s) => s.event.body)}::text[]) e(n, id, source_id, event, body)
      join fresh f on f.n = e.n`

/** SQL: the deliveries of the events in the CTE `event`. */
const madeDeliveries = (sql: PgClient.PgClient, subscribed: ReadonlyArray<Subscribed>) => {
  const made = subscribed.flatMap(({ event, number }) => event.deliveries.map((delivery) => ({ delivery, number })))
  return sql`
      select d.id, d.webhook_id, e.account_id, e.id as event_id, e.event, d.claimed
      from unnest(${arrayOf(made.map((m) => m.number))}::int[], ${arrayOf(made.map((m) => m.delivery.id))}::uuid[],
        ${arrayOf(made.map((m) => m.delivery.webhookId))}::uuid[],
        ${arrayOf(made.map((m) => m.delivery.claimed))}::bool[]) d(n, id, webhook_id, claimed)
      join event e on e.n = d.n`
}

/** SQL: a CTE that notes the events of the CTE `event` for the paused webhooks that miss them; empty where none does. */
const missedNotes = (sql: PgClient.PgClient, subscribed: ReadonlyArray<Subscribed>) => {
  const notes = subscribed.flatMap(({ event: { missedBy = [] }, number }) => missedBy.map((id) => ({ id, number })))
  return notes.length === 0 ? sql`` : sql`, missed as (
      insert into missed_events (webhook_id, event_id)
      select m.webhook_id, e.id
      from unnest(${arrayOf(notes.map((m) => m.number))}::int[], ${arrayOf(notes.map((m) => m.id))}::uuid[])
        m(n, webhook_id) join event e on e.n = m.n
    )`
}

/**
 * Remembers events, and writes the events, deliveries, queue rows, counts and queue states of those that were not seen
 * before. Returns the indexes of these, their claim, and the accounts whose listeners version is the one in `versions`;
 * of other accounts nothing is written. An account that `versions` does not name is not checked. An event must not
 * occur twice in `events`.
 *
 * A transaction that inserts queue rows without a claim locks their queue states, also if their due time is early
 * enough: otherwise a scan before the commit would set a later due time, past rows that it cannot see yet (see
 * `announceDue`).
 */
export const insertEvents = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  events: ReadonlyArray<NewEvent>,
  at: { readonly now: Date; readonly leaseUntil: Date },
  versions: ReadonlyMap<AccountId, bigint> = new Map(),
): Effect.fn.Return<Inserted, SqlError.SqlError> {
  const subscribed = events.flatMap((event, i) =>
    event.deliveries.length === 0 && (event.missedBy ?? []).length === 0 ? [] : [{ event, number: i + 1 }]
  )
  const [row] = yield* sql<InsertedRow>`
    with account as materialized (
      -- Accounts whose webhooks have not changed since the cache read them.${currentAccounts(sql, events, versions)}
    ), known as materialized (
      -- The events of these accounts, with their keys.${keyedEvents(sql, events)}
    ), remembered as (
      -- Remembers the events that were not seen before. The older table without days is read by key, row by row.
      insert into seen_ids (key, seen_on)
      select k.key, ${at.now}::timestamptz::date from known k
      where not coalesce(
        (select true from seen_events s where s.account_id = k.account_id and s.key = k.before), false)
      order by k.key
      on conflict do nothing returning key
    ), fresh as materialized (
      -- The numbers of the new events.
      select n, account_id from known join remembered using (key)
    ), event as materialized (
      -- The new events that are stored.${subscribedEvents(sql, subscribed)}
    ), stored as (
      -- Stores these events.
      insert into events (id, account_id, source_id, event, body, created_at)
      select id, account_id, source_id, event, body, ${at.now} from event
    ), input as materialized (
      -- Their deliveries.${madeDeliveries(sql, subscribed)}
    ), new_claim as materialized (
      -- One claim for all of them.
      select nextval('delivery_claims') as claim
    ), delivery as (
      -- Inserts the deliveries.
      insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, created_at)
      select id, webhook_id, account_id, event_id, event, 'pending', 1, 1, ${at.now} from input
    ), queued as (
      -- Inserts their queue rows, claimed if a slot is reserved.
      insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at, claim, lease_until)
      select id, webhook_id, account_id, event_id, 1, 1, ${at.now},
        case when claimed then (select claim from new_claim) end,
        case when claimed then ${at.leaseUntil}::timestamptz end
      from input
    ), counted as (
      -- Counts them as pending.
      insert into delivery_counts (webhook_id, day, status, n)
      select webhook_id, ${at.now}::timestamptz::date, 'pending', count(*) from input group by webhook_id
    ), queues as materialized (
      -- Locks the queue states of deliveries without a claim.
      select l.webhook_id, l.next_due_at from webhook_lanes l
      where l.webhook_id in (select webhook_id from input where not claimed)
      order by l.webhook_id for update
    ), due_queues as (
      -- Makes these queues due now.
      update webhook_lanes l set next_due_at = ${at.now} from queues
      where l.webhook_id = queues.webhook_id and (queues.next_due_at is null or queues.next_due_at > ${at.now})
    )${missedNotes(sql, subscribed)}
    select array(select n - 1 from fresh) as fresh, (select claim from new_claim) as claim,
      array(select id::text from account) as current`
  return { fresh: new Set(row!.fresh), claim: row!.claim, current: new Set(row!.current) }
})

interface WithSubscribers {
  readonly event: Accepted
  readonly by: ReadonlyArray<EndpointKey>
  readonly missedBy: ReadonlyArray<WebhookId>
}

/** Events with the webhooks that subscribe to them; an event that occurs twice is taken once. */
const withSubscribers = (
  events: ReadonlyArray<Accepted>,
  listening: ReadonlyMap<AccountId, Listening>,
): ReadonlyArray<WithSubscribers> => {
  const own = new Map<string, WithSubscribers>()
  for (const event of events) {
    const key = `${event.accountId}.${event.sourceId}`
    const account = listening.get(event.accountId)
    if (account !== undefined && !own.has(key)) {
      own.set(key, { event, by: account.to(event.event), missedBy: account.missing(event.event) })
    }
  }
  return [...own.values()]
}

export interface Acceptor {
  /** `sql` for many events, `quick` for few. */
  readonly sql: PgClient.PgClient
  readonly quick: PgClient.PgClient
  readonly endpoints: Endpoints["Service"]
  readonly listeners: Listeners["Service"]
  /**
   * Reserves one slot of a webhook; returns whether there was one. If `accept` fails, the caller gives the slots back.
   */
  readonly reserve: (webhookId: WebhookId, accountId: AccountId) => boolean
  /** Gives one slot back. */
  readonly release: (webhookId: WebhookId) => void
  /** The lease of a claim, in milliseconds. */
  readonly lease: number
}

/** Accepts the events of accounts whose webhooks are still those of `listening`. */
const acceptOf = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { endpoints, lease, release, reserve }: Acceptor,
  events: ReadonlyArray<Accepted>,
  listening: ReadonlyMap<AccountId, Listening>,
): Effect.fn.Return<Acceptance, SqlError.SqlError> {
  const unknown = events.flatMap(({ accountId }, i) => listening.has(accountId) ? [] : [i])
  const own = withSubscribers(events, listening)
  if (own.length === 0) return { ...nothing, unknown }
  const targets = yield* endpoints.get(new Set(own.flatMap(({ by }) => by)))
  const subscribed = own.map(({ by, ...one }) => ({ ...one, by: by.filter(({ webhookId }) => targets.has(webhookId)) }))

  const { batch } = yield* Ids
  // Branded together: a decode for each would cost each event.
  const eventIds = (yield* batch(subscribed.length)) as ReadonlyArray<EventId>
  const deliveryIds = (yield* batch(subscribed.reduce((sum, { by }) => sum + by.length, 0))) as ReadonlyArray<
    DeliveryId
  >
  let used = 0
  const made = subscribed.map(({ by, event, missedBy }, i): NewEvent => ({
    ...event,
    missedBy,
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
      const { host, rateLimit: rate } = endpoint
      const once = { cycle: 1, attempt: 1, claim, leaseUntil }
      tasks.push({ deliveryId, webhookId, accountId, eventType, body, endpoint, host, rate, ...once })
    }
  }
  const outdated = events.flatMap(({ accountId }, i) => listening.has(accountId) && !current.has(accountId) ? [i] : [])
  const duplicates = events.length - unknown.length - outdated.length - fresh.size
  return { unknown, outdated, duplicates, deliveries, tasks, overflow: tasks.length < deliveries }
})

const nothing: Acceptance = { unknown: [], outdated: [], duplicates: 0, deliveries: 0, tasks: [], overflow: false }

/**
 * Accepts events whose accounts' webhooks are those of the cache; the others are in `outdated`. With `lock` it locks
 * the accounts and reads their webhooks first, so none is left out.
 */
export const accept = Effect.fnUntraced(function* (
  acceptor: Acceptor,
  events: ReadonlyArray<Accepted>,
  lock = false,
): Effect.fn.Return<Acceptance, SqlError.SqlError> {
  const { listeners, quick, sql } = acceptor
  const accountIds = new Set(events.map((event) => event.accountId))
  if (lock) {
    return yield* Effect.flatMap(
      listeners.locked(accountIds),
      (listening) => acceptOf(sql, acceptor, events, listening),
    )
      .pipe(sql.withTransaction)
  }
  const listening = yield* listeners.of(accountIds)
  // In a transaction of the caller it must use the same connection.
  const alone = Option.isNone(yield* Effect.serviceOption(sql.transactionService))
  const acceptance = yield* acceptOf(alone && events.length < few ? quick : sql, acceptor, events, listening)
  listeners.forget(new Set(acceptance.outdated.map((i) => events[i]!.accountId)))
  return acceptance
})

/**
 * Accepts all events by `step`, which is `accept`, and repeats it for those that it leaves out. From the third step on
 * the accounts are locked, because some change their webhooks all the time.
 */
export const acceptAll = Effect.fnUntraced(function* <E>(
  step: (events: ReadonlyArray<Accepted>, lock: boolean) => Effect.Effect<Acceptance, E>,
  events: ReadonlyArray<Accepted>,
): Effect.fn.Return<Acceptance, E> {
  let all = yield* step(events, false)
  let left = all.outdated
  for (let turn = 2; left.length > 0; turn++) {
    const positions = left
    const more: Acceptance = yield* step(positions.map((i) => events[i]!), turn > 2)
    all = {
      unknown: [...all.unknown, ...more.unknown.map((i) => positions[i]!)],
      outdated: [],
      duplicates: all.duplicates + more.duplicates,
      deliveries: all.deliveries + more.deliveries,
      tasks: [...all.tasks, ...more.tasks],
      overflow: all.overflow || more.overflow,
    }
    left = more.outdated.map((i) => positions[i]!)
  }
  return all
})
