import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import { randomUUID } from "node:crypto"
import type { DependencyUnavailable } from "../../../../schemas/problems/HttpProblems.ts"
import { Failpoints, type FaultPoint } from "../../../../services/platform/Failpoints.ts"
import { Audit } from "../../../../services/platform/observability/Audit.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import {
  apart,
  fenced,
  NeedsTransaction,
  transactionOnly,
} from "../../../../services/platform/database/FencedCommand.ts"
import { holds, writeFenced } from "../../../../services/platform/database/FencedWrite.ts"
import { Conflict, last, run, runOnce } from "../../../../services/platform/database/UnitOfWork.ts"
import { Mails } from "../../../../services/platform/mail/Mails.ts"
import { Timers } from "../../../../services/platform/database/Timers.ts"
import { counting } from "../../../support/Statements.ts"
import { ground } from "../../../support/TestAccounts.ts"

/** Writes two audit records about `subject`, a mail and two timers, of which the second replaces the first. */
const say = Effect.fnUntraced(function* (subject: string) {
  const entry = { action: "test.said", actor: "system", subject, outcome: "done" } as const
  const first = yield* (yield* Audit).append(entry)
  yield* (yield* Mails).add({ kind: "test", subjectId: subject, recipient: "a@example.com", args: {} })
  const timers = yield* Timers
  yield* timers.set(subject, [{ kind: "test.early", dueAt: 1_000 }])
  const second = yield* (yield* Audit).append(entry)
  yield* timers.set(subject, [{ kind: "test.late", dueAt: 2_000 }])
  return [...first, ...second]
})

const rowsOf = Effect.fnUntraced(function* (subject: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<
    { said: ReadonlyArray<string>; mails: number; messages: number; timers: ReadonlyArray<string> }
  >`
    select array(select id::text from audit_records where subject = ${subject} order by id) as said,
      (select count(*)::int from mails where subject_id = ${subject}) as mails,
      (select count(*)::int from outbox o join mails m on o.payload::json ->> 'mail_id' = m.id::text
        where m.subject_id = ${subject} and o.stream = 'MAIL_OUT') as messages,
      array(select kind from timers where aggregate_id = ${subject}) as timers`
  return { ...row! }
})

const none = { said: [], mails: 0, messages: 0, timers: [] }

/** An audit record that the table refuses. */
const unheardOf = (subject: string) =>
  Effect.flatMap(
    Audit,
    ({ append }) => append({ action: "test.said", actor: null, subject, outcome: "unheard of" as "done" }),
  )

/** Leaves items for the end, where `written` gets them with their key. */
const leave = (written: Array<string>, key: string, ...items: ReadonlyArray<string>) =>
  last(key, items, (all) => Effect.sync(() => void written.push(`${key}: ${all.join(" ")}`)))

const lostConnection = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("lost") }) })

const withTimers = Layer.provideMerge(Timers.layer, ground)

layer(withTimers)("rows gathered in a unit of work", (it) => {
  it.effect("are written at its end by one statement, with the same result as at once", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [together, apart] = [randomUUID(), randomUUID()]
      const [statements, ids] = yield* counting(runOnce(
        Effect.tap(say(together), () =>
          Effect.flatMap(rowsOf(together), (rows) => Effect.sync(() => assert.deepStrictEqual(rows, none)))),
      ))
      assert.deepStrictEqual(yield* rowsOf(together), { said: ids, mails: 1, messages: 1, timers: ["test.late"] })
      const [each, others] = yield* counting(sql.withTransaction(say(apart)))
      assert.deepStrictEqual(yield* rowsOf(apart), { said: others, mails: 1, messages: 1, timers: ["test.late"] })
      // The query in between counts as well.
      assert.strictEqual(each - statements, 4)
    }))

  it.effect("are dropped with the transaction, whether it fails before its end or at it", () =>
    Effect.gen(function* () {
      const before = randomUUID()
      const failed = yield* Effect.exit(runOnce(Effect.andThen(say(before), Effect.fail("no"))))
      assert.strictEqual(failed._tag, "Failure")
      assert.deepStrictEqual(yield* rowsOf(before), none)
      const at = randomUUID()
      const refused = yield* Effect.exit(runOnce(Effect.andThen(say(at), unheardOf(at))))
      assert.strictEqual(refused._tag, "Failure")
      assert.deepStrictEqual(yield* rowsOf(at), none)
    }))

  it.effect("of an inner unit are written at the inner one's end, or dropped with it alone", () =>
    Effect.gen(function* () {
      const [outer, inner, lost, bad] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
      yield* runOnce(Effect.gen(function* () {
        yield* say(outer)
        yield* runOnce(say(inner))
        assert.deepStrictEqual([(yield* rowsOf(inner)).mails, (yield* rowsOf(outer)).mails], [1, 0])
        yield* Effect.exit(runOnce(Effect.andThen(say(lost), Effect.fail("no"))))
        yield* Effect.exit(runOnce(Effect.andThen(say(bad), unheardOf(bad))))
      }))
      assert.deepStrictEqual([(yield* rowsOf(outer)).mails, (yield* rowsOf(inner)).mails], [1, 1])
      assert.deepStrictEqual([yield* rowsOf(lost), yield* rowsOf(bad)], [none, none])
    }))

  it.effect("take no statement where there are none", () =>
    Effect.gen(function* () {
      const [empty] = yield* counting(runOnce(Effect.flatMap(Audit, ({ append }) => append())))
      assert.strictEqual(empty, 0)
    }))
})

