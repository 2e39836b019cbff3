/**
 * What the live streams of operators share: a limit on their number, an end with the caller's credentials or role, and
 * loops that wait while no stream is open.
 */
import { Clock, Effect, Latch } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { RateLimited } from "../../schemas/problems/HttpProblems.ts"
import { greeting, StreamOutlet } from "../platform/StreamOutlet.ts"
import { mustOperate } from "./OperatorRole.ts"

const tickMillis = 1_000
const recheckMillis = 30_000

/** Whether the caller of a request may still look; undecided where that cannot be found out now. */
export type Standing = "admitted" | "refused" | "undecided"

export interface OperatorStreamRequest {
  readonly personId: PersonId
  /** Authenticates the request's credentials anew. The stream ends once they are refused. */
  readonly standing: Effect.Effect<Standing>
}

export class OperatorOutlet extends StreamOutlet {
  readonly personId: PersonId
  readonly standing: Effect.Effect<Standing>
  recheckAt: number
  readonly #leaves: (outlet: OperatorOutlet) => void

  constructor(
    { personId, standing }: OperatorStreamRequest,
    now: () => number,
    leaves: (outlet: OperatorOutlet) => void,
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

export interface Outlets {
  /** What the loops are called in the log. */
  readonly name: string
  /** Streams that a person may have open in one process, and all persons together. */
  readonly perPerson: number
  readonly perProcess: number
  /** A stream has ended, and `others` are open still. */
  readonly left: (outlet: OperatorOutlet, others: number) => void
}

/** The open streams of a process. Runs their heartbeat until the scope ends, and ends them then. */
export const operatorOutlets = Effect.fnUntraced(function* ({ left, name, perPerson, perProcess }: Outlets) {
  const operating = yield* mustOperate
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const open = new Set<OperatorOutlet>()
  const watched = Latch.makeUnsafe(false)
  const unwatched = Latch.makeUnsafe(true)
  const leaves = (outlet: OperatorOutlet) => {
    open.delete(outlet)
    left(outlet, open.size)
    if (open.size > 0) return
    watched.closeUnsafe()
    unwatched.openUnsafe()
  }

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

  /** Runs a loop's turn for ever while a stream is open; a failure is logged, and the next turn comes. */
  const whileWatched = <E>(loop: string, turn: Effect.Effect<void, E>) =>
    Effect.andThen(watched.await, turn).pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(Effect.logWarning(`${name}: ${loop} failed`, cause), Effect.sleep("1 second"))
      ),
      Effect.forever,
      Effect.forkScoped,
    )

  yield* whileWatched(
    "heartbeat",
    Effect.gen(function* () {
      yield* Effect.sleep(tickMillis)
      open.forEach((outlet) => outlet.beat())
      yield* Effect.forEach([...open].filter(({ recheckAt }) => recheckAt <= now()), recheck)
    }),
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => open.forEach((outlet) => outlet.end())))

  return {
    now,
    open,
    whileWatched,
    /** Ends early when the last stream has closed: the next one to open does not wait for the rest. */
    pause: (millis: number) => Effect.raceFirst(Effect.sleep(millis), unwatched.await),
    /** Opens a stream. `begin` runs before the loops see it. Fails with RateLimited where there are too many. */
    admit: Effect.fnUntraced(function* (request: OperatorStreamRequest, begin: (outlet: OperatorOutlet) => void) {
      yield* operating(request.personId).pipe(Effect.catchTag("SqlError", Effect.die))
      const own = [...open].filter(({ personId }) => personId === request.personId).length
      if (own >= perPerson || open.size >= perProcess) {
        const detail =
          `A person may have ${perPerson} of these live streams, and this process has room for ${perProcess}.`
        return yield* new RateLimited({ detail, retry_after: 30 })
      }
      const outlet = new OperatorOutlet(request, now, leaves)
      open.add(outlet)
      outlet.push(greeting(open.size))
      begin(outlet)
      unwatched.closeUnsafe()
      watched.openUnsafe()
      return outlet
    }),
  }
})
