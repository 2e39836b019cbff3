/**
 * Databases that are put back to an earlier state while the broker goes on: a log that would give a second answer about
 * what it has published is held.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { DecisionLog, type HeldLogReason, logStatus } from "../../../services/transparency/DecisionLog.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { decide, decisionLog, entries, head, published, served, settled, waiting } from "./DecisionLogFixture.ts"

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

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })("A log under another name", (it) => {
  it.effect("is held", () =>
    Effect.gen(function* () {
      yield* grown(5)
      const { owner } = yield* Database
      yield* owner`update log_head set origin = 'other.example.org/log', confirmed_epoch = null`
      yield* isHeld("unreadable")
    }))
})
