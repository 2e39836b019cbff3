/**
 * The audit of failed requests.
 *
 * A refusal costs its caller nothing, so the audit grows with kinds of refusals and with time, not with requests
 * (GatheredRefusals). Two failures get a record at once: the first refusal of a recognised actor's kind in a minute,
 * and the first server error (5xx but 503) of its kind. All others join the waiting record of their kind: failures
 * without a recognised actor, beyond a limit, for lack of the database, and those after the first. A waiting record is
 * written after one second; while its kind keeps failing, the pause doubles up to half a minute. Waiting records are
 * written when the server stops, and lost when the process is killed.
 */
import { Clock, Context, Effect, Fiber, Layer, Schedule, Semaphore } from "effect"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { CurrentRequest } from "../../../services/platform/observability/CurrentRequest.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import { type Gathered, GatheredRejections, type Refusal } from "./GatheredRejections.ts"

const outcomeOf = (status: number) => status >= 500 ? "failed" : "refused"

/** Failures that get a record at once while they are rare: neither beyond a limit nor for lack of the database. */
const isWritable = ({ actor, status }: Refusal) => status !== 429 && status !== 503 && (actor !== null || status >= 500)

/** Separate bounds, so that callers without a credential take no room from those with one. */
const anonymousBounds = { kinds: 200, kindsOfOne: 200, ids: 5_000, idsOfOne: 5_000 }
const actorBounds = { kinds: 1_000, kindsOfOne: 20, ids: 20_000, idsOfOne: 500 }

export class RejectionAudit extends Context.Service<RejectionAudit, {
  /** Records a failed request; returns the audit record's id, or null where it cannot be written. */
  readonly record: (refusal: Refusal) => Effect.Effect<string | null>
}>()("bailiwick/http/edge/RejectionAudit") {
  static readonly layer = Layer.effect(
    RejectionAudit,
    Effect.gen(function* () {
      const audit = yield* Audit
      const { sql } = yield* Database
      const scope = yield* Effect.scope
      const anonymous = new GatheredRejections(anonymousBounds)
      const actors = new GatheredRejections(actorBounds)
      const writers = Semaphore.makeUnsafe(2)

      // On conflict: a statement whose answer was lost, or the stopping server, has already written the record.
      const insert = (
        { actor, at, code, count, credential, id, networks, requestId, requestIds, route, status }: Gathered,
      ) =>
        sql`insert into audit_records ${
          sql.insert({
            id,
            at: new Date(at),
            request_id: requestId,
            route,
            action: "request.failed",
            actor,
            subject: null,
            outcome: outcomeOf(status),
            status,
            code,
            details: JSON.stringify({ credential, count, request_ids: requestIds, networks: [...networks] }),
          })
        } on conflict (id) do nothing`

      const write = (heap: GatheredRejections, row: Gathered) =>
        Effect.suspend(() => {
          heap.close(row.id)
          return insert(row)
        }).pipe(
          Effect.retry({ times: 10, schedule: Schedule.spaced("3 seconds") }),
          writers.withPermits(1),
          Effect.catch((error) => Effect.logWarning("refused requests were not audited", error.message)),
          Effect.andThen(Effect.sync(() => heap.done(row.id))),
        )

      const gather = Effect.fnUntraced(function* (heap: GatheredRejections, refusal: Refusal) {
        const now = yield* Clock.currentTimeMillis
        const known = heap.add(refusal, now)
        if (known) return known.id
        const row = heap.open(refusal, yield* (yield* Ids).next, now)
        yield* write(heap, row).pipe(Effect.delay(row.pause), Effect.forkIn(scope))
        return row.id
      })

      const append = (refusal: Refusal) =>
        audit.append({
          action: "request.failed",
          actor: refusal.actor,
          subject: null,
          outcome: outcomeOf(refusal.status),
          status: refusal.status,
          code: refusal.code,
          ...(refusal.network ? { details: { network: refusal.network } } : {}),
        }).pipe(
          Effect.provideService(CurrentRequest, { requestId: refusal.requestId, route: refusal.route }),
          Effect.map(([id]) => id ?? null),
          Effect.timeoutOrElse({ duration: "1 second", orElse: () => Effect.succeed(null) }),
          Effect.interruptible,
          Effect.catchCause((cause) => Effect.as(Effect.logWarning("a failed request was not audited", cause), null)),
          // In a fiber of its own: the request's fiber may have been interrupted, which is the failure to record.
          Effect.forkIn(scope),
          Effect.flatMap(Fiber.join),
        )

      yield* Effect.addFinalizer(() =>
        Effect.forEach([...actors.unwritten, ...anonymous.unwritten], insert, { discard: true }).pipe(
          Effect.timeoutOrElse({ duration: "2 seconds", orElse: () => Effect.void }),
          Effect.interruptible,
          Effect.catchCause((cause) => Effect.logWarning("refused requests were not audited", cause)),
        )
      )

      return RejectionAudit.of({
        record: Effect.fnUntraced(function* (refusal) {
          const heap = refusal.actor === null ? anonymous : actors
          return isWritable(refusal) && heap.isFirst(refusal, yield* Clock.currentTimeMillis)
            ? yield* append(refusal)
            : yield* gather(heap, refusal)
        }),
      })
    }),
  )
}
