/**
 * Streams of the Shared Signals Framework 1.0 (8.1), as their receivers manage them: configuration, status,
 * verification, subjects. StreamDelivery and StreamPush deliver them.
 *
 * A stream serves one project and one receiver, a service with an effective grant of `stream.manage`, which is checked
 * at each call. It begins at the head of the project's history as of its creation: earlier events are in a snapshot.
 */
import { Context, Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import * as Wire from "../../schemas/identity/StreamBodies.ts"
import type { Subject } from "../../schemas/identity/SubjectIds.ts"
import {
  type DependencyUnavailable,
  type MalformedRequest,
  type NotFound,
  RateLimited,
} from "../../schemas/problems/HttpProblems.ts"
import type { Held } from "../../schemas/problems/IdentityProblems.ts"
import type * as Problems from "../../schemas/problems/StreamProblems.ts"
import { Database } from "../platform/database/Database.ts"
import { mustBeOpen } from "../platform/database/Installation.ts"
import { RateLimits } from "../platform/security/RateLimits.ts"
import { run } from "../platform/database/UnitOfWork.ts"
import type { Receiver } from "../lifecycle/GrantCheck.ts"
import { streamAudit, streamConfigurations } from "./Streams/Configuration.ts"
import { ownMessages } from "./Streams/ControlMessages.ts"
import type { StreamRow } from "./Streams/Rows.ts"
import { saidSubjects } from "./Streams/SubjectOverrides.ts"
import { streamStatus } from "./Streams/Status.ts"
import { visibleStreams } from "./Streams/ReceiverAccess.ts"

type Unseen = NotFound | Problems.CapabilityRequired
type Wrong = MalformedRequest | Problems.SuppliedMismatch

export class Streams extends Context.Service<Streams, {
  /** Creates an enabled stream; polled where no delivery is asked for. */
  readonly create: (
    receiver: Receiver,
    asked: Wire.StreamCreation,
  ) => Effect.Effect<
    Wire.StreamConfiguration,
    | Problems.AudienceRequired
    | Problems.CapabilityRequired
    | Problems.StreamLimit
    | Wrong
    | Held
    | DependencyUnavailable
  >
  readonly read: (receiver: Receiver, streamId: string) => Effect.Effect<Wire.StreamConfiguration, Unseen>
  /** All streams that the receiver may manage, oldest first. */
  readonly list: (
    receiver: Receiver,
  ) => Effect.Effect<ReadonlyArray<Wire.StreamConfiguration>, Problems.CapabilityRequired>
  /** `update` keeps the properties that the receiver may set and did not send, `replace` deletes them. */
  readonly change: (
    receiver: Receiver,
    how: "update" | "replace",
    asked: Wire.StreamChange,
  ) => Effect.Effect<Wire.StreamConfiguration, Unseen | Wrong | Held | DependencyUnavailable>
  readonly remove: (receiver: Receiver, streamId: string) => Effect.Effect<void, Unseen | DependencyUnavailable>
  readonly status: (receiver: Receiver, streamId: string) => Effect.Effect<Wire.StreamState, Unseen>
  readonly setStatus: (
    receiver: Receiver,
    asked: Wire.StreamState,
  ) => Effect.Effect<Wire.StreamState, Unseen | Held | DependencyUnavailable>
  /** Queues a verification event; at most once in 30 seconds for a stream. */
  readonly verify: (receiver: Receiver, asked: Wire.VerificationRequest) => Effect.Effect<void, Unseen | RateLimited>
  /**
   * Adds or removes a subject. An unknown subject is taken like any other, so that the answer tells no one who exists.
   */
  readonly say: (
    receiver: Receiver,
    streamId: string,
    subject: Subject,
    included: boolean,
  ) => Effect.Effect<void, Unseen | Problems.SubjectLimit | DependencyUnavailable>
}>()("bailiwick/services/event-streams/Streams") {
  static readonly layer = (publicUrl: URL, limits: Partial<StreamLimits> = {}) =>
    Layer.effect(Streams, make(publicUrl, { perReceiver: 20, subjects: 1_000, ...limits }))
}

export interface StreamLimits {
  /** Streams that a receiver may have of one project. */
  readonly perReceiver: number
  /** Subjects that a receiver may have added to or removed from a stream. */
  readonly subjects: number
}

const stateOf = (
  { id, status, status_reason: reason }: Pick<StreamRow, "id" | "status" | "status_reason">,
): Wire.StreamState => ({
  stream_id: id,
  status,
  ...(reason === null ? {} : { reason }),
})

const make = Effect.fnUntraced(function* (publicUrl: URL, limits: StreamLimits) {
  const database = yield* Database
  const { sql } = database
  const rates = yield* RateLimits
  const recorded = yield* streamAudit
  const visible = yield* visibleStreams
  const configurations = yield* streamConfigurations(publicUrl, limits.perReceiver)
  const { addVerification } = yield* ownMessages(publicUrl)
  const changes = yield* streamStatus(publicUrl)
  const { say } = yield* saidSubjects(limits.subjects)

  /** Turns a failing statement into a defect: the receiver can do nothing about it. */
  const sound = <A, E>(effect: Effect.Effect<A, E, Database>) =>
    effect.pipe(
      Effect.provideService(Database, database),
      Effect.catch((error): Effect.Effect<never, Exclude<E, SqlError.SqlError>> =>
        SqlError.isSqlError(error) ? Effect.die(error) : Effect.fail(error as Exclude<E, SqlError.SqlError>)
      ),
    )

  return Streams.of({
    create: (receiver, asked) => sound(configurations.create(receiver, asked)),
    read: (receiver, streamId) => sound(configurations.read(receiver, streamId)),
    list: (receiver) => sound(configurations.list(receiver)),
    change: (receiver, how, asked) => sound(configurations.change(receiver, how, asked)),
    remove: (receiver, streamId) => sound(configurations.remove(receiver, streamId)),
    status: (receiver, streamId) => sound(Effect.map(visible.one(receiver, streamId), stateOf)),
    setStatus: Effect.fn("Streams.setStatus")(function* (receiver, { reason = null, status, stream_id }) {
      yield* run(Effect.gen(function* () {
        const row = yield* visible.locked(receiver, stream_id)
        if (status === "enabled") yield* mustBeOpen(sql)
        yield* changes.setStatus(row.id, status, { by: "receiver", reason })
        yield* recorded("status", receiver, row, status)
      }))
      return stateOf({ id: stream_id.toLowerCase(), status, status_reason: reason })
    }, sound),
    verify: Effect.fn("Streams.verify")(function* (receiver, { state, stream_id }) {
      const { id } = yield* visible.one(receiver, stream_id)
      const window = { limit: 1, windowMillis: Wire.minVerificationInterval * 1_000 }
      const taken = yield* rates.take({ key: `lifecycle.verify:${id}`, ...window })
      if (!taken.allowed) {
        return yield* new RateLimited({
          retry_after: taken.retryAfterSeconds,
          limit: window.limit,
          window_seconds: Wire.minVerificationInterval,
        })
      }
      yield* addVerification(id, state ?? null)
    }, sound),
    say: Effect.fn("Streams.say")(function* (receiver, streamId, subject, included) {
      yield* run(Effect.gen(function* () {
        const row = yield* visible.locked(receiver, streamId)
        if (yield* say(row, subject, included)) {
          yield* recorded(included ? "subject-added" : "subject-removed", receiver, row)
        }
      }))
    }, sound),
  })
})
