/**
 * The live tail of an account's deliveries: its newest ones, and what changes among them. A connection begins with all
 * of these, so a client that was cut off needs no position to go on. What lies behind them, such as a retry of an older
 * delivery, is read from the list.
 *
 * All streams of an account in a process share one page of the list a tick. Without a stream nothing is read: the loops
 * wait for the first one.
 */
import { Clock, Context, Effect, Latch, Layer } from "effect"
import type { AccountId } from "../../schemas/BrandedIds.ts"
import type { DeliveryRecord } from "../../schemas/mail/Delivery.ts"
import { StreamLimit } from "../../schemas/problems/NotificationProblems.ts"
import { type PresentedAgain, standingOf } from "../authentication/StandingCredentials.ts"
import { Database } from "../platform/database/Database.ts"
import { greeting, StreamOutlet } from "../platform/StreamOutlet.ts"
import { AccountDeliveries } from "./AccountDeliveries.ts"

/** Streams that an account may have open in one process, and all accounts together. */
const perAccount = 10
const perProcess = 200

/** The newest deliveries that a stream follows. */
const window = 50

/** Accounts whose deliveries are read at the same time. */
const together = 4

const tickMillis = 1_000
const recheckMillis = 30_000

/** A stream without a change for so long tells an empty one: its client knows by this that the stream is not cut. */
const quietMillis = 10_000

export interface DeliveryStreamRequest {
  readonly accountId: AccountId
  /** Presents the request's credential again: it is checked every 30 s, and the stream ends with it. */
  readonly credential: PresentedAgain
}

const encoder = new TextEncoder()
const eventOf = (name: "newest" | "changed", data: unknown) =>
  encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)

class TailOutlet extends StreamOutlet {
  readonly accountId: AccountId
  readonly credential: PresentedAgain
  recheckAt: number
  readonly #leaves: (outlet: TailOutlet) => void

  constructor(
    { accountId, credential }: DeliveryStreamRequest,
    { leaves, now }: { readonly now: () => number; readonly leaves: (outlet: TailOutlet) => void },
  ) {
    super(now)
    this.accountId = accountId
    this.credential = credential
    this.recheckAt = now() + recheckMillis
    this.#leaves = leaves
  }

  protected left(): void {
    this.#leaves(this)
  }
}

/** The streams of one account, and the deliveries that they show. */
class Tail {
  readonly outlets = new Set<TailOutlet>()
  /** The newest deliveries by their ids, newest first; null until the first look. */
  #shown: ReadonlyMap<string, DeliveryRecord> | null = null
  #toldAt = 0

