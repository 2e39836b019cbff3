/**
 * The live stream of operators: queues, backlogs, dead letters and the doctor's findings. Each event has the whole state
 * of its subject and replaces the one before, and a stream begins with all of them, so a client that was cut off needs no
 * position to go on.
 *
 * All streams of a process share one look at the database a tick, and one examination every 15 s. Without a stream there
 * is neither: the loops wait for the first one.
 */
import { Clock, Context, Effect, Latch, Layer } from "effect"
import type { DoctorReport } from "../../schemas/identity/DoctorReport.ts"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { RateLimited } from "../../schemas/problems/HttpProblems.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { greeting, StreamOutlet } from "../platform/StreamOutlet.ts"
import { DeadLetters } from "../webhooks/DeadLetters.ts"
import { mustOperate } from "./OperatorRole.ts"
import { Queues } from "./Queues.ts"

/** Streams that a person may have open in one process, and all persons together. */
const perPerson = 10
const perProcess = 200

const tickMillis = 1_000
const examinationMillis = 15_000
const recheckMillis = 30_000

type Subject = "queues" | "backlogs" | "dead-letters" | "findings"

const encoder = new TextEncoder()
const eventOf = (subject: Subject, data: unknown) =>
  encoder.encode(`event: ${subject}\ndata: ${JSON.stringify(data)}\n\n`)

/** Whether the caller of a request may still look; undecided where that cannot be found out now. */
export type Standing = "admitted" | "refused" | "undecided"

export interface OperatorStreamRequest {
  readonly personId: PersonId
  /** Authenticates the request's credentials anew. The stream ends once they are refused. */
  readonly standing: Effect.Effect<Standing>
}

class OperatorOutlet extends StreamOutlet {
  readonly personId: PersonId
  readonly standing: Effect.Effect<Standing>
  recheckAt: number
  readonly #leaves: (outlet: OperatorOutlet) => void

  constructor(
    { personId, standing }: OperatorStreamRequest,
    { leaves, now }: { readonly now: () => number; readonly leaves: (outlet: OperatorOutlet) => void },
  ) {
    super(now)
    this.personId = personId
    this.standing = standing
    this.recheckAt = now() + recheckMillis
    this.#leaves = leaves
  }

  protected left(): void {
    this.#leaves(this)
  }
}

/** The open streams of a process, and the last event of each subject while there are any. */
const makeOutlets = (now: () => number) => {
  const open = new Set<OperatorOutlet>()
  const last = new Map<Subject, Uint8Array>()
  const watched = Latch.makeUnsafe(false)
  const unwatched = Latch.makeUnsafe(true)
  const leaves = (outlet: OperatorOutlet) => {
    open.delete(outlet)
    if (open.size > 0) return
    watched.closeUnsafe()
    unwatched.openUnsafe()
    last.clear()
  }
  return {
    open,
    watched,
    /** Ends early when the last stream has closed: the next one to open does not wait for the rest. */
    pause: (millis: number) => Effect.raceFirst(Effect.sleep(millis), unwatched.await),
    /** Sends the state of a subject to all, and to those that come later in place of what was kept. */
    tell: (subject: Subject, data: unknown) => {
      if (open.size === 0) return
      const bytes = eventOf(subject, data)
      last.set(subject, bytes)
      open.forEach((outlet) => outlet.push(bytes))
    },
    /** Opens a stream, or says that there are too many. */
    admit: (request: OperatorStreamRequest) => {
      const own = [...open].filter(({ personId }) => personId === request.personId).length
      if (own >= perPerson || open.size >= perProcess) return null
      const outlet = new OperatorOutlet(request, { now, leaves })
      open.add(outlet)
      outlet.push(greeting(open.size))
      last.forEach((bytes) => outlet.push(bytes))
      unwatched.closeUnsafe()
      watched.openUnsafe()
      return outlet
    },
  }
}

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
        const operating = yield* mustOperate
        const queues = yield* Queues
        const letters = yield* DeadLetters
        const clock = yield* Clock.Clock
        const now = () => clock.currentTimeMillisUnsafe()
        const outlets = makeOutlets(now)

        const look = Effect.gen(function* () {
          const { backlogs, queues: waiting } = yield* queues.observed
          outlets.tell("queues", waiting)
          outlets.tell("backlogs", backlogs)
          outlets.tell("dead-letters", yield* letters.standing)
        })

        const turn = Effect.gen(function* () {
          yield* outlets.watched.await
          const began = now()
          yield* look
          // The pause is three times the look's duration, so that looking takes at most a quarter of the time.
          yield* outlets.pause(Math.max(tickMillis, 3 * (now() - began)))
        })

        const examination = Effect.gen(function* () {
          yield* outlets.watched.await
          outlets.tell("findings", yield* examined)
          yield* outlets.pause(examinationMillis)
        })

        /** Ends a stream whose credentials or whose person's role ended; what cannot be found out now is asked again. */
        const recheck = Effect.fnUntraced(function* (outlet: OperatorOutlet) {
          const standing = yield* outlet.standing
          if (standing === "refused") return outlet.end()
          if (standing === "undecided") return
          yield* operating(outlet.personId).pipe(
            Effect.map(() => void (outlet.recheckAt = now() + recheckMillis)),
            Effect.catchTag("RoleRequired", () => Effect.sync(() => outlet.end())),
          )
        })

        const beat = Effect.gen(function* () {
          yield* outlets.watched.await
          yield* Effect.sleep(tickMillis)
          outlets.open.forEach((outlet) => outlet.beat())
          yield* Effect.forEach([...outlets.open].filter(({ recheckAt }) => recheckAt <= now()), recheck)
        })

        const forever = <E>(name: string, loop: Effect.Effect<void, E>) =>
          loop.pipe(
            Effect.catchCause((cause) =>
              Effect.andThen(Effect.logWarning(`${name} failed`, cause), Effect.sleep("1 second"))
            ),
            Effect.forever,
            Effect.forkScoped,
          )
        yield* forever("operators' stream", turn)
        yield* forever("operators' examination", examination)
        yield* forever("operators' heartbeat", beat)
        yield* Effect.addFinalizer(() => Effect.sync(() => outlets.open.forEach((outlet) => outlet.end())))

        const open = Effect.fn("OperatorStream.open")(function* (request: OperatorStreamRequest) {
          yield* operating(request.personId).pipe(Effect.catchTag("SqlError", Effect.die))
          const outlet = outlets.admit(request)
          if (outlet !== null) return outlet
          const detail = `A person may have ${perPerson} live streams, and this process has room for ${perProcess}.`
          return yield* new RateLimited({ detail, retry_after: 30 })
        })

        return OperatorStream.of({ open, count: Effect.sync(() => outlets.open.size) })
      }),
    )
}