layer(withTimers)("items left for the end of a transaction", (it) => {
  it.effect("are given key by key, all items of a key at once, after the gathered rows are written", () =>
    Effect.gen(function* () {
      const database = yield* Database
      const subject = randomUUID()
      const written: Array<string> = []
      const count = Effect.map(rowsOf(subject), ({ mails }) => void written.push(`mails: ${mails}`))
      yield* runOnce(Effect.gen(function* () {
        yield* leave(written, "z", "1")
        yield* leave(written, "a", "2")
        yield* last("m", [3], () => Effect.provideService(count, Database, database))
        yield* leave(written, "z", "4", "5")
        yield* say(subject)
        assert.deepStrictEqual(written, [])
      }))
      assert.deepStrictEqual(written, ["a: 2", "mails: 1", "z: 1 4 5"])
    }))

  it.effect("of an inner unit are left to the outer one, unless the inner one fails", () =>
    Effect.gen(function* () {
      const written: Array<string> = []
      yield* runOnce(Effect.gen(function* () {
        yield* leave(written, "heads", "1")
        yield* runOnce(leave(written, "heads", "2"))
        yield* Effect.exit(runOnce(Effect.andThen(leave(written, "heads", "lost"), Effect.fail("no"))))
        assert.deepStrictEqual(written, [])
      }))
      assert.deepStrictEqual(written, ["heads: 1 2"])
    }))

  it.effect("are written at once, also where a fenced write is prepared around the transaction", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { append } = yield* Audit
      const subject = randomUUID()
      const entry = { action: "test.said", actor: "system", subject, outcome: "done" } as const
      const before = apart(last("records", [entry], (all) => Effect.asVoid(append(...all))))
      const refused = fenced(sql, { turn: subject, admissions: [] }, Effect.andThen(before, Effect.fail("no")))
      assert.strictEqual(yield* Effect.flip(refused), "no")
      assert.lengthOf((yield* rowsOf(subject)).said, 1)
    }))
})

layer(withTimers)("a command in a transaction", (it) => {
  it.effect("that lost a race four times is a 503, and any other refusal is given at once", () =>
    Effect.gen(function* () {
      let tries = 0
      const failing = <E>(error: E) => Effect.andThen(Effect.sync(() => void tries++), Effect.fail(error))
      assert.strictEqual((yield* Effect.flip(run(failing(new Conflict()))))._tag, "DependencyUnavailable")
      assert.strictEqual(tries, 4)
      assert.strictEqual(yield* Effect.flip(run(failing("no" as const))), "no")
      assert.strictEqual(tries, 5)
    }))

  it.effect("is repeated after a lost connection only where it finds out that it was done", () =>
    Effect.gen(function* () {
      const tries = { finding: 0, other: 0 }
      const losing = (which: keyof typeof tries) =>
        Effect.andThen(Effect.sync(() => void tries[which]++), Effect.fail(lostConnection))
      const error = yield* Effect.flip(run(losing("finding"), { finds: true }))
      assert.strictEqual(error._tag, "DependencyUnavailable")
      const exit = yield* Effect.exit(run(losing("other")))
      assert.isTrue(exit._tag === "Failure" && Cause.hasDies(exit.cause))
      assert.deepStrictEqual(tries, { finding: 4, other: 1 })
    }))

  it.effect("may die where only items are left to write, and once it is committed", () =>
    Effect.gen(function* () {
      const written: Array<string> = []
      const hit = (point: FaultPoint) => void written.push(point)
      yield* Effect.provideService(run(leave(written, "heads", "1"), { faults: "decision" }), Failpoints, { hit })
      assert.deepStrictEqual(written, ["decision.written", "heads: 1", "decision.committed"])
    }))

  it.effect("may leave items for its end; outside of it, and in a fenced write, that does not compile", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const items = last("heads", [1], () => Effect.void)
      const fences = [holds(sql, sql`true`)] as const
      const inside: Effect.Effect<void, DependencyUnavailable, Database> = run(items)
      const either: Effect.Effect<void, NeedsTransaction | SqlError.SqlError> = writeFenced(
        sql,
        fences,
        transactionOnly(items),
      )
      // @ts-expect-error: no transaction is open.
      const outside: Effect.Effect<void> = items
      // @ts-expect-error: a transaction of the client has no such end.
      const bare: Effect.Effect<void, SqlError.SqlError> = sql.withTransaction(items)
      // @ts-expect-error: a fenced write is one statement, and has no transaction around it.
      const fencedWrite: Effect.Effect<void, SqlError.SqlError> = writeFenced(sql, fences, items)

      yield* inside
      assert.instanceOf(yield* Effect.flip(either), NeedsTransaction)
      for (const wrong of [outside, bare, fencedWrite]) {
        assert.strictEqual((yield* Effect.exit<void, SqlError.SqlError, never>(wrong))._tag, "Failure")
      }
    }))
})
