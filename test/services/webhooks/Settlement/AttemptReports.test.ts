import { assert, describe, it } from "@effect/vitest"
import { DeliveryId, WebhookId } from "../../../../schemas/BrandedIds.ts"
import { AttemptReports } from "../../../../services/webhooks/Settlement/AttemptReports.ts"
import { resultOf } from "../WebhookFixture.ts"

const result = (hook: string, n: number) =>
  resultOf({
    deliveryId: DeliveryId.make(`d${n}`),
    webhookId: WebhookId.make(hook),
    cycle: 1,
    attempt: 2,
    claim: 7n,
    leaseUntil: 31_000,
  }, 1_000)

describe("AttemptReports", () => {
  it("reports each attempt once, one message per webhook, and no released claims", () => {
    const report = new AttemptReports()
    assert.deepStrictEqual(report.take(), [])
    report.add(result("w1", 1), "delivered")
    report.add(result("w2", 2), "retry")
    report.add(result("w1", 3), "dead")
    report.add(result("w1", 4), "released")
    const reports = report.take().map(({ data, subject }) => ({ subject, ...JSON.parse(data) }))
    assert.deepStrictEqual(reports.map(({ subject }) => subject), [
      "webhooks.v1.attempts.w1",
      "webhooks.v1.attempts.w2",
    ])
    assert.deepStrictEqual(reports[0].attempts.map((a: { outcome: string }) => a.outcome), ["delivered", "dead"])
    assert.deepStrictEqual(reports[1], {
      subject: "webhooks.v1.attempts.w2",
      webhook_id: "w2",
      attempts: [{
        delivery_id: "d2",
        cycle: 1,
        attempt: 2,
        outcome: "retry",
        response_status: 200,
        error: null,
        started_at: "1970-01-01T00:00:01.000Z",
        duration_ms: 7,
      }],
    })
    assert.deepStrictEqual(report.take(), [])
  })

  it("splits 2,500 attempts into messages of at most 1,000", () => {
    const report = new AttemptReports()
    for (let n = 0; n < 2_500; n++) report.add(result("w1", n), "delivered")
    const sizes = report.take().map(({ data }) => JSON.parse(data).attempts.length)
    assert.deepStrictEqual(sizes, [1_000, 1_000, 500])
  })
})
