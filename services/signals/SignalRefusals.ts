/**
 * Counts tokens of transmitters that were refused, by reason: as a metric, and by the hour in the database, where the
 * doctor reads them. The rows are written behind, so that a transmitter whose tokens are all refused costs its requests
 * nothing more; a process that is killed loses the counts that it has not written. Each process writes its own totals, which
 * only grow, so that a write is repeated without counting twice. There are six reasons, so the rows grow with time and
 * processes alone. A token that its transmitter sends again counts again.
 */
import { Clock, Effect, Metric } from "effect"
import { Database } from "../platform/database/Database.ts"
import { prune } from "../platform/database/Prune.ts"
import { writeBehind } from "../platform/database/WriteBehind.ts"
import { shownWith } from "../platform/observability/ShownMetrics.ts"
import type { SetErrorCode } from "./SignalDecision.ts"

export const setErrorCodes = [
  "invalid_request",
  "invalid_key",
  "invalid_issuer",
  "invalid_audience",
  "authentication_failed",
  "access_denied",
] as const satisfies ReadonlyArray<SetErrorCode>

const refused = Metric.counter("bailiwick_signals_refused_total", {
  description: "Security events of identity providers that were refused, by reason",
})

const hourMillis = 3_600_000
const dayMillis = 24 * hourMillis
const keptMillis = 14 * dayMillis
const most = 10_000

/** Counts a refused token in the metric alone: its transmitter is unknown. */
export const countRefused = (err: SetErrorCode) => Metric.update(Metric.withAttributes(refused, { err }), 1)

interface Counted {
  readonly transmitter: string
  readonly hour: string
  readonly err: SetErrorCode
  readonly tokens: number
}

/** Counts refused tokens of transmitters until the scope ends. */
export const signalRefusals = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* shownWith(refused, "err", setErrorCodes)
  const process = crypto.randomUUID()
  // By hour, transmitter and reason; the hour before is kept, since a clock may go back.
  const totals = new Map<number, Map<string, number>>()
  const { flush, note } = yield* writeBehind({
    name: "refused signals",
    most,
    write: (noted: ReadonlyMap<string, Counted>) =>
      sql`
        insert into signal_refusal_counts as t (transmitter, hour, err, process, tokens)
        select transmitter, hour, err, ${process}::uuid, tokens
        from jsonb_to_recordset(${sql.json([...noted.values()])})
          r(transmitter text, hour timestamptz, err text, tokens bigint)
        order by transmitter, hour, err
        on conflict (transmitter, hour, err, process) do update set tokens = greatest(t.tokens, excluded.tokens)`,
  })
  const refuse = Effect.fnUntraced(function* (transmitter: string, err: SetErrorCode) {
    yield* countRefused(err)
    const now = yield* Clock.currentTimeMillis
    const start = now - now % hourMillis
    for (const old of totals.keys()) if (old < start - hourMillis) totals.delete(old)
    const ofHour = totals.get(start) ?? new Map<string, number>()
    totals.set(start, ofHour)
    const hour = new Date(start).toISOString()
    const key = [transmitter, hour, err].join(" ")
    const tokens = (ofHour.get(key) ?? 0) + 1
    ofHour.set(key, tokens)
    note(key, { transmitter, hour, err, tokens })
  })
  return { flush, refuse }
})

/** Tokens that a transmitter was refused within a day, by reason, the most frequent first. */
export interface RecentRefusals {
  readonly transmitter: string
  readonly reasons: ReadonlyArray<{ readonly err: string; readonly tokens: number }>
}

/** Refusals of the last day, of transmitters that had any. */
export const recentRefusals = Effect.gen(function* () {
  const { sql } = yield* Database
  const since = new Date((yield* Clock.currentTimeMillis) - dayMillis)
  return yield* sql<RecentRefusals>`
    select transmitter, jsonb_agg(jsonb_build_object('err', err, 'tokens', tokens) order by tokens desc, err) as reasons
    from (
      select transmitter, err, sum(tokens) as tokens from (
        select transmitter, err, tokens from signal_refusals where hour >= ${since}
        union all select transmitter, err, tokens from signal_refusal_counts where hour >= ${since}
      ) c group by transmitter, err
    ) r group by transmitter order by transmitter`
})

/** Deletes counts that are older than two weeks; returns how many went. */
export const pruneRefusals = Effect.gen(function* () {
  const { sql } = yield* Database
  const where = sql`hour <= ${new Date((yield* Clock.currentTimeMillis) - keptMillis)}`
  let pruned = 0
  for (const table of ["signal_refusals", "signal_refusal_counts"]) {
    pruned += yield* prune(sql, { table, where, order: "hour", batch: 10_000 })
  }
  return pruned
})
