/**
 * The partitions of events, deliveries and attempts: one per day of their UUIDv7, created ahead and dropped after their
 * retention. Deliveries that still wait then, because their webhook is paused, are first moved to the default
 * partition; so are rows that a late upkeep finds there. While rows move, the tables are locked against reads and
 * writes; so a day with many waiting deliveries is kept, and only its ended ones are deleted, in chunks.
 *
 * The ids of accepted events have their own partitions, by the time in the id (Deliveries/SeenKey.ts).
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { Database } from "../platform/database/Database.ts"
import { pruneMissed } from "./MissedEvents.ts"
import { leastIdAt } from "../platform/Ids.ts"
import {
  create,
  dayMillis,
  days,
  drop,
  exclude,
  existing,
  isOurTurn,
  lacking,
  type Parent,
} from "../platform/database/RangePartitions.ts"
import { dayOf as dayInSql } from "./Deliveries/UuidDay.ts"

export interface RetentionConfig {
  /** Days that ended deliveries are kept. */
  readonly deliveredDays: number
  /** Days that dead letters are kept. */
  readonly deadLetterDays: number
  /** Days for which an event's id is stored, to recognise a repeated event. */
  readonly intakeMemoryDays: number
  /** Maximum number of rows of a day that are moved to the default partition; default: 20,000. */
  readonly carriedOver?: number
}

const ahead = 3
const carriedOver = 20_000
const chunk = 5_000
/** Blocks of the table of stored event ids that one statement scans: about 60,000 rows. */
const looked = 512

export const webhookTables: ReadonlyArray<Parent> = [
  {
    table: "events",
    key: "id",
    unit: days,
    ahead,
    storage: "",
    appendOnly: false,
    kept: "id in (select event_id from delivery_queue)",
  },
  {
    // A batch updates all rows of a page at once. With less free space most rows would move to another page, with two
    // new index entries each.
    table: "deliveries",
    key: "id",
    unit: days,
    ahead,
    storage: "with (fillfactor = 40)",
    appendOnly: false,
    kept: "id in (select delivery_id from delivery_queue)",
  },
  {
    table: "attempts",
    key: "delivery_id",
    unit: days,
    ahead,
    storage: "",
    appendOnly: false,
    kept: "delivery_id in (select delivery_id from delivery_queue)",
  },
]

/** The stored ids of accepted events. */
export const seenTable: Parent = {
  table: "seen_ids",
  key: "key",
  unit: days,
  ahead,
  storage: "",
  appendOnly: false,
  kept: "false",
}

/** An upper bound for the keys of ids without a time. */
const timeless = "00000000-0001-0000-0000-000000000000"

/** Whether a day has more waiting deliveries than may be moved. */
const isHeavy = (owner: PgClient.PgClient, { kept }: Parent, name: string, most: number) =>
  Effect.map(
    owner.unsafe<{ n: number }>(
      `select count(*)::int as n from (select from ${name} where ${kept} limit ${most + 1}) k`,
    ),
    ([row]) => row!.n > most,
  )

/** Deletes one chunk of ended rows from a day that is kept; returns their number. The counts stay correct. */
const thin = Effect.fnUntraced(function* (owner: PgClient.PgClient, { kept, table }: Parent, name: string) {
  const counted = table === "deliveries"
    ? owner`, counted as (
        insert into delivery_counts (webhook_id, day, status, n)
        select webhook_id, ${dayInSql(owner, "id")}, status, -count(*) from gone
        where status <> 'dead_letter' group by 1, 2, 3
      )`
    : owner``
  const [row] = yield* owner<{ n: number }>`
    with old as materialized (
      select ctid from ${owner.literal(name)} where not (${owner.literal(kept)}) limit ${chunk} for update skip locked
    ), gone as (
      delete from ${owner.literal(name)} d using old where d.ctid = old.ctid returning d.*
    )${counted}
    select count(*)::int as n from gone`
  return row!.n
})

