import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { DeliveryId, WebhookId } from "../../../../schemas/BrandedIds.ts"
import { decide } from "../../../../services/webhooks/Settlement/SettlementDecision.ts"
import { specified } from "../../../../services/webhooks/RetrySchedule.ts"
import type { Result } from "../../../../services/webhooks/Sender/Task.ts"

const result = (fields: Partial<Result>, attempt = 1): Result => ({
  task: {
    deliveryId: DeliveryId.make("d"),
    webhookId: WebhookId.make("w"),
    cycle: 1,
    attempt,
    claim: 1n,
    leaseUntil: 1_030_000,
  },
  ending: "answered",
  startedAt: 1_000_000,
  durationMs: 9_000,
  status: 200,
  error: null,
  body: null,
  url: null,
  ...fields,
})
const now = 1_010_000
const nextOf = (fields: Partial<Result>, attempt?: number) => decide(specified, result(fields, attempt), now, 0.5).next

describe("decide", () => {
  it("only a complete 2xx is a success", () => {
    fc.assert(fc.property(fc.integer({ min: 100, max: 599 }), (status) => {
      assert.strictEqual(nextOf({ status }), status >= 200 && status < 300 ? "delivered" : "retry")
    }))
    assert.strictEqual(nextOf({ status: 200, error: "timeout", ending: "silent" }), "retry")
    assert.strictEqual(nextOf({ status: 200, error: "body" }), "retry")
    assert.strictEqual(nextOf({ status: null, error: "dns", ending: "silent" }), "retry")
  })

  it("the delay runs from the failure, not from the start of the attempt or its settlement", () => {
    const { dueAt } = decide(specified, result({ status: 500 }), now + 3_600_000, 0)
    assert.strictEqual(dueAt, 1_000_000 + 9_000 + 60_000)
  })

  it("410 and 429 are failures like any other: seven retries, then a dead letter", () => {
    for (const status of [301, 404, 410, 429, 500, 503]) {
      for (let attempt = 1; attempt <= 8; attempt++) {
        assert.strictEqual(nextOf({ status }, attempt), attempt < 8 ? "retry" : "dead")
      }
    }
  })

  it("released and interrupted deliveries are due at once, until an interruption is fatal", () => {
    for (let attempt = 1; attempt <= 8; attempt++) {
      const released = decide(specified, result({ ending: "released", status: null }, attempt), now, 0.9)
      assert.deepStrictEqual([released.next, released.dueAt], ["released", now])
      const interrupted = decide(specified, result({ ending: "interrupted", status: null }, attempt), now, 0.9)
      assert.deepStrictEqual([interrupted.next, interrupted.dueAt], ["interrupted", now])
      assert.strictEqual(nextOf({ ending: "interrupted", status: null, fatal: true }, attempt), "dead")
    }
  })
})
