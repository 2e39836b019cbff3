/**
 * Databases that are put back to an earlier state while the broker goes on: a log that would give a second answer about
 * what it has published is held.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { logSubject } from "../../../schemas/bus/LogMessage.ts"
import { DecisionLog, type HeldLogReason, logStatus } from "../../../services/transparency/DecisionLog.ts"
import { signedCheckpoint } from "../../../services/transparency/LogCheckpoint.ts"
import { releaseLog } from "../../../services/transparency/ReleaseLog.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { manage } from "../../support/Broker.ts"
import { TestBus } from "../../support/TestBus.ts"
import {
  decide,
  decisionLog,
  entries,
  head,
  origin,
  published,
  served,
  settled,
  waiting,
} from "./DecisionLogFixture.ts"

const tables = ["log_pending", "log_entries", "log_tiles", "log_head"]

/** Keeps the log's rows, and gives what puts them back: as the restore of a backup, or as if nothing had happened. */
const backup = Effect.flatMap(Database, ({ owner }) =>
  owner.withTransaction(Effect.gen(function* () {
    yield* owner`create schema if not exists kept`
    for (const table of tables) {
      yield* owner`drop table if exists kept.${owner(table)}`
      yield* owner`create table kept.${owner(table)} as table ${owner(table)}`
    }
    return (how: "noticed" | "unnoticed") =>
      owner.withTransaction(Effect.gen(function* () {
        for (const table of tables) {
          yield* owner`delete from ${owner(table)}`
          yield* owner`insert into ${owner(table)} select * from kept.${owner(table)}`
        }
        if (how === "noticed") yield* owner`update installation set epoch = epoch + 1`
      }))
  })))

const isHeld = (reason: HeldLogReason) =>
  Effect.gen(function* () {
    const { advance } = yield* DecisionLog
    const before = yield* head
    const messages = (yield* published).length
    yield* settled
    yield* decide(2)
    yield* settled
    yield* advance
    const after = yield* head
    assert.strictEqual(after.held_reason, reason)
    assert.strictEqual(after.checkpoint, before.checkpoint, "no new checkpoint is served")
    assert.strictEqual((yield* published).length, messages, "none is published")
    assert.isAbove(yield* waiting, 1, "leaves wait")
    assert.strictEqual((yield* logStatus)!.held, reason)
    const { sql } = yield* Database
    const [record] = yield* sql`
      select action, outcome, code from audit_records where action = 'log.held' order by id desc limit 1`
    assert.deepStrictEqual(record, { action: "log.held", outcome: "failed", code: reason })
  })

