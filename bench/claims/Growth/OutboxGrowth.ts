/** The outbox with ever more published rows that are kept, and waiting timers. */
import { Effect, Layer } from "effect"
import { requestTimers } from "../../../services/requests/RequestRows.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Outbox } from "../../../services/platform/messaging/Outbox.ts"
import { Timers } from "../../../services/platform/database/Timers.ts"
import { transferTimers } from "../../../services/transfers/Transfers.ts"
import { type Area, idOf, platform } from "./Area.ts"

const fill = Effect.fnUntraced(function* (rows: number) {
  const { owner } = yield* Database
  // An hour from now: filling takes longer than the second half is kept for.
  const now = Date.now() + 3_600_000
  // Half of an ordered stream, kept for months, half of one that is kept for minutes.
  yield* owner`
    insert into outbox (id, stream, subject, payload, msg_id, aggregate_id, seq, created_at, published_at, not_before)
    select ${owner.literal(idOf("ms", "n"))}, case n % 2 when 0 then 'LIFECYCLE' else 'NOTIFICATIONS' end,
      'bench.v1.kept', '{}', n::text, case n % 2 when 0 then 'project-' || n % 1000 end,
      case n % 2 when 0 then n end, to_timestamp(ms / 1000.0), to_timestamp(ms / 1000.0), to_timestamp(ms / 1000.0)
    from (
      select n, case n % 2 when 0 then ${now}::bigint - n % 6000 * 1000000 else ${now}::bigint - n % 600 * 1000 end as ms
      from generate_series(1, ${rows}::bigint) n
    ) x`
  // Timers of requests are due before any timer of a transfer.
  yield* owner`
    insert into timers (aggregate_id, kind, due_at, not_before)
    select 'request-' || n, ${requestTimers[0]!}, t, t
    from (select n, to_timestamp(${now / 1_000 + 3_600}::float8 + n) as t from generate_series(1, ${rows}::bigint) n) x`
  yield* owner`vacuum analyze outbox, timers`
})

const statements: Area["statements"] = (fixture, run) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.provideMerge(Timers.layer, platform(fixture, run)))
    return yield* Effect.gen(function* () {
      const { add, relay } = yield* Outbox
      const timers = yield* Timers
      const { sql } = yield* Database
      const bus = yield* Bus
      yield* Effect.eventually(bus.heal)
      const epoch = yield* bus.epoch
      yield* relay.recall
      yield* relay.leasePartitions
      const unordered = () => ({ stream: "MAIL_OUT" as const, subject: "mailer.v1.send", payload: "{}" })
      let seq = 0
      const ordered = () => ({
        stream: "TRANSFERS" as const,
        subject: "transfers.v1.bench.pending",
        payload: "{}",
        order: { aggregateId: "bench", seq: ++seq },
      })
      return [
        { name: "outbox: add 10", run: () => add(...Array.from({ length: 10 }, unordered)), descents: 20 },
        {
          name: "relay: claim, publish, settle 10",
          prepare: add(...Array.from({ length: 10 }, unordered)),
          run: () => relay.publishDue(epoch),
          descents: 40,
        },
        {
          name: "relay: publish and settle 10 in order",
          prepare: Effect.suspend(() => add(...Array.from({ length: 10 }, ordered))),
          run: () => relay.publishOrdered(epoch),
          descents: 40,
        },
        { name: "relay: nothing to do", run: () => relay.publishDue(epoch), descents: 1 },
        { name: "relay: nothing to do in order", run: () => relay.publishOrdered(epoch), descents: 16 },
        { name: "relay: leases that ended", run: () => relay.free, descents: 1 },
        { name: "relay: does the broker remember", run: () => relay.recall, descents: 1 },
        { name: "outbox: purge, nothing over", run: () => relay.purge, descents: 12 },
        {
          name: "outbox: purge 100",
          prepare: sql`
            insert into outbox (id, stream, subject, payload, created_at, not_before, published_at)
            select gen_random_uuid(), 'MAIL_OUT', 'mailer.v1.send', '{}', to_timestamp(0), to_timestamp(0), to_timestamp(0)
            from generate_series(1, 100)`,
          run: () => relay.purge,
          // Each row is found by its stream, locked, found by its key and deleted; in a small table all rows are read
          // at once.
          descents: 500,
        },
        { name: "timers: look", run: () => timers.untilNext(transferTimers, 1_000), descents: 1 },
        { name: "timers: claim", run: () => timers.claim(transferTimers, 400), descents: 1 },
        {
          name: "timers: set one, look, claim it",
          run: (n: number) =>
            timers.set(`bench-${n}`, [{ kind: transferTimers[0]!, dueAt: 0 }]).pipe(
              Effect.andThen(timers.untilNext(transferTimers, 1_000)),
              Effect.andThen(timers.claim(transferTimers, 400)),
              Effect.andThen(timers.set(`bench-${n}`, [])),
            ),
          descents: 12,
        },
      ]
    }).pipe(Effect.provide(context))
  })

export const outbox: Area = { name: "outbox", fill, statements }