export class Partitions extends Context.Service<Partitions, {
  /**
   * Creates partitions ahead and drops those after their retention, if this process has the owner's role; deletes old
   * rows of tables without partitions.
   */
  readonly upkeep: Effect.Effect<void, SqlError.SqlError>
  /** Deletes stored event ids after their retention, block by block; takes minutes if there are many. */
  readonly forget: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/webhooks/Partitions") {
  static readonly layer = (config: RetentionConfig) =>
    Layer.effect(
      Partitions,
      Effect.gen(function* () {
        const { owner, owns, sql } = yield* Database

        /** The names of old partitions that are kept, after their ended rows were deleted. */
        const thinned = Effect.gen(function* () {
          const today = days.of(yield* Clock.currentTimeMillis)
          const heavy = new Set<string>()
          // Events last: an existing delivery must find its event.
          for (const parent of [...webhookTables].reverse()) {
            for (const { name, number } of yield* existing(owner, parent)) {
              if (number >= today - config.deliveredDays - 1) continue
              if (!(yield* isHeavy(owner, parent, name, config.carriedOver ?? carriedOver))) continue
              heavy.add(name)
              yield* thin(owner, parent, name).pipe(Effect.repeat({ until: (n) => n < chunk }))
            }
          }
          return heavy
        })

        const rotate = Effect.fnUntraced(function* (heavy: ReadonlySet<string>) {
          const today = days.of(yield* Clock.currentTimeMillis)
          if (!(yield* isOurTurn(owner))) return
          const wanted = Array.from({ length: ahead + 2 }, (_, i) => today - 1 + i)
          const found = yield* Effect.forEach(webhookTables, (parent) => existing(owner, parent))
          const missing = found.map((some) => lacking(some, wanted))
          if (missing.some((some) => some.length > 0)) yield* exclude(owner, webhookTables)
          for (const [i, parent] of webhookTables.entries()) {
            for (const day of missing[i]!) yield* create(owner, parent, day)
            for (const { name, number } of found[i]!) {
              if (number >= today - config.deliveredDays - 1) continue
              // Rows that ended since then are deleted together with the counts below.
              if (heavy.has(name)) yield* owner.unsafe(`delete from ${name} where not (${parent.kept})`)
              else yield* drop(owner, parent, name)
            }
          }
          const oldest = new Date((today - config.deliveredDays - 1) * dayMillis)
          yield* owner`delete from delivery_counts where day < ${oldest}::timestamptz::date
            and status not in ('dead_letter', 'pending', 'retrying')`
          const before = leastIdAt(oldest.getTime())
          yield* owner`delete from attempts_default where delivery_id < ${before}::uuid
            and delivery_id not in (select delivery_id from delivery_queue)`
          yield* owner`delete from deliveries_default where id < ${before}::uuid
            and id not in (select delivery_id from delivery_queue)`
          yield* owner`delete from events_default where id < ${before}::uuid
            and id not in (select event_id from delivery_queue)`
        }, owner.withTransaction)

        /** Creates partitions of event ids and drops old ones; ids in them that were seen later are kept. */
        const rotateSeen = Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const today = days.of(now)
          if (!(yield* isOurTurn(owner))) return
          const before = new Date(now - config.intakeMemoryDays * dayMillis).toISOString().slice(0, 10)
          const found = yield* existing(owner, seenTable)
          const missing = lacking(found, Array.from({ length: ahead + 2 }, (_, i) => today - 1 + i))
          if (missing.length > 0) yield* exclude(owner, [seenTable])
          for (const day of missing) yield* create(owner, seenTable, day)
          for (const { name, number } of found) {
            if (number >= today - config.intakeMemoryDays - 1) continue
            yield* drop(owner, { ...seenTable, kept: `seen_on >= '${before}'` }, name)
          }
          yield* owner`delete from seen_ids_default where seen_on < ${before}::date`
        }).pipe(owner.withTransaction)

        const prune = Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const letters = new Date(now - config.deadLetterDays * dayMillis)
          let pruned = 1_000
          while (pruned === 1_000) {
            const [row] = yield* sql<{ n: number }>`
              with old as materialized (
                select delivery_id from dead_letters where died_at < ${letters} order by died_at limit 1000
              ), gone as (
                delete from dead_letters d using old where d.delivery_id = old.delivery_id
                returning d.delivery_id, d.webhook_id, d.created_at
              ), also as (
                -- If dead letters are kept for less time than deliveries, the delivery would be listed but not counted.
                delete from deliveries d using gone where d.id = gone.delivery_id
              ), counted as (
                insert into delivery_counts (webhook_id, day, status, n)
                select webhook_id, created_at::date, 'dead_letter', -count(*) from gone group by 1, 2
              )
              select count(*)::int as n from gone`
            pruned = row!.n
          }
          // Deletes secrets that are no longer used, also of deleted webhooks, since they keep their Vault key in use.
          yield* sql`
            update webhooks set old_secret_kid = null, old_secret = null, old_secret_until = null
            where old_secret_until <= ${new Date(now)}`
          // A process of 0.2.0 deletes a webhook without its headers.
          yield* sql`
            update webhooks set secret = ''::bytea, headers_kid = null, headers = null, basic_auth_kid = null,
              basic_auth = null
            where deleted_at is not null and (secret <> ''::bytea or num_nonnulls(headers, basic_auth) > 0)`
          yield* pruneMissed(sql, (days.of(now) - config.deliveredDays - 1) * dayMillis)
          // No request can reach these webhooks any more.
          const ended = new Date(now - (config.deliveredDays + config.deadLetterDays) * dayMillis)
          yield* sql`
            with gone as (
              delete from webhooks where id in (
                select w.id from webhooks w where w.deleted_at < ${ended}
                  and not exists (select from delivery_queue q where q.webhook_id = w.id)
                  and not exists (select from dead_letters d where d.webhook_id = w.id)
                limit 10000
              ) returning id
            ), minutes as (
              delete from delivery_minutes m using gone where m.webhook_id = gone.id
            ), health as (
              delete from webhook_health h using gone where h.webhook_id = gone.id
            )
            delete from delivery_counts c using gone where c.webhook_id = gone.id`
        })

        // One statement cannot delete a whole day of ids in time, and the index on `seen_on` finds old rows ever more
        // slowly as new ones take their places. So the table is scanned by physical blocks, in short statements; `+ 0`
        // keeps the planner from using the index.
        const forgetOf = Effect.fnUntraced(function* (where: string, those: Statement.Fragment) {
          const before = new Date((yield* Clock.currentTimeMillis) - config.intakeMemoryDays * dayMillis)
          const [table] = yield* sql<{ blocks: number }>`
            select (pg_relation_size(${where}) / current_setting('block_size')::int)::int as blocks`
          for (let block = 0; block < table!.blocks; block += looked) {
            yield* sql`
              delete from ${those} and ctid >= ${`(${block},0)`}::tid and ctid < ${`(${block + looked},0)`}::tid
                and seen_on + 0 < ${before}::timestamptz::date`
          }
        })
        const forget = Effect.andThen(
          forgetOf("seen_events", sql`seen_events where true`),
          forgetOf("seen_ids_timeless", sql`seen_ids where key < ${sql.literal(`'${timeless}'`)}::uuid`),
        ).pipe(Effect.withSpan("Partitions.forget"))

        const kept = Effect.flatMap(owns, (ours) =>
          ours ? Effect.flatMap(thinned, rotate).pipe(Effect.andThen(rotateSeen)) : Effect.void)

        return Partitions.of({
          forget,
          upkeep: Effect.andThen(kept, prune).pipe(Effect.withSpan("Partitions.upkeep")),
        })
      }),
    )
}
