/**
 * Two kinds of limits, both counted over all processes.
 *
 * Exact (`take`): at most `limit` takes in any window. One row for each key holds the times of the allowed takes; its
 * lock orders concurrent takes. For the few limits that must be exact: each take is a write.
 *
 * Generous (`spend`): a bucket of `limit` tokens that fills up within a window. A process draws tokens ahead, at first
 * 1 % of the bucket and, while it goes on spending them, up to 10 %, so that few requests write. A steady client has
 * `limit` tokens in a window; a full bucket, and the tokens that processes drew ahead, come on top of that once.
 * Buckets are in an unlogged table: after a crash of the database they are full.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { BoundedMap } from "../BoundedMap.ts"
import { Database } from "../database/Database.ts"
import type { Fence } from "../database/UnitOfWork.ts"
import { prune } from "../database/Prune.ts"
import { counted } from "../MapSizes.ts"

export interface RateLimit {
  /** Names the limit and its subject: `transfers.initiate:<account id>`. */
  readonly key: string
  /** Takes allowed in a window, at least 1. */
  readonly limit: number
  readonly windowMillis: number
}

export interface RateDecision {
  readonly allowed: boolean
  /** Takes left in the window after this one. */
  readonly remaining: number
  /** 0 where allowed; else whole seconds, at least 1, after which a take may be allowed again. */
  readonly retryAfterSeconds: number
}

/** The state of an exact limit, as a load reads it (`windowOf`). */
export interface RateWindow {
  /** Takes in the window. */
  readonly live: number
  /** The time of the oldest take in the window, in milliseconds; null where there is none. */
  readonly oldest: number | null
}

/** SQL that selects an exact limit's `RateWindow` as JSON, for a load. */
export const windowOf = (sql: PgClient.PgClient, { key, windowMillis }: RateLimit, now: number) =>
  sql`(select json_build_object('live', count(h), 'oldest', floor(1000 * extract(epoch from min(h))))
    from rate_limits r, unnest(r.hits) h where r.key = ${key} and h > ${new Date(now - windowMillis)})`

/** Decides whether one more request fits into the limit, by a window that was read. */
export const decisionOf = (
  { limit, windowMillis }: RateLimit,
  { live, oldest }: RateWindow,
  now: number,
): RateDecision => ({
  allowed: live < limit,
  remaining: Math.max(0, limit - live - 1),
  retryAfterSeconds: live < limit ? 0 : secondsUntil(Math.min(oldest ?? now, now) + windowMillis, now),
})

/** A take as a fence of a fenced write: where the window is full, nothing is written. */
export const taking = (sql: PgClient.PgClient, { key, limit, windowMillis }: RateLimit, now: number): Fence => {
  const since = new Date(now - windowMillis)
  return {
    rows: 1,
    statement: (earlier) =>
      taken(sql, { key, limit, at: new Date(now), since, expires: new Date(now + windowMillis) }, earlier),
  }
}

const secondsUntil = (free: number, now: number) => Math.max(1, Math.ceil((free - now) / 1_000))

/** SQL of a take: where fewer than `limit` takes are newer than `since` it returns the row's hits, otherwise no row. */
const taken = (
  sql: PgClient.PgClient,
  { at, expires, key, limit, since }: {
    readonly key: string
    readonly limit: number
    readonly at: Date
    readonly since: Date
    readonly expires: Date
  },
  earlier: Statement.Fragment,
) =>
  sql`insert into rate_limits as r (key, hits, expires_at)
    select ${key}, array[${at}::timestamptz], ${expires}::timestamptz where ${earlier}
    on conflict (key) do update
    set hits = array(select h from unnest(r.hits) h where h > ${since}) || ${at}::timestamptz,
      expires_at = greatest(r.expires_at, ${expires}::timestamptz)
    where (select count(*) from unnest(r.hits) h where h > ${since}) < ${limit}
    returning hits`

/** The tokens of one key's bucket that this process drew ahead. */
interface Purse {
  readonly one: Semaphore.Semaphore
  held: number
  /** The size of the last draw. */
  asked: number
  /** An empty bucket is not asked again before this time, at which it has one token. */
  emptyUntil: number
  spentAt: number
}

/** Purses of a process: beyond that, the purse that was made or filled longest ago is dropped, with its tokens. */
const mostPurses = 10_000

/** Rows that one statement deletes. */
const batch = 1_000