const grown = Effect.fnUntraced(function* (count: number) {
  yield* decide(count)
  yield* settled
})

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })("A restored log", (it) => {
  it.effect("goes on where nothing was published since the backup", () =>
    Effect.gen(function* () {
      yield* grown(5)
      const restore = yield* backup
      yield* restore("noticed")
      yield* grown(3)
      assert.isNull((yield* head).held_reason)
      assert.strictEqual((yield* served).size, 8)
    }))

  it.effect("is held where the published log is larger", () =>
    Effect.gen(function* () {
      const restore = yield* backup
      yield* grown(300)
      yield* restore("noticed")
      yield* isHeld("behind")
      assert.lengthOf(yield* entries, 8, "nothing got an index that another leaf has")
      // The second look at a held log records nothing.
      const { sql } = yield* Database
      yield* settled
      assert.lengthOf(yield* sql`select from audit_records where action = 'log.held'`, 1)
    }))
})

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })("A restored log that nobody noticed", (it) => {
  it.effect("is held once it would publish other entries under the same indexes", () =>
    Effect.gen(function* () {
      yield* grown(5)
      const restore = yield* backup
      yield* grown(3)
      const { sql } = yield* Database
      const lost = yield* sql`select from log_entries`
      yield* restore("unnoticed")
      // The leaves of the lost time are lost as well.
      yield* sql`delete from log_pending`
      yield* decide(lost.length)
      yield* settled
      yield* isHeld("different")
    }))
})

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })("A restored log behind a replay", (it) => {
  it.effect("is held although the broker's newest message is an old checkpoint of this log, sent once more", () =>
    Effect.gen(function* () {
      yield* grown(5)
      const old = (yield* published).at(-1)!
      const restore = yield* backup
      yield* grown(3)
      const bus = yield* Bus
      yield* bus.publish(logSubject, JSON.stringify(old))
      yield* restore("noticed")
      yield* isHeld("behind")
      // An operator's word does not end that.
      yield* (yield* releaseLog)("the newest message fits")
      yield* isHeld("behind")
    }))
})

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })(
  "A replay behind another key's message",
  (it) => {
    it.effect("holds the log: a key that the restored database has lost may have signed that message", () =>
      Effect.gen(function* () {
        yield* grown(5)
        const old = (yield* published).at(-1)!
        const restore = yield* backup
        const another = signedCheckpoint(
          { origin, size: 9, root: Buffer.alloc(32, 1) },
          generateKeyPairSync("ed25519").privateKey,
        )
        const bus = yield* Bus
        const root = Buffer.alloc(32, 1).toString("base64")
        const message = { ...old, size: 9, root, checkpoint: another, first: 9, entries: [] }
        yield* bus.publish(logSubject, JSON.stringify(message))
        yield* bus.publish(logSubject, JSON.stringify(old))
        yield* restore("noticed")
        yield* isHeld("unreadable")
      }))
  },
)

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })("A replay to a log that lost nothing", (it) => {
  it.effect("holds nothing: the log goes on behind it", () =>
    Effect.gen(function* () {
      yield* grown(5)
      const old = (yield* published).at(-1)!
      yield* grown(3)
      yield* (yield* Bus).publish(logSubject, JSON.stringify(old))
      yield* grown(1)
      assert.isNull((yield* head).held_reason)
      assert.deepStrictEqual((yield* published).slice(-2).map(({ size }) => size), [5, 9])
      assert.strictEqual((yield* served).size, 9)
    }))
})

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })("A log under another name", (it) => {
  it.effect("is held", () =>
    Effect.gen(function* () {
      yield* grown(5)
      const { owner } = yield* Database
      yield* owner`update log_head set origin = 'other.example.org/log', confirmed_epoch = null`
      yield* isHeld("unreadable")
    }))
})

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })("A restored log whose broker is new", (it) => {
  const emptied = Effect.flatMap(TestBus, ({ url }) => manage(url, ({ streams }) => streams.purge("DECISION_LOG")))

  it.effect("is held until an operator says that nothing else was published", () =>
    Effect.gen(function* () {
      yield* grown(5)
      const restore = yield* backup
      yield* grown(3)
      yield* emptied
      yield* restore("noticed")
      yield* isHeld("gone")
      const { sql } = yield* Database
      const release = yield* releaseLog
      assert.strictEqual(yield* release("nobody had followed the log"), "gone")
      assert.isNull(yield* release("once more"))
      yield* settled
      assert.isNull((yield* head).held_reason)
      assert.strictEqual(yield* waiting, 0)
      assert.strictEqual((yield* published).at(-1)!.size, (yield* served).size)
      const [record] = yield* sql`select details from audit_records where action = 'log.released'`
      assert.deepStrictEqual(record, { details: { reason: "nobody had followed the log", held_reason: "gone" } })
    }))

  it.effect("a release does not end what is wrong: a larger log is compared and held again", () =>
    Effect.gen(function* () {
      const restore = yield* backup
      yield* grown(4)
      yield* restore("noticed")
      yield* isHeld("behind")
      yield* (yield* releaseLog)("a word that is not enough")
      yield* isHeld("behind")
    }))
})

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })("A log that two processes publish", (it) => {
  it.effect("is not held because one of them has looked at an older head", () =>
    Effect.gen(function* () {
      yield* grown(3)
      const { owner } = yield* Database
      yield* owner`update installation set epoch = epoch + 1`
      yield* decide(4)
      const bus = yield* Bus
      const { advance: other } = yield* DecisionLog
      const context = yield* Effect.context<Database>()
      // The other process confirms the epoch, integrates and publishes before the broker answers this one.
      const late = Layer.succeed(Bus, {
        ...bus,
        newest: (stream, subject) =>
          Effect.repeat(other, { while: (more) => more }).pipe(
            Effect.provideContext(context),
            Effect.orDie,
            Effect.andThen(bus.newest(stream, subject)),
          ),
      })
      yield* Effect.flatMap(DecisionLog, ({ advance }) => advance).pipe(
        Effect.provide(Layer.fresh(DecisionLog.layer(origin)).pipe(Layer.provide(late))),
      )
      yield* grown(1)
      assert.isNull((yield* head).held_reason)
      assert.strictEqual((yield* served).size, 8)
    }))

  it.effect("is held by a message that its key has not signed", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const newest = (yield* published).at(-1)!
      yield* bus.publish(logSubject, JSON.stringify({ ...newest, size: newest.size + 1_000, entries: [] }))
      yield* grown(1)
      yield* isHeld("unreadable")
    }))
})
