import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { Audit } from "../../../../services/platform/observability/Audit.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { gathered } from "../../../../services/platform/database/Gathered.ts"
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

layer(Layer.provideMerge(Timers.layer, ground))("rows gathered in a transaction", (it) => {
  it.effect("are written at its end by one statement, with the same result as at once", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [together, apart] = [randomUUID(), randomUUID()]
      const [statements, ids] = yield* counting(sql.withTransaction(gathered(
        sql,
        Effect.tap(say(together), () =>
          Effect.flatMap(rowsOf(together), (rows) => Effect.sync(() => assert.deepStrictEqual(rows, none)))),
      )))
      assert.deepStrictEqual(yield* rowsOf(together), { said: ids, mails: 1, messages: 1, timers: ["test.late"] })
      const [each, others] = yield* counting(sql.withTransaction(say(apart)))
      assert.deepStrictEqual(yield* rowsOf(apart), { said: others, mails: 1, messages: 1, timers: ["test.late"] })
      // The query in between counts as well.
      assert.strictEqual(each - statements, 4)
    }))

  it.effect("are dropped with the transaction, whether it fails before its end or at it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const before = randomUUID()
      const failed = yield* Effect.exit(
        sql.withTransaction(gathered(sql, Effect.andThen(say(before), Effect.fail("no")))),
      )
      assert.strictEqual(failed._tag, "Failure")
      assert.deepStrictEqual(yield* rowsOf(before), none)
      const at = randomUUID()
      const refused = yield* Effect.exit(sql.withTransaction(gathered(
        sql,
        Effect.andThen(
          say(at),
          Effect.flatMap(
            Audit,
            ({ append }) => append({ action: "test.said", actor: null, subject: at, outcome: "unheard of" as "done" }),
          ),
        ),
      )))
      assert.strictEqual(refused._tag, "Failure")
      assert.deepStrictEqual(yield* rowsOf(at), none)
    }))

  it.effect("take no statement where there are none", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [empty] = yield* counting(gathered(sql, Effect.flatMap(Audit, ({ append }) => append())))
      assert.strictEqual(empty, 0)
    }))
})