  admit(outlet: TailOutlet): void {
    this.outlets.add(outlet)
    if (this.#shown !== null) outlet.push(eventOf("newest", { items: [...this.#shown.values()] }))
  }

  /** Tells all streams what differs from the look before. */
  see(items: ReadonlyArray<DeliveryRecord>, now: number): void {
    const before = this.#shown
    this.#shown = new Map(items.map((one) => [one.id, one]))
    if (before === null) return this.#tell(eventOf("newest", { items }), now)
    const changed = items.filter((one) => JSON.stringify(before.get(one.id)) !== JSON.stringify(one))
    const gone = [...before.keys()].filter((id) => !this.#shown!.has(id))
    // None of those before is left: there may be deliveries between them and these that no event has.
    const skipped = before.size > 0 && items.length > 0 && gone.length === before.size
    if (changed.length > 0 || gone.length > 0 || now - this.#toldAt >= quietMillis) {
      this.#tell(eventOf("changed", { items: changed, skipped }), now)
    }
  }

  #tell(bytes: Uint8Array, now: number): void {
    this.#toldAt = now
    this.outlets.forEach((outlet) => outlet.push(bytes))
  }
}

/** The open streams of a process. */
const makeTails = (now: () => number) => {
  const tails = new Map<AccountId, Tail>()
  const open = new Set<TailOutlet>()
  const watched = Latch.makeUnsafe(false)
  const arrived = Latch.makeUnsafe(false)
  const leaves = (outlet: TailOutlet) => {
    open.delete(outlet)
    const tail = tails.get(outlet.accountId)
    tail?.outlets.delete(outlet)
    if (tail?.outlets.size === 0) tails.delete(outlet.accountId)
    if (open.size === 0) watched.closeUnsafe()
  }
  return {
    tails,
    open,
    watched,
    /** Ends early where the first stream of an account has opened: it does not wait for the rest. */
    pause: (millis: number) =>
      Effect.andThen(
        Effect.raceFirst(Effect.sleep(millis), arrived.await),
        Effect.sync(() => void arrived.closeUnsafe()),
      ),
    /** Opens a stream, or says that there are too many. */
    admit: (request: DeliveryStreamRequest) => {
      const known = tails.get(request.accountId)
      if ((known?.outlets.size ?? 0) >= perAccount || open.size >= perProcess) return null
      const tail = known ?? new Tail()
      const outlet = new TailOutlet(request, { now, leaves })
      tails.set(request.accountId, tail)
      open.add(outlet)
      outlet.push(greeting(open.size))
      tail.admit(outlet)
      watched.openUnsafe()
      if (known === undefined) arrived.openUnsafe()
      return outlet
    },
  }
}

export class DeliveryStream extends Context.Service<DeliveryStream, {
  /**
   * Opens a stream of `text/event-stream`; it lasts until it is ended, its client is gone, or its credential is. Fails
   * with StreamLimit where the account has ten, or the process 200.
   */
  readonly open: (request: DeliveryStreamRequest) => Effect.Effect<StreamOutlet, StreamLimit>
  /** How many streams are open in this process. */
  readonly count: Effect.Effect<number>
}>()("bailiwick/services/webhooks/DeliveryStream") {
  static readonly layer = Layer.effect(DeliveryStream, Effect.suspend(() => make))
}

const make = Effect.gen(function* () {
  const { reads } = yield* Database
  const { list } = yield* AccountDeliveries
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const { admit, open, pause, tails, watched } = makeTails(now)

  /** Reads the deliveries of one account. A failure does not stop the reads of other accounts. */
  const look = Effect.fnUntraced(function* ([accountId, tail]: readonly [AccountId, Tail]) {
    const { items } = yield* list(accountId, { limit: window })
    tail.see(items, now())
  }, Effect.catchCause((cause) => Effect.logWarning("an account's deliveries cannot be followed now", cause)))

  const turn = Effect.gen(function* () {
    yield* watched.await
    const began = now()
    yield* Effect.forEach([...tails], look, { concurrency: together, discard: true })
    // The pause is three times the look's duration, so that looking takes at most a quarter of the time.
    yield* pause(Math.max(tickMillis, 3 * (now() - began)))
  })

  const beat = Effect.gen(function* () {
    yield* watched.await
    yield* Effect.sleep(tickMillis)
    open.forEach((outlet) => outlet.beat())
    const due = [...open].filter(({ recheckAt }) => recheckAt <= now())
    const { refused, valid } = yield* standingOf(reads, due)
    for (const outlet of valid) outlet.recheckAt = now() + recheckMillis
    for (const outlet of refused) outlet.end()
  })

  const forever = <E>(name: string, loop: Effect.Effect<void, E>) =>
    loop.pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(Effect.logWarning(`${name} failed`, cause), Effect.sleep("1 second"))
      ),
      Effect.forever,
      Effect.forkScoped,
    )
  yield* forever("deliveries' streams", turn)
  yield* forever("deliveries' heartbeat", beat)
  yield* Effect.addFinalizer(() => Effect.sync(() => open.forEach((outlet) => outlet.end())))

  return DeliveryStream.of({
    open: (request) =>
      Effect.suspend(() => {
        const outlet = admit(request)
        const detail = `An account may have ${perAccount} live streams, and this process has room for ${perProcess}.`
        return outlet === null ? Effect.fail(new StreamLimit({ detail, retry_after: 30 })) : Effect.succeed(outlet)
      }),
    count: Effect.sync(() => open.size),
  })
})
