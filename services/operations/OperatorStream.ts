/**
 * The live stream of operators: queues, backlogs, dead letters and the doctor's findings. Each event has the whole state
 * of its subject and replaces the one before, and a stream begins with all of them, so a client that was cut off needs no
 * position to go on.
 *
 * All streams of a process share one look at the database a tick, and one examination every 15 s. Without a stream there
 * is neither: the loops wait for the first one.
 */
import { Context, Effect, Layer } from "effect"
import type { DoctorReport } from "../../schemas/identity/DoctorReport.ts"
import type { RateLimited } from "../../schemas/problems/HttpProblems.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import type { StreamOutlet } from "../platform/StreamOutlet.ts"
import { DeadLetters } from "../webhooks/DeadLetters.ts"
import { operatorOutlets, type OperatorStreamRequest } from "./OperatorOutlets.ts"
import { Queues } from "./Queues.ts"

const tickMillis = 1_000
const examinationMillis = 15_000

type Subject = "queues" | "backlogs" | "dead-letters" | "findings"

const encoder = new TextEncoder()
const eventOf = (subject: Subject, data: unknown) =>
  encoder.encode(`event: ${subject}\ndata: ${JSON.stringify(data)}\n\n`)

export class OperatorStream extends Context.Service<OperatorStream, {
  /**
   * Opens a stream of `text/event-stream`; it lasts until it is ended, its client is gone, or its credentials or the
   * operator's role are. Fails with RateLimited where the person has ten, or the process 200.
   */
  readonly open: (request: OperatorStreamRequest) => Effect.Effect<StreamOutlet, RateLimited | RoleRequired>
  /** How many streams are open in this process. */
  readonly count: Effect.Effect<number>
}>()("bailiwick/services/operations/OperatorStream") {
  /** `examined`: runs the doctor's checks. */
  static readonly layer = (examined: Effect.Effect<DoctorReport>) =>
    Layer.effect(
      OperatorStream,
      Effect.gen(function* () {
        const queues = yield* Queues
        const letters = yield* DeadLetters
        /** The last event of each subject, while there are streams. */
        const last = new Map<Subject, Uint8Array>()
        const outlets = yield* operatorOutlets({
          name: "operators' stream",
          perPerson: 10,
          perProcess: 200,
          left: (_, others) => {
            if (others === 0) last.clear()
          },
        })
        const { now, open, pause, whileWatched } = outlets

        /** Sends the state of a subject to all, and to those that come later in place of what was kept. */
        const tell = (subject: Subject, data: unknown) => {
          if (open.size === 0) return
          const bytes = eventOf(subject, data)
          last.set(subject, bytes)
          open.forEach((outlet) => outlet.push(bytes))
        }

        const look = Effect.gen(function* () {
          const { backlogs, queues: waiting } = yield* queues.observed
          tell("queues", waiting)
          tell("backlogs", backlogs)
          tell("dead-letters", yield* letters.standing)
        })

        yield* whileWatched(
          "look",
          Effect.gen(function* () {
            const began = now()
            yield* look
            // The pause is three times the look's duration, so that looking takes at most a quarter of the time.
            yield* pause(Math.max(tickMillis, 3 * (now() - began)))
          }),
        )
        yield* whileWatched(
          "examination",
          Effect.gen(function* () {
            tell("findings", yield* examined)
            yield* pause(examinationMillis)
          }),
        )

        return OperatorStream.of({
          open: Effect.fn("OperatorStream.open")((request) =>
            outlets.admit(request, (outlet) => last.forEach((bytes) => outlet.push(bytes)))
          ),
          count: Effect.sync(() => open.size),
        })
      }),
    )
}
