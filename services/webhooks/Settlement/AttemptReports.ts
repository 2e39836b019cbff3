/**
 * Reports settled attempts to operators on the stream RESULTS, best effort: one message per webhook and moment. With
 * one message per webhook and settlement, the broker spent more on reports than on events.
 */
import type { WebhookId } from "../../../schemas/BrandedIds.ts"
import type { AttemptReport, AttemptReports as Message } from "../../../schemas/bus/WebhookMessages.ts"
import { Subject } from "../../../schemas/bus/Subject.ts"
import type { Result } from "../Sender/Task.ts"
import type { Next } from "./SettlementDecision.ts"

// Attempts of some 200 bytes each, far below a broker's maximum message size.
const maxPerMessage = 1_000

const attemptOf = (
  { durationMs, error, startedAt, status, task }: Result,
  outcome: Exclude<Next, "released">,
): AttemptReport => ({
  delivery_id: task.deliveryId,
  cycle: task.cycle,
  attempt: task.attempt,
  outcome,
  response_status: status,
  error,
  started_at: new Date(startedAt).toISOString(),
  duration_ms: durationMs,
})

/** Settled attempts that are not reported yet, without body and address. */
export class AttemptReports {
  #attempts = new Map<WebhookId, Array<AttemptReport>>()

  /** Adds an attempt; a released claim is no attempt. */
  add(result: Result, outcome: Next): void {
    if (outcome === "released") return
    const list = this.#attempts.get(result.task.webhookId)
    if (list === undefined) this.#attempts.set(result.task.webhookId, [attemptOf(result, outcome)])
    else list.push(attemptOf(result, outcome))
  }

  /** Messages with the attempts added since the last call. */
  take(): ReadonlyArray<{ readonly subject: string; readonly data: string }> {
    const attempts = this.#attempts
    this.#attempts = new Map()
    return Array.from(attempts, ([webhookId, list]) => {
      const subject = `webhooks.v1.attempts.${Subject.token(webhookId)}`
      return Array.from({ length: Math.ceil(list.length / maxPerMessage) }, (_, i) => {
        const attempts = list.slice(i * maxPerMessage, (i + 1) * maxPerMessage)
        return { subject, data: JSON.stringify({ webhook_id: webhookId, attempts } satisfies Message) }
      })
    }).flat()
  }
}
