import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { AccountId } from "../../../schemas/BrandedIds.ts"
import { notificationSubject } from "../../../schemas/bus/NotificationMessage.ts"
import { Directory } from "../../../services/directory/Directory.ts"
import { NotificationIntake } from "../../../services/notifications/NotificationIntake.ts"
import { inboxesTopic } from "../../../services/notifications/Notifications.ts"
import { WakeUps } from "../../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { NotificationIntakeWorker } from "../../../src/workers/NotificationWorker.ts"
import { account } from "../../support/DirectoryLines.ts"
import { fixture, list, newAccount } from "./NotificationFixture.ts"

const services = NotificationIntake.layer.pipe(Layer.provideMerge(fixture))

const message = (account_id: string, fields: object = {}) => ({
  id: randomUUID(),
  account_id,
  category: "sends",
  severity: "success",
  title: "Broadcast sent",
  body: "To 3 people.\nAll of them.",
  href: "/broadcasts/1",
  ...fields,
})

let seq = 0
const incoming = (said: object | string, data = typeof said === "string" ? said : JSON.stringify(said)) => ({
  subject: notificationSubject,
  seq: ++seq,
  data: new TextEncoder().encode(data),
})

const reasonOf = Effect.fnUntraced(function* (at: number) {
  const { sql } = yield* Database
  const rows = yield* sql<{ reason: string; state: string }>`
    select reason, state from intake_rejects where stream_seq = ${at} and stream = 'EVENTS'`
  return rows.map(({ reason, state }) => `${reason} ${state}`).join()
})

layer(services)("NotificationIntake", (it) => {
  it.effect("a repeated message is announced once per account, in one batch or several", () =>
    Effect.gen(function* () {
      const intake = yield* NotificationIntake
      const [me, other] = [yield* newAccount(), yield* newAccount()]
      const said = message(me, { id: "n-1" })
      yield* intake.take([said, said, message(other, { id: "n-1" }), message(me)].map((m) => incoming(m)))
      yield* intake.take([incoming(said)])
      assert.deepStrictEqual([(yield* list(me)).total, (yield* list(other)).total], [2, 1])
      const { items: [item] } = yield* list(other)
      assert.deepStrictEqual(
        [item!.category, item!.severity, item!.title, item!.body, item!.href, item!.read_at],
        ["sends", "success", "Broadcast sent", "To 3 people.\nAll of them.", "/broadcasts/1", null],
      )
    }))

  it.effect("a wrong message is set aside with its reason and none of its values", () =>
    Effect.gen(function* () {
      const intake = yield* NotificationIntake
      const { sql } = yield* Database
      const me = yield* newAccount()
      const wrong = [
        "{",
        "[".repeat(100),
        `"${"x".repeat(70_000)}"`,
        {},
        message(me, { id: "" }),
        message(me, { id: "x".repeat(201) }),
        message("no-uuid"),
        message(me, { category: "spam" }),
        message(me, { severity: "loud" }),
        message(me, { title: "two\nlines" }),
        message(me, { title: "nul \u0000" }),
        message(me, { body: "\u0000" }),
        message(me, { body: 7 }),
        ...["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/a b", "/<x>"]
          .map((href) => message(me, { href })),
      ].map((m) => incoming(m))
      yield* intake.take([incoming(message(me)), ...wrong, incoming(message(me))])
      assert.strictEqual((yield* list(me)).total, 2)
      const reasons = yield* Effect.forEach(wrong, (m) => reasonOf(m.seq))
      assert.deepStrictEqual(reasons.slice(0, 3), [
        "malformed_json rejected",
        "too_deep rejected",
        "too_large rejected",
      ])
      assert.deepStrictEqual([...new Set(reasons.slice(3))], ["invalid_notification rejected"])
      const [row] = yield* sql<{ detail: string }>`
        select detail from intake_rejects where stream_seq = ${wrong.at(-1)!.seq}`
      assert.strictEqual(row!.detail, "at fault: href")
    }))

  it.effect("a message for an unknown account waits for it for seven days", () =>
    Effect.gen(function* () {
      const intake = yield* NotificationIntake
      const [late, never] = [AccountId.make(randomUUID()), randomUUID()]
      const waiting = [incoming(message(late)), incoming(message(never))]
      yield* intake.take(waiting)
      yield* intake.take(waiting)
      assert.strictEqual(yield* reasonOf(waiting[0]!.seq), "unknown_account waiting")
      yield* intake.resume
      yield* (yield* Directory).apply([account(late, 1)])
      yield* intake.resume
      assert.strictEqual((yield* list(late)).total, 1)
      assert.strictEqual(yield* reasonOf(waiting[0]!.seq), "unknown_account resolved")
      yield* intake.resume
      yield* intake.take(waiting)
      assert.strictEqual((yield* list(late)).total, 1)
      const { sql } = yield* Database
      yield* sql`update intake_rejects set expires_at = ${new Date(0)} where stream_seq = ${waiting[1]!.seq}`
      yield* intake.expire
      assert.strictEqual(yield* reasonOf(waiting[1]!.seq), "unknown_account rejected")
    }))
})

layer(services, { excludeTestServices: true })("NotificationIntake, by the bus", (it) => {
  it.effect("messages from the bus are stored, past malformed and repeated ones", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const waiter = yield* (yield* WakeUps).waiter(inboxesTopic)
      const me = yield* newAccount()
      yield* bus.heal
      const said = JSON.stringify(message(me))
      yield* bus.publish(notificationSubject, "{")
      for (let i = 0; i < 2; i++) yield* bus.publish(notificationSubject, said)
      yield* bus.publish(notificationSubject, JSON.stringify(message(me, { title: "The last" })))
      yield* Layer.build(NotificationIntakeWorker.layer)
      while (!(yield* list(me)).items.some(({ title }) => title === "The last")) yield* waiter.wait(30_000)
      assert.strictEqual((yield* list(me)).total, 2)
    }).pipe(Effect.scoped))
})
