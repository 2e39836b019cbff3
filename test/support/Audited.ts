import { Effect, Option, Schedule, Stream } from "effect"
import { AuditLog } from "../../services/platform/observability/AuditLog.ts"

/**
 * The audit record of the failed request with this id, once it is written. Refused requests share records that other
 * requests opened, so this reads as `cli audit --request-id` does and does not expect a record of its own.
 */
export const audited = Effect.fnUntraced(function* (requestId: string) {
  const { read } = yield* AuditLog
  const failed = Stream.filter(read({ requestId }), ({ action }) => action === "request.failed")
  return yield* Stream.runHead(failed).pipe(
    Effect.filterOrFail(Option.isSome, () => `no audit record of ${requestId} yet`),
    Effect.map(({ value }) => value),
    Effect.retry(Schedule.spaced("50 millis")),
    Effect.timeout("60 seconds"),
  )
}, Effect.provide(AuditLog.layer))
