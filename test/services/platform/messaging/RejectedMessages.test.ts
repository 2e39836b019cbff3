import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AccountId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { RejectedMessages } from "../../../../services/platform/messaging/RejectedMessages.ts"
import { ground } from "../../../support/TestAccounts.ts"
import { on } from "../../webhooks/WebhookFixture.ts"

const days = (n: number) => n * 24 * 60 * 60_000
const start = Date.parse("2026-03-10T12:00:00.000Z")
const reject = (seq: number) => ({
  stream: "EVENTS" as const,
  seq,
  subject: "intake.v1.mail-events.sent",
  reason: "invalid_event",
  detail: null,
  payload: new Uint8Array([seq % 256]),
})

layer(Layer.fresh(RejectedMessages.layer.pipe(Layer.provideMerge(ground))))("Rejects", (it) => {
  it.effect("rejected messages are deleted after 30 days, but not while they wait for their account", () =>
    Effect.gen(function* () {
      const { add, prune } = yield* RejectedMessages
      const { sql } = yield* Database
      const left = Effect.map(
        sql<{ seq: number }>`select stream_seq::int as seq from intake_rejects order by stream_seq`,
        (rows) => rows.map(({ seq }) => seq),
      )
      const until = new Date(start + days(60))
      yield* add(Array.from({ length: 1_203 }, (_, i) => reject(i))).pipe(on(start))
      yield* add([{ ...reject(5_000), waiting: { accountId: AccountId.make(crypto.randomUUID()), until } }]).pipe(
        on(start),
      )
      yield* add([reject(6_000)]).pipe(on(start + days(1)))
      assert.strictEqual(yield* prune.pipe(on(start + days(30) - 1)), 0)
      assert.strictEqual(yield* prune.pipe(on(start + days(30))), 1_203)
      assert.deepStrictEqual(yield* left, [5_000, 6_000])
      assert.strictEqual(yield* prune.pipe(on(start + days(31))), 1)
      assert.deepStrictEqual(yield* left, [5_000])
    }))
})
