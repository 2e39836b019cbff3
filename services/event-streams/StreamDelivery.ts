/**
 * Poll delivery of streams (RFC 8936, as Shared Signals Framework 1.0 profiles it): a poll first settles the messages
 * that the receiver acknowledges or refuses, then returns messages that are not settled, in the order of positions
 * where the stream leaves nothing out. Where there is none, the answer waits.
 *
 * The receiver's grants are checked at each look, also during a wait: from the commit of a revocation on nothing is
 * returned. A message that was not acknowledged is returned again. An acknowledgement says that the message was
 * delivered, and nothing about what the product did with it.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type { CapabilityRequired } from "../../schemas/problems/StreamProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import type { Receiver } from "../lifecycle/GrantCheck.ts"
import { lifecycleNetMillis, lifecycleTopic } from "../lifecycle/EventLog.ts"
import { acknowledged } from "./StreamDelivery/PollAck.ts"
import { pages } from "./StreamDelivery/PollResponse.ts"
import { refusalOf } from "./StreamDelivery/PushRefusal.ts"
import { servedStreams, type StreamRecord } from "./StreamDelivery/StreamRecord.ts"
import { streamStatus } from "./Streams/Status.ts"
import { visibleStreams } from "./Streams/ReceiverAccess.ts"

/** The most messages that one answer holds. */
export const mostSets = 1_000

/** One poll. */
export interface Polling extends Receiver {
  readonly streamId: string
  /** At most `mostSets`; 0: only acknowledge. */
  readonly maxEvents: number
  /** How long to wait for a message where there is none. */
  readonly waitMillis: number
  /** Ids (`jti`) of messages that the receiver took. */
  readonly ack: ReadonlyArray<string>
  /** Messages that the receiver refused, by id, and why. */
  readonly setErrs: Readonly<Record<string, { readonly err: string; readonly description?: string | undefined }>>
}

export class StreamDelivery extends Context.Service<StreamDelivery, {
  /**
   * The answer's JSON: `{"sets": {jti: SET}, "moreAvailable": …}`. NotFound for another receiver's stream and for a
   * stream that is not polled, CapabilityRequired where the receiver's grants are not effective.
   */
  readonly poll: (polling: Polling) => Effect.Effect<string, NotFound | CapabilityRequired | SqlError.SqlError>
}>()("bailiwick/services/event-streams/StreamDelivery") {
  static readonly layer = (publicUrl: URL) =>
    Layer.effect(
      StreamDelivery,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const audit = yield* Audit
        const wakeUps = yield* WakeUps
        const { read } = yield* servedStreams
        const { passTo, settle } = yield* acknowledged
        const page = yield* pages
        const { setStatus } = yield* streamStatus(publicUrl)
        const visible = yield* visibleStreams

        const stream = Effect.fnUntraced(function* ({ clientId, issuer, streamId }: Polling) {
          const served = !isUuid(streamId) ? null : yield* read(sql`t.id = ${streamId}::uuid
            and t.service_issuer = ${issuer} and t.service_id = ${clientId} and t.delivery = 'poll'`)
          if (served?.granted === true) return served
          // Fails as the other endpoints do. Where it does not, the stream is pushed, which is NotFound here.
          yield* visible.one({ issuer, clientId }, streamId, ["events.read"])
          return yield* new NotFound()
        })

        /** Records why messages were refused; pauses the stream where a refusal says `invalid_key`. */
        const refused = Effect.fnUntraced(function* (served: StreamRecord, setErrs: Polling["setErrs"]) {
          const refusals = Object.values(setErrs).map(refusalOf)
          const last = refusals.at(-1)
          if (last === undefined) return
          yield* sql`update lifecycle_streams set last_error = ${last.said} where id = ${served.id}::uuid`
          yield* audit.append({
            action: "lifecycle-stream.refused",
            actor: `service:${served.consumer}`,
            subject: `lifecycle-stream:${served.id}`,
            outcome: "failed",
            code: last.code,
            details: { messages: refusals.length },
          })
          if (refusals.some(({ code }) => code === "invalid_key")) {
            yield* setStatus(served.id, "paused", { by: "transmitter", reason: "invalid_key" })
          }
        })

        const take = Effect.fnUntraced(function* (served: StreamRecord, { ack, setErrs }: Polling) {
          const kept = Object.entries(setErrs).filter(([, { err }]) => err !== "invalid_key").map(([jti]) => jti)
          yield* settle(served, [...ack, ...kept])
          yield* refused(served, setErrs)
        })

        const poll: StreamDelivery["Service"]["poll"] = Effect.fn("StreamDelivery.poll")(
          function* (polling) {
            const until = (yield* Clock.currentTimeMillis) + polling.waitMillis
            const first = yield* stream(polling)
            yield* take(first, polling)
            const waiter = yield* wakeUps.waiter(lifecycleTopic, first.project_id)
            for (;;) {
              const served = yield* stream(polling)
              if (served.stale && served.status === "enabled") {
                yield* setStatus(served.id, "paused", { by: "transmitter", reason: "epoch_changed" })
                continue
              }
              const { body, count, more, passed } = yield* page(served, polling.maxEvents)
              if (passed > served.position) yield* passTo(served, passed)
              const left = until - (yield* Clock.currentTimeMillis)
              if (count > 0 || polling.maxEvents === 0 || left <= 0) return body
              if (!more) yield* waiter.wait(Math.min(left, lifecycleNetMillis))
            }
          },
          Effect.scoped,
        )

        return StreamDelivery.of({ poll })
      }),
    )
}
