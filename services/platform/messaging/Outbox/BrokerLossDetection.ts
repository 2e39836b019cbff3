/**
 * Publishes messages again that the broker lost. For each stream one row remembers its time of creation, its last
 * sequence and its server. Where the stream was created anew, or its sequence went back, everything that is kept is
 * published again. Where only the server is another (a restart: it does not sync each message), messages of the last 15
 * minutes are. An orderly stop of the embedded server, which loses nothing, does not make it another (BrokerRun.ts).
 *
 * The marks are read from the broker without any lock; a mark counts only if no other process wrote the row meanwhile,
 * since an older reading would look like a sequence that went back. Messages that were sent before the loss was seen
 * may still be settled later, so the sweep stays open for a while. Until its first pass is done, ordered rows of the
 * stream wait.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Result } from "effect"
import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import { streamNames } from "../../../../schemas/bus/BusStreams.ts"
import type { Bus } from "../Bus.ts"
import { isAnother } from "../../database/Installation.ts"
import { leaseMillis } from "./UnorderedRelay.ts"

const unsyncedMillis = 15 * 60_000
const sweepBatch = 1_000

interface Remembered {
  readonly stream: string
  readonly created: string
  readonly last_seq: bigint
  readonly server: string
}

const compare = Effect.fnUntraced(
  function* (sql: PgClient.PgClient, bus: Bus["Service"], stream: StreamName, known: Remembered | undefined) {
    const marked = yield* Effect.result(bus.mark(stream))
    if (Result.isFailure(marked)) return false
    const { created, lastSeq, server } = marked.success
    if (known === undefined) {
      yield* sql`insert into relay_streams (stream, created, last_seq, server)
        values (${stream}, ${created}, ${lastSeq}, ${server}) on conflict do nothing`
      return true
    }
    const lost = created !== known.created || BigInt(lastSeq) < known.last_seq
    const restarted = server !== known.server
    if (!lost && !restarted && BigInt(lastSeq) === known.last_seq) return true
    const now = yield* Clock.currentTimeMillis
    const back = created === known.created && BigInt(lastSeq) < known.last_seq
      ? sql`, went_back_to = least(went_back_to, ${lastSeq})`
      : sql``
    const since = lost ? sql`'-infinity'::timestamptz` : sql`${new Date(now - unsyncedMillis)}::timestamptz`
    const again = lost || restarted
      ? sql`, swept = false, again_until = ${new Date(now)}, again_since = least(again_since, ${since})`
      : sql``
    yield* sql`
      update relay_streams set created = ${created}, last_seq = ${lastSeq}, server = ${server} ${again} ${back}
      where stream = ${stream} and created = ${known.created} and last_seq = ${known.last_seq} and server = ${known.server}
        -- A restored or failed-over database keeps its marks until its new epoch has begun, which reads them.
        and not exists (select from installation where ${isAnother(sql)})`
    return true
  },
)

/** Compares every stream with its remembered mark; returns whether all streams could be read. */
export const compareStreams = Effect.fnUntraced(function* (sql: PgClient.PgClient, bus: Bus["Service"]) {
  const rows = yield* sql<Remembered>`select stream, created, last_seq, server from relay_streams`
  const compared = yield* Effect.forEach(
    streamNames,
    (name) => compare(sql, bus, name, rows.find((row) => row.stream === name)),
    { concurrency: streamNames.length },
  )
  return compared.every((done) => done)
})

/** Makes rows of one stream that lost messages due again; returns how many. One process at a time sweeps. */
const sweepOne = Effect.fnUntraced(function* (sql: PgClient.PgClient, stream: string) {
  const now = yield* Clock.currentTimeMillis
  const rows = yield* sql`
    with one as materialized (
      select stream, again_since, again_until from relay_streams
      where stream = ${stream} and again_until is not null for update skip locked
    ), kept as materialized (
      select o.id from one cross join lateral (
        select id, published_at, seq from outbox o
        where o.stream = one.stream and o.published_at between one.again_since and one.again_until
        order by o.published_at limit ${sweepBatch}
      ) o
    ), due as (
      update outbox o set published_at = null, msg_id = null, attempts = 0, not_before = ${new Date(now)}
      from unnest(array(select id from kept)) again(id) where o.id = again.id
      returning 1
    ), done as (
      update relay_streams r set
        swept = true,
        again_since = case when r.again_until < ${new Date(now - 2 * leaseMillis)} then null else r.again_since end,
        again_until = case when r.again_until < ${new Date(now - 2 * leaseMillis)} then null else r.again_until end
      from one where r.stream = one.stream and not exists (select from kept)
    )
    select 1 from due`
  return rows.length
})

/** Sweeps every stream that has messages to publish again; returns how many rows became due. */
export const sweepStreams = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const open = yield* sql<{ stream: string }>`select stream from relay_streams where again_until is not null`
  let total = 0
  for (const { stream } of open) {
    let found = 0
    // The pass that finds nothing ends the first round (`swept`).
    for (let rows = sweepBatch; rows > 0; found += rows) rows = yield* sweepOne(sql, stream)
    if (found > 0) yield* Effect.logInfo(`${stream}: the broker may have lost ${found} messages: publishing them again`)
    total += found
  }
  return total
})
