import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { AccountId } from "../../../schemas/BrandedIds.ts"
import { Directory } from "../../../services/directory/Directory.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import type { Incoming } from "../../../services/platform/messaging/BusIntake.ts"
import { EventIntake } from "../../../services/webhooks/EventIntake.ts"
import { Sender } from "../../../services/webhooks/Sender.ts"
import * as Lines from "../../support/DirectoryLines.ts"
import { comes, count, dayMillis, fixture, miscounted, now, on, webhook } from "./WebhookFixture.ts"

let seq = 0
const message = (accountId: AccountId, fields: object = {}, subject = "intake.v1.mail-events.delivered"): Incoming => {
  const value = {
    id: `m${++seq}`,
    event: "email.delivered",
    account_id: accountId,
    email_id: "e",
    recipient: "pat@example.com",
    timestamp: "2026-03-10T12:00:00Z",
    metadata: { subject: null, tag: null },
    ...fields,
  }
  return { subject, seq, data: new TextEncoder().encode(JSON.stringify(value)) }
}
const rejects = Effect.fnUntraced(function* (seqs: ReadonlyArray<number>) {
  const { sql } = yield* Database
  return yield* sql<{ seq: number; reason: string; detail: string; state: string }>`
    select stream_seq::int as seq, reason, detail, state from intake_rejects
    where stream_seq = any(${[...seqs]}::bigint[]) order by 1`
})

