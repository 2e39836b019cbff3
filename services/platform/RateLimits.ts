/**
 * Exact limits: at most `limit` takes in any window, counted over all processes. One row a key holds the moments of the
 * takes that were allowed; its lock orders concurrent takes. For the few limits that must be exact: each take is a write.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "./Database.ts"

export interface RateLimit {
  /** Names the limit and whom it binds: `transfers.initiate:<account id>`. */
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

export class RateLimits extends Context.Service<RateLimits, {
  /** Takes one, where the limit allows it. Not inside a transaction: it commits by itself, whatever the caller does. */
  readonly take: (limit: RateLimit) => Effect.Effect<RateDecision, SqlError.SqlError>
  /** Deletes rows whose window is over, at most 1,000; gives how many. */
  readonly prune: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/platform/RateLimits") {
  static readonly layer = Layer.effect(
    RateLimits,
    Effect.gen(function* () {
      const { sql } = yield* Database

      const take = Effect.fn("RateLimits.take")(function* ({ key, limit, windowMillis }: RateLimit) {
        const millis = yield* Clock.currentTimeMillis
        const now = new Date(millis)
        const since = new Date(millis - windowMillis)
        const expires = new Date(millis + windowMillis)
        // A refused take updates nothing, so that its own arm finds the row as the statement's snapshot has it; where
        // the window filled up within this very statement, the snapshot is empty and the whole window is left.
        const [row] = yield* sql<{ allowed: boolean; live: number; oldest: Date | null }>`
          with taken as (
            insert into rate_limits as r (key, hits, expires_at)
            values (${key}, array[${now}::timestamptz], ${expires})
            on conflict (key) do update
            set hits = array(select h from unnest(r.hits) h where h > ${since}) || ${now}::timestamptz,
              expires_at = greatest(r.expires_at, ${expires})
            where (select count(*) from unnest(r.hits) h where h > ${since}) < ${limit}
            returning hits
          )
          select true as allowed, cardinality(hits) as live, null::timestamptz as oldest from taken
          union all
          select false, ${limit}::int,
            (select min(h) from rate_limits r, unnest(r.hits) h where r.key = ${key} and h > ${since})
          where not exists (select from taken)`
        const { allowed, live, oldest } = row!
        const free = (oldest?.getTime() ?? millis) + windowMillis - millis
        return {
          allowed,
          remaining: Math.max(0, limit - live),
          retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil(free / 1_000)),
        }
      })

      const prune = Effect.gen(function* () {
        const now = new Date(yield* Clock.currentTimeMillis)
        const rows = yield* sql`
          delete from rate_limits where key in (
            select key from rate_limits where expires_at < ${now} order by expires_at limit 1000 for update skip locked
          ) returning 1`
        return rows.length
      })

      return RateLimits.of({ take, prune })
    }),
  )
}
