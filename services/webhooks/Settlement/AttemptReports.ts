/**
 * What operators see of attempts, on the stream RESULTS, best effort: what came within a moment in one message a webhook.
 * A message a webhook and settlement cost the broker more than handing the events out.
 */
import { Subject } from "../../../schemas/bus/Subject.ts"
import type { Result } from "../Sender/Task.ts"
import type { Next } from "./SettlementDecision.ts"

// Some 200 bytes each, far below what a broker takes in one message.
const mostAMessage = 1_000

const attemptOf = ({ durationMs, error, startedAt, status, task }: Result, outcome: Next) => ({
  delivery_id: task.deliveryId,
  cycle: task.cycle,
  attempt: task.attempt,
  outcome,
  response_status: status,
  error,
  started_at: new Date(startedAt).toISOString(),
  duration_ms: durationMs,
})

/** Attempts that the fence let through, until they are told; no body, no address. */
export class AttemptReports {
  #attempts = new Map<string, Array<ReturnType<typeof attemptOf>>>()

  /** Adds an attempt; what was given back unsent is none. */
  add(result: Result, outcome: Next): void {
    if (outcome === "released") return
    const list = this.#attempts.get(result.task.webhookId)
    if (list === undefined) this.#attempts.set(result.task.webhookId, [attemptOf(result, outcome)])
    else list.push(attemptOf(result, outcome))
  }

  /** The messages of what was added since the last call. */
  take(): ReadonlyArray<{ readonly subject: string; readonly data: string }> {
    const attempts = this.#attempts
    this.#attempts = new Map()
    return Array.from(attempts, ([webhookId, list]) => {
      const subject = `webhooks.v1.attempts.${Subject.token(webhookId)}`
      return Array.from({ length: Math.ceil(list.length / mostAMessage) }, (_, i) => {
        const attempts = list.slice(i * mostAMessage, (i + 1) * mostAMessage)
        return { subject, data: JSON.stringify({ webhook_id: webhookId, attempts }) }
      })
    }).flat()
  }
}
