import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { DoctorReport } from "../../../../schemas/identity/DoctorReport.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { warn } from "../../../../src/doctor/Finding.ts"
import { hoursOf } from "../../../../src/doctor/FindingHours.ts"
import { rowsRead } from "../../../support/RowsRead.ts"
import { person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { bearer } from "../../../support/TestTokens.ts"
import { send } from "../identity/IdentityClient.ts"
import { without } from "../identity/OmitFields.ts"

const decoded = Schema.decodeUnknownSync(DoctorReport)

const asked = Effect.gen(function* () {
  const answer = yield* send("GET", "/v1/operations/doctor", yield* bearer(yield* person({ operator: true })))
  assert.strictEqual(answer.status, 200, answer.text)
  return decoded(answer.body)
})

const of = (subject: string, { items }: DoctorReport) => items.filter((one) => one.subject === subject)

layer(management(), { excludeTestServices: true })("The doctor over HTTP", (it) => {
  it.effect("every check has its finding, with its sentence", () =>
    Effect.gen(function* () {
      const report = yield* asked
      const subjects = report.items.map(({ subject }) => subject)
      assert.includeMembers(subjects, [
        ..."configuration instance database roles clock schema installation partitions outbox intake".split(" "),
        ..."mail slack workers provider lifecycle audit keys broker streams replicas".split(" "),
        "signing keys",
      ])
      assert.match(of("instance", report)[0]!.says, new RegExp(`^process ${process.pid} on http`))
      assert.match(of("outbox", report)[0]!.says, /^\d+ wait/)
      assert.match(of("streams", report)[0]!.says, /^11 streams took \d+ messages so far$/)
    }))

  it.effect("the worst come first, each with what to do about it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* sql`
        update installation set state = 'held', held_since = ${new Date()}, held_reason = 'stream_gone'`
      const held = yield* asked.pipe(Effect.ensuring(Effect.orDie(sql`
        update installation set state = 'open', held_since = null, held_reason = null`)))
      const order = ["fail", "warn", "ok"]
      const levels = held.items.map(({ level }) => order.indexOf(level))
      assert.deepStrictEqual(levels, levels.toSorted())
      const [{ since, ...finding }] = of("installation", held) as [DoctorReport["items"][number]]
      assert.isNotNull(since)
      assert.deepStrictEqual([finding], [{
        level: "warn",
        subject: "installation",
        says: "epoch 1 is held: the stream with the lost revocations is gone",
        remedy: 'revoke by hand, then type "npx -y deno@2.9.6 task cli installation open --reason R"',
        hours: null,
        hours_capped: false,
      }])

      const lacking = yield* without("slack_messages", asked)
      assert.strictEqual(lacking.level, "fail")
      assert.deepInclude(lacking.items[0], {
        level: "fail",
        subject: "schema",
        says: "lacks slack_messages",
        remedy: "restore from a backup",
      })
      assert.isEmpty(of("slack", lacking), "checks that need the schema")
      assert.strictEqual(of("installation", yield* asked)[0]!.level, "ok")
    }))

  it.effect("a finding says since when, keeps it while it changes, and begins anew after it was fine", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const hold = (reason: string) =>
        sql`update installation set state = 'held', held_since = ${new Date()}, held_reason = ${reason}`
      const open = sql`update installation set state = 'open', held_since = null, held_reason = null`
      const sinceNow = Effect.map(asked, (report) => of("installation", report)[0]!.since)
      assert.isNull(yield* sinceNow)
      const before = Date.now()
      yield* hold("stream_gone")
      const first = yield* sinceNow
      assert.isTrue(Date.parse(first!) >= before - 1_000 && Date.parse(first!) <= Date.now() + 1_000)
      yield* hold("restored")
      assert.strictEqual(yield* sinceNow, first)
      // A look that does not reach the subject leaves its time.
      yield* without("slack_messages", asked)
      assert.strictEqual(yield* sinceNow, first)
      yield* open
      assert.isNull(yield* sinceNow)
      assert.deepStrictEqual(yield* sql`select from finding_times where subject = 'installation'`, [])
      yield* hold("restored")
      assert.isTrue((yield* sinceNow)! > first!)
      yield* open
    }))

  it.effect("a finding about what failed says when, by the hours of a day; what is fine is not counted", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [before] = of("mail", yield* asked)
      assert.deepInclude(before, { level: "ok", hours: null })
      const now = Date.now()
      for (const [hours, n] of [[0.5, 3], [1.5, 1], [23.5, 2], [24.5, 9]] as const) {
        yield* sql`
          insert into mails (id, kind, subject_id, recipient, args, state, created_at, ended_at)
          select gen_random_uuid(), 'x', 'x', 'x', '{}', 'failed', ${new Date(now - hours * 3_600_000)}::timestamptz,
            ${new Date(now - hours * 3_600_000)}::timestamptz from generate_series(1, ${n}::int)`
      }
      const [found] = of("mail", yield* asked)
      assert.include(found!.says, "15 failed")
      assert.deepStrictEqual(found!.hours, [2, ...Array.from({ length: 21 }, () => 0), 1, 3])
      assert.isFalse(found!.hours_capped)

      // One subject that cannot be counted leaves the others.
      const { owner } = yield* Database
      yield* owner`alter table slack_messages rename column ended_at to finished_at`
      const hours = yield* hoursOf([warn("slack", "3 failed"), warn("mail", "15 failed")]).pipe(
        Effect.ensuring(Effect.orDie(owner`alter table slack_messages rename column finished_at to ended_at`)),
      )
      assert.deepStrictEqual([...hours], [["mail", { hours: found!.hours, capped: false }]])

      yield* sql`
        insert into mails (id, kind, subject_id, recipient, args, state, created_at, ended_at)
        select gen_random_uuid(), 'x', 'x', 'x', '{}', 'failed', ${new Date(now)}::timestamptz,
          ${new Date(now)}::timestamptz from generate_series(1, 10000)`
      const [many] = of("mail", yield* asked)
      assert.deepInclude(many, { hours: [...Array.from({ length: 23 }, () => 0), 10_000], hours_capped: true })
      yield* sql`delete from mails where kind = 'x'`
    }))

  it.effect("what was published or has waited for longer is not read for the hours of the outbox", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const now = Date.now()
      for (const [hours, published, n] of [[1, true, 20_000], [48, false, 20_000], [2, false, 3]] as const) {
        const at = new Date(now - hours * 3_600_000)
        yield* owner`
          insert into outbox (id, stream, subject, payload, created_at, published_at, not_before)
          select gen_random_uuid(), 'NOTIFICATIONS', 'hours', '{}', ${at}::timestamptz,
            ${published ? at : null}::timestamptz, ${at}::timestamptz from generate_series(1, ${n}::int)`
      }
      yield* owner`vacuum analyze outbox`
      const [rows, hours] = yield* rowsRead(sql, hoursOf([warn("outbox", "they wait")]))
      yield* owner`delete from outbox where subject = 'hours'`
      assert.isAtMost(rows.get("outbox") ?? 0, 1_000)
      assert.isFalse(hours.get("outbox")!.capped)
      assert.isAtLeast(hours.get("outbox")!.hours[21]!, 3)
    }))

  it.effect("a check that cannot run is a failure, and the others are answered", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* owner`alter table mails rename column last_error to last_fault`
      const report = yield* asked.pipe(
        Effect.ensuring(Effect.orDie(owner`alter table mails rename column last_fault to last_error`)),
      )
      assert.deepInclude(report.items[0], { level: "fail", subject: "database" })
      assert.match(report.items[0]!.says, /last_error/)
      assert.strictEqual(of("streams", report)[0]!.level, "ok")
    }))
})
