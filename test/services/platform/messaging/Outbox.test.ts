import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Outbox } from "../../../../services/platform/messaging/Outbox.ts"
import { follow, mail, platform, ready, takeN, transfer, unpublished, withShared } from "./OutboxFixture.ts"

describe("Outbox", () => {
  it.live("a partition's owner that froze past its lease publishes nothing", () =>
    withShared((url) =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const outbox = yield* Outbox
        const messages = yield* follow("TRANSFERS")
        const other = yield* Layer.build(Layer.fresh(platform(url)))
        const { relay: late } = outbox
        const { relay: next } = Context.get(other, Outbox)
        yield* late.leasePartitions
        yield* outbox.add(transfer("a", 1), { ...transfer("a", 2), subject: "transfers.v1..x" })
        // The lease ends without its owner's knowledge, and another process takes over.
        yield* sql`update outbox_lanes set lease_until = ${new Date(0)}`
        yield* next.leasePartitions
        yield* late.publishOrdered(yield* ready)
        assert.strictEqual(yield* unpublished, 2)
        assert.deepStrictEqual(yield* sql`select from outbox where attempts > 0`, [])
        yield* next.publishOrdered(yield* Effect.provide(ready, other))
        assert.strictEqual(yield* unpublished, 1)
        assert.deepStrictEqual(yield* takeN(messages, 1), ["a 1"])
      })
    ))

  it.live("a dead relay's rows are freed, old rows purged, and only waiting rows scanned", () =>
    withShared(() =>
      Effect.gen(function* () {
        const { sql, owner } = yield* Database
        const { add, relay } = yield* Outbox
        const now = yield* Clock.currentTimeMillis
        yield* add(mail(1), mail(2), transfer("a", 1), transfer("a", 2))
        yield* sql`update outbox set claim = nextval('claims'), lease_until = ${new Date(now - 1)} where payload = '1'`
        yield* relay.free
        assert.strictEqual((yield* sql`select from outbox where claim is null`).length, 4)
        const epoch = yield* ready
        yield* relay.publishDue(epoch)
        yield* relay.leasePartitions
        yield* relay.publishOrdered(epoch)
        assert.strictEqual(yield* unpublished, 0)
        yield* sql`update outbox set published_at = ${new Date(now - 16 * 60_000)}`
        assert.strictEqual(yield* relay.purge, 2)
        yield* sql`update outbox set published_at = ${new Date(now - 91 * 86_400_000)} where seq = 1`
        assert.strictEqual(yield* relay.purge, 1)

        yield* sql`
          insert into outbox (id, stream, subject, payload, created_at, not_before, published_at)
          select gen_random_uuid(), 'MAIL_OUT', 'mailer.v1.send', '{}', ${new Date(now)}, ${new Date(now)}, ${new Date(
          now,
        )}
          from generate_series(1, 20000)`
        yield* owner`analyze outbox`
        const plans = yield* Effect.forEach([
          sql`select id from outbox t where t.claim is null and t.not_before <= ${new Date(now)}
            and t.published_at is null and t.aggregate_id is null order by t.not_before, t.id limit 500 for update`,
          sql`select id from outbox where claim is not null and lease_until < ${new Date(now)} limit 100`,
          sql`select id from outbox where published_at is null and aggregate_id is not null and lane = 3::smallint
            order by aggregate_id, seq, id limit 1`,
          sql`select id from outbox where stream = 'MAIL_OUT' and published_at < ${new Date(now)}
            order by published_at limit 500`,
        ], (query) => sql<{ "QUERY PLAN": string }>`explain ${query}`)
        const indexes = plans.map((plan) => /outbox_\w+/.exec(plan.map((row) => row["QUERY PLAN"]).join())?.[0])
        assert.deepStrictEqual(indexes, ["outbox_due", "outbox_leases", "outbox_lane", "outbox_published"])
      })
    ))

  it.live("a message that its stream has no room for is retried ever less often, until there is room", () =>
    withShared((url) =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const { add, relay } = yield* Outbox
        const epoch = yield* ready
        const { host, password, username } = new URL(Redacted.value(url))
        const broker = yield* Effect.acquireRelease(
          Effect.promise(() => connect({ servers: host, user: username, pass: password })),
          (connection) => Effect.promise(() => connection.close()),
        )
        const { streams } = yield* Effect.promise(() => jetstreamManager(broker))
        const hold = (max_msgs: number) => Effect.promise(() => streams.update("MAIL_OUT", { max_msgs }))
        yield* hold(1)
        yield* add(mail(1))
        yield* relay.publishDue(epoch)
        yield* add(mail(2))
        const now = yield* Clock.currentTimeMillis
        const waits = Effect.map(
          sql<
            { at: Date; error: string }
          >`select not_before as at, last_error as error from outbox where payload = '2'`,
          ([row]) => ({ ...row!, millis: row!.at.getTime() - now }),
        )
        yield* relay.publishDue(epoch)
        const first = yield* waits
        assert.match(first.error, /^refused/)
        yield* sql`update outbox set attempts = 20, not_before = ${new Date(now)} where payload = '2'`
        yield* relay.publishDue(epoch)
        assert.isAtLeast((yield* waits).millis, 30_000)
        yield* hold(-1)
        yield* sql`update outbox set not_before = ${new Date(now)} where payload = '2'`
        yield* relay.publishDue(epoch)
        assert.strictEqual(yield* unpublished, 0)
      })
    ))
})
