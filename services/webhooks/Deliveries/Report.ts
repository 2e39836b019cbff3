/** What operators see of attempts, on the stream RESULTS: one message a webhook and settle batch, best effort. */
import { Subject } from "../../../schemas/bus/Subject.ts"
import type { Result } from "../Sender/Task.ts"
import type { Settled } from "./Settle.ts"

/** Only attempts that the fence let through; no body, no address. */
export const attemptsMessages = (
  results: ReadonlyArray<Result>,
  settled: ReadonlyArray<Settled>,
): ReadonlyArray<{ readonly subject: string; readonly data: string }> => {
  const known = new Map(settled.map((s) => [s.delivery_id, s]))
  const attempts = new Map<string, Array<unknown>>()
  for (const { task, ending, status, error, startedAt, durationMs } of results) {
    const { next } = known.get(task.deliveryId) ?? { next: undefined }
    if (next === undefined || ending === "released") continue
    const of = attempts.get(task.webhookId) ?? []
    attempts.set(task.webhookId, of)
    of.push({
      delivery_id: task.deliveryId,
      cycle: task.cycle,
      attempt: task.attempt,
      outcome: next,
      response_status: status,
      error,
      started_at: new Date(startedAt).toISOString(),
      duration_ms: durationMs,
    })
  }
  return Array.from(attempts, ([webhookId, list]) => ({
    subject: `webhooks.v1.attempts.${Subject.token(webhookId)}`,
    data: JSON.stringify({ webhook_id: webhookId, attempts: list }),
  }))
}