export class RateLimits extends Context.Service<RateLimits, {
  /**
   * Takes once, where the limit allows it. Not inside a transaction: it commits by itself, whatever the caller does.
   */
  readonly take: (limit: RateLimit) => Effect.Effect<RateDecision, SqlError.SqlError>
  /**
   * Spends tokens of a generous limit, by default one and at most the whole bucket. Returns 0, or the whole seconds
   * after which there may be enough tokens again. Not inside a transaction.
   */
  readonly spend: (limit: RateLimit, tokens?: number) => Effect.Effect<number, SqlError.SqlError>
  /** Deletes rows whose window is over. */
  readonly prune: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/platform/security/RateLimits") {
  static readonly layer = Layer.effect(
    RateLimits,
    Effect.gen(function* () {
      const { sql } = yield* Database

      const take = Effect.fn("RateLimits.take")(function* ({ key, limit, windowMillis }: RateLimit) {
        const millis = yield* Clock.currentTimeMillis
        const now = new Date(millis)
        const since = new Date(millis - windowMillis)
        const expires = new Date(millis + windowMillis)
        // A refused take updates nothing, so the second part finds the row in the statement's snapshot. Where the
        // window filled up during this very statement, the snapshot shows no take, and the answer is to wait a whole
        // window.
        const [row] = yield* sql<{ allowed: boolean; live: number; oldest: Date | null }>`
          with taken as (${taken(sql, { key, limit, at: now, since, expires }, sql`true`)})
          select true as allowed, cardinality(hits) as live, null::timestamptz as oldest from taken
          union all
          select false, ${limit}::int,
            (select min(h) from rate_limits r, unnest(r.hits) h where r.key = ${key} and h > ${since})
          where not exists (select from taken)`
        const { allowed, live, oldest } = row!
        // A take that waited for the row's lock may find takes that are newer than its own time.
        const free = Math.min(oldest?.getTime() ?? millis, millis) + windowMillis
        return {
          allowed,
          remaining: Math.max(0, limit - live),
          retryAfterSeconds: allowed ? 0 : secondsUntil(free, millis),
        }
      })

      /** Takes at most `wanted` whole tokens out of the bucket. A bucket without a row is full. */
      const draw = Effect.fnUntraced(function* (limit: RateLimit, wanted: number, millis: number) {
        const { key, windowMillis } = limit
        const now = new Date(millis)
        const full = new Date(millis + windowMillis)
        const [row] = yield* sql<{ drawn: number; level: number }>`
          insert into rate_buckets as b (key, level, drawn, at, full_at)
          values (${key}, ${limit.limit}::float8 - ${wanted}::int, ${wanted}::int, ${now}, ${full})
          on conflict (key) do update set (level, drawn, at, full_at) = (
            select filled - least(floor(filled), ${wanted}::int), least(floor(filled), ${wanted}::int),
              greatest(b.at, ${now}), greatest(b.full_at, ${full})
            from (
              select least(${limit.limit}::float8, b.level + ${limit.limit}::float8 / ${windowMillis}::float8
                * greatest(0, 1000 * extract(epoch from ${now}::timestamptz - b.at)::float8)) as filled
            ) bucket
          )
          returning drawn, level`
        return row!
      })

      const purses = new BoundedMap<string, Purse>(mostPurses)
      yield* counted("rate limits", () => purses.size)

      const purseOf = ({ key }: RateLimit, millis: number): Purse => {
        const known = purses.get(key)
        if (known !== undefined) return known
        const purse = { one: Semaphore.makeUnsafe(1), held: 0, asked: 0, emptyUntil: 0, spentAt: millis }
        purses.set(key, purse)
        return purse
      }

      const refill = Effect.fnUntraced(function* (limit: RateLimit, purse: Purse, tokens: number) {
        const millis = yield* Clock.currentTimeMillis
        const each = limit.windowMillis / limit.limit
        // A caller that waited for the same draw spends the tokens that it brought.
        if (purse.held < tokens && millis >= purse.emptyUntil) {
          const idle = millis - purse.spentAt > limit.windowMillis
          purse.asked = Math.max(
            1,
            Math.floor(idle || purse.asked === 0 ? limit.limit / 100 : Math.min(purse.asked * 2, limit.limit / 10)),
          )
          const { drawn, level } = yield* draw(limit, Math.max(purse.asked, tokens - purse.held), millis)
          purse.held += drawn
          purses.set(limit.key, purse)
          if (purse.held < tokens) purse.emptyUntil = millis + Math.ceil((1 - level) * each)
        }
        if (purse.held < tokens) {
          const wait = Math.max(0, purse.emptyUntil - millis) + (tokens - purse.held - 1) * each
          return Math.max(1, Math.ceil(wait / 1_000))
        }
        purse.held -= tokens
        return 0
      })

      const spend = Effect.fnUntraced(function* (limit: RateLimit, tokens = 1) {
        const millis = yield* Clock.currentTimeMillis
        const purse = purseOf(limit, millis)
        const wanted = Math.min(tokens, limit.limit)
        const seconds = purse.held >= wanted
          ? (purse.held -= wanted, 0)
          : yield* purse.one.withPermits(1)(refill(limit, purse, wanted))
        purse.spentAt = millis
        return seconds
      })

      const pruneOver = Effect.gen(function* () {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* prune(sql, { table: "rate_limits", where: sql`expires_at < ${now}`, order: "expires_at", batch })
        yield* prune(sql, { table: "rate_buckets", where: sql`full_at < ${now}`, order: "full_at", batch })
      })

      return RateLimits.of({ take, spend, prune: pruneOver })
    }),
  )
}
