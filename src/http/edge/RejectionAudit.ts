/**
 * The audit of failed requests.
 *
 * A refusal costs its caller nothing, so the audit grows with kinds of refusals and with time, not with requests
 * (GatheredRejections). Two failures get a record at once: the first refusal of a recognised actor's kind in a minute,
 * and the first server error (5xx but 503) of its kind. All others join the waiting record of their kind: failures
 * without a recognised actor, beyond a limit, for lack of the database, and those after the first. A waiting record is
 * written after one second (WriteBehind); while its kind keeps failing, the pause doubles up to half a minute. A record
 * that cannot be written is tried again every 10 s. Waiting records are written when the server stops, and lost when the
 * process is killed.
 */
import { Array, Clock, Context, Effect, Fiber, Layer } from "effect"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { CurrentRequest } from "../../../services/platform/observability/CurrentRequest.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import { writeBehind } from "../../../services/platform/database/WriteBehind.ts"
import { type Bounds, type Gathered, GatheredRejections, type Refusal } from "./GatheredRejections.ts"

const outcomeOf = (status: number) => status >= 500 ? "failed" : "refused"

/** Failures that get a record at once while they are rare: neither beyond a limit nor for lack of the database. */
const isWritable = ({ actor, status }: Refusal) => status !== 429 && status !== 503 && (actor !== null || status >= 500)

/** Separate bounds, so that callers without a credential take no room from those with one. */
const anonymousBounds = { kinds: 200, kindsOfOne: 200, ids: 5_000, idsOfOne: 5_000 }
const actorBounds = { kinds: 1_000, kindsOfOne: 20, ids: 20_000, idsOfOne: 500 }

const rowOf = (
  { actor, at, code, count, credential, id, networks, requestId, requestIds, route, status }: Gathered,
) => ({
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

      // On conflict: a statement whose answer was lost has already written the records.
      const insert = (records: Array.NonEmptyReadonlyArray<Gathered>) =>
        sql`insert into audit_records ${sql.insert(Array.map(records, rowOf))} on conflict (id) do nothing`

      /** Records of one heap, written behind: each once its pause is over. */
      const gathering = Effect.fnUntraced(function* (bounds: Bounds) {
        const heap = new GatheredRejections(bounds)
        const { flush, note } = yield* writeBehind({
          name: "gathered refusals",
          most: 3 * bounds.kinds,
          write: (noted: ReadonlyMap<string, Gathered>) => {
            const records = [...noted.values()]
            // Rejections from now on join the next record.
            for (const { id } of records) heap.close(id)
            const written = Effect.sync(() => records.forEach(({ id }) => heap.done(id)))
            return Array.isReadonlyArrayNonEmpty(records) ? Effect.andThen(insert(records), written) : Effect.void
          },
          dropped: ({ id }) => {
            heap.close(id)
            heap.done(id)
          },
        })
        yield* Effect.addFinalizer(() => Effect.sync(() => heap.unwritten.forEach((record) => note(record.id, record))))

        const gather = Effect.fnUntraced(function* (refusal: Refusal) {
          const now = yield* Clock.currentTimeMillis
          const known = heap.add(refusal, now)
          if (known) return known.id
          const record = heap.open(refusal, yield* (yield* Ids).next, now)
          yield* Effect.sync(() => note(record.id, record)).pipe(
            Effect.andThen(flush),
            Effect.delay(record.pause),
            Effect.forkIn(scope),
          )
          return record.id
        })
        return { heap, gather }
      })

      const anonymous = yield* gathering(anonymousBounds)
      const actors = yield* gathering(actorBounds)

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

      return RejectionAudit.of({
        record: Effect.fnUntraced(function* (refusal) {
          const { gather, heap } = refusal.actor === null ? anonymous : actors
          return isWritable(refusal) && heap.isFirst(refusal, yield* Clock.currentTimeMillis)
            ? yield* append(refusal)
            : yield* gather(refusal)
        }),
      })
    }),
  )
}