layer(Layer.fresh(fixture()))("EventIntake", (it) => {
  it.effect("each message of a batch becomes deliveries or is rejected with its reason, once", () =>
    Effect.gen(function* () {
      const { take } = yield* EventIntake
      const hook = yield* webhook()
      const good = [message(hook.accountId), message(hook.accountId)]
      const bad = [
        { subject: "intake.v1.mail-events.delivered", seq: ++seq, data: new Uint8Array([0xff, 0x00]) },
        message(hook.accountId, { recipient: "" }),
        message(hook.accountId, {}, "intake.v1.mail-events.sent"),
        message(hook.accountId, { metadata: { subject: null, tag: null, pad: "x".repeat(70_000) } }),
      ]
      const lost = message(AccountId.make(randomUUID()))
      // A known id with another content is not a new event.
      const changed = message(hook.accountId, { id: `m${good[0]!.seq}`, email_id: "changed" })
      const batch = [good[0]!, bad[0]!, lost, bad[1]!, bad[2]!, good[1]!, bad[3]!, changed]
      yield* take(batch)
      yield* take(batch)
      assert.strictEqual(yield* count("deliveries", `webhook_id = '${hook.id}'`), 2)
      assert.strictEqual(yield* count("events", `account_id = '${hook.accountId}' and body like '%changed%'`), 0)
      const aside = yield* rejects([...bad, lost].map((one) => one.seq))
      assert.deepStrictEqual(aside.map(({ reason, state }) => [reason, state]), [
        ["malformed_json", "rejected"],
        ["invalid_event", "rejected"],
        ["wrong_subject", "rejected"],
        ["too_large", "rejected"],
        ["unknown_account", "waiting"],
      ])
      assert.strictEqual(aside[1]!.detail, "at fault: recipient")
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("an event of an unknown account waits, and is delivered once when the account exists", () =>
    Effect.gen(function* () {
      const { expire, resume, take } = yield* EventIntake
      const accountId = AccountId.make(randomUUID())
      const early = [message(accountId), message(accountId)]
      yield* take(early)
      assert.isFalse(yield* resume)
      yield* expire.pipe(on((yield* now) + 6 * dayMillis))
      const { apply } = yield* Directory
      yield* apply([Lines.account(accountId, 1, { email: `${accountId}@example.com` })])
      const hook = yield* webhook({ of: accountId })
      assert.isFalse(yield* resume)
      const mine = count("deliveries", `webhook_id = '${hook.id}'`)
      assert.strictEqual(yield* mine, 2)
      assert.deepStrictEqual((yield* rejects(early.map((one) => one.seq))).map(({ state }) => state), [
        "resolved",
        "resolved",
      ])
      yield* resume
      yield* take(early)
      assert.strictEqual(yield* mine, 2)
    }))

  it.effect("an event of an unknown account is rejected after seven days", () =>
    Effect.gen(function* () {
      const { expire, resume, take } = yield* EventIntake
      const accountId = AccountId.make(randomUUID())
      const early = message(accountId)
      yield* take([early])
      // More than one batch.
      for (let n = 0; n < 3; n++) yield* take(Array.from({ length: 400 }, () => message(accountId)))
      const { apply } = yield* Directory
      const until = (yield* now) + 7 * dayMillis
      yield* expire.pipe(on(until - 1))
      assert.strictEqual((yield* rejects([early.seq]))[0]!.state, "waiting")
      yield* expire.pipe(on(until))
      assert.strictEqual(yield* count("intake_rejects", `account_id = '${accountId}' and state <> 'rejected'`), 0)
      const [given] = yield* rejects([early.seq])
      assert.deepStrictEqual([given!.state, given!.reason], ["rejected", "unknown_account"])
      yield* apply([Lines.account(accountId, 1, { email: `${accountId}@example.com` })])
      const hook = yield* webhook({ of: accountId })
      yield* resume
      assert.strictEqual(yield* count("deliveries", `webhook_id = '${hook.id}'`), 0)
    }))

  it.effect("events that PostgreSQL refuses are rejected, the others accepted; an outage rejects none", () =>
    Effect.gen(function* () {
      const { take } = yield* EventIntake
      const { owner } = yield* Database
      const { slots } = yield* Sender
      yield* owner`create function refuse() returns trigger language plpgsql as $$ begin
        if new.body like '%poison%' then raise exception 'no' using errcode = '22021'; end if;
        if new.body like '%outage%' then raise exception 'no' using errcode = '53100'; end if;
        return new; end $$`
      yield* owner`create trigger refuse before insert on events for each row execute function refuse()`
      const hook = yield* webhook()
      const poison = [17, 18, 40].map((at) => [at, message(hook.accountId, { email_id: "poison" })] as const)
      const batch = Array.from({ length: 60 }, () => message(hook.accountId))
      for (const [at, one] of poison) batch[at] = one
      yield* take(batch)
      assert.strictEqual(yield* count("deliveries", `webhook_id = '${hook.id}'`), 57)
      const aside = yield* rejects(batch.map((one) => one.seq))
      assert.deepStrictEqual(
        aside.map(({ reason, seq }) => [seq, reason]),
        poison.map(([, one]) => [one.seq, "refused"]),
      )
      // Nothing listens at the URL: the sends have ended, and slots reserved for refused halves were given back.
      yield* comes(Effect.sync(() => slots.load.claimed === 0))
      assert.deepStrictEqual(yield* miscounted, [])

      const outage = [message(hook.accountId), message(hook.accountId, { email_id: "outage" })]
      assert.strictEqual((yield* Effect.exit(take(outage)))._tag, "Failure")
      assert.deepStrictEqual(yield* rejects(outage.map((one) => one.seq)), [])
      assert.strictEqual(yield* count("deliveries", `webhook_id = '${hook.id}'`), 57)
      yield* owner`drop trigger refuse on events`
      yield* take(outage)
      assert.strictEqual(yield* count("deliveries", `webhook_id = '${hook.id}'`), 59)
    }))

  it.effect("an event that had waited for its account and is then refused is recorded as rejected", () =>
    Effect.gen(function* () {
      const { resume, take } = yield* EventIntake
      const { owner } = yield* Database
      const accountId = AccountId.make(randomUUID())
      const early = [message(accountId, { email_id: "poison" }), message(accountId)]
      yield* take(early)
      yield* owner`create trigger refuse before insert on events for each row execute function refuse()`
      yield* (yield* Directory).apply([Lines.account(accountId, 1, { email: `${accountId}@example.com` })])
      const hook = yield* webhook({ of: accountId })
      yield* resume
      assert.strictEqual(yield* count("deliveries", `webhook_id = '${hook.id}'`), 1)
      assert.deepStrictEqual(
        (yield* rejects(early.map((one) => one.seq))).map(({ reason, state }) => [state, reason]),
        [
          ["rejected", "refused"],
          ["resolved", "unknown_account"],
        ],
      )
    }))
})
