/**
 * The live tail of the bus: which messages pass, from a stream's opening on. All streams of a subject in a process share
 * one look at the broker a tick; without a stream there is none.
 *
 * A look reads so many messages of each stream at most, however many came, and says that it left some out. Payloads are
 * shown of streams between the program's own processes, and of those that name ids, states and times alone. The other
 * streams carry words and addresses of people: `cli tail` shows them to those who may read the broker.
 */
import type { StoredMsg } from "@nats-io/jetstream"
import { Context, Effect, Layer } from "effect"
import type { StreamName } from "../../schemas/bus/BusStreams.ts"
import { covers, type Followed, followedBy } from "../../schemas/bus/SubjectPattern.ts"
import type { PassedMessages } from "../../schemas/identity/BusTailView.ts"
import type { RateLimited } from "../../schemas/problems/HttpProblems.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { Bus, type PassingPosition } from "../platform/messaging/Bus.ts"
import type { StreamOutlet } from "../platform/StreamOutlet.ts"
import { type OperatorOutlet, operatorOutlets, type OperatorStreamRequest } from "./OperatorOutlets.ts"

const tickMillis = 1_000

/** A stream without a message for so long tells an empty look: its client knows by this that the stream is not cut. */
const quietMillis = 10_000

/** Messages of one stream in a look. */
const most = 50

/** Characters of a payload. */
const longest = 2_000

const shown: ReadonlySet<StreamName> = new Set([
  "DELIVERIES",
  "RESULTS",
  "DEAD_LETTERS",
  "TRANSFERS",
  "MAIL_OUT",
  "DECISION_LOG",
])

export interface BusTailRequest extends OperatorStreamRequest {
  /** Subjects of NATS, wildcards allowed (schemas/bus/SubjectPattern.ts). */
  readonly subject: string
}

const encoder = new TextEncoder()
const eventOf = (name: "following" | "messages", data: unknown) =>
  encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)

const itemOf = (stream: StreamName, message: StoredMsg): PassedMessages["items"][number] => {
  const payload = shown.has(stream) ? message.string() : null
  return {
    at: message.time.toISOString(),
    stream,
    seq: message.seq,
    subject: message.subject,
    bytes: message.data.length,
    payload: payload === null ? null : payload.slice(0, longest),
    cut: payload !== null && payload.length > longest,
  }
}

/** The streams of one subject, and where their next look begins. */
class Tail {
  readonly outlets = new Set<OperatorOutlet>()
  readonly positions = new Map<StreamName, PassingPosition>()
  readonly subject: string
  readonly followed: ReadonlyArray<Followed>
  #toldAt = 0

  constructor(subject: string) {
    this.subject = subject
    this.followed = followedBy(subject)
  }

  /** Streams begin once it is known where the broker's end, so that nothing is missed from there on. */
  get begun(): boolean {
    return this.positions.size === this.followed.length
  }

  begin(outlet: OperatorOutlet): void {
    outlet.push(eventOf("following", { subject: this.subject, streams: this.followed.map(({ stream }) => stream) }))
  }

  tell(messages: PassedMessages, now: number): void {
    const { items, reached, skipped } = messages
    if (items.length === 0 && reached && !skipped && now - this.#toldAt < quietMillis) return
    this.#toldAt = now
    const bytes = eventOf("messages", messages)
    this.outlets.forEach((outlet) => outlet.push(bytes))
  }
}

export class BusTail extends Context.Service<BusTail, {
  /**
   * Opens a stream of `text/event-stream`; it lasts until it is ended, its client is gone, or its credentials or the
   * operator's role are. Fails with RateLimited where the person has three, or the process 20.
   */
  readonly open: (request: BusTailRequest) => Effect.Effect<StreamOutlet, RateLimited | RoleRequired>
  /** How many streams are open in this process. */
  readonly count: Effect.Effect<number>
}>()("bailiwick/services/operations/BusTail") {
  static readonly layer = Layer.effect(BusTail, Effect.suspend(() => make))
}

const make = Effect.gen(function* () {
  const bus = yield* Bus
  const tails = new Map<string, Tail>()
  const { admit, now, open, pause, whileWatched } = yield* operatorOutlets({
    name: "the bus's tail",
    perPerson: 3,
    perProcess: 20,
    left: (outlet) => {
      for (const [subject, { outlets }] of tails) {
        if (outlets.delete(outlet) && outlets.size === 0) tails.delete(subject)
      }
    },
  })

  const passed = (tail: Tail, followed: Followed) =>
    bus.passing(followed, tail.positions.get(followed.stream) ?? null, most).pipe(
      Effect.map(({ messages, position, skipped }) => {
        tail.positions.set(followed.stream, position)
        const items = messages.filter(({ subject }) => covers(tail.subject, subject))
          .map((message) => itemOf(followed.stream, message))
        return { items, skipped, reached: true }
      }),
      Effect.catch(() => Effect.succeed({ items: [], skipped: false, reached: false })),
    )

  const look = Effect.fnUntraced(function* (tail: Tail) {
    const before = tail.begun
    const found = yield* Effect.forEach(tail.followed, (one) => passed(tail, one), { concurrency: "unbounded" })
    if (!before && tail.begun) tail.outlets.forEach((outlet) => tail.begin(outlet))
    tail.tell({
      items: found.flatMap(({ items }) => items).sort((a, b) => a.at < b.at ? -1 : a.at > b.at ? 1 : 0),
      skipped: found.some(({ skipped }) => skipped),
      reached: found.every(({ reached }) => reached),
    }, now())
  })

  yield* whileWatched(
    "look",
    Effect.gen(function* () {
      const began = now()
      yield* Effect.forEach([...tails.values()], look, { discard: true })
      yield* pause(Math.max(tickMillis, 3 * (now() - began)))
    }),
  )

  return BusTail.of({
    open: Effect.fn("BusTail.open")(({ subject, ...request }) =>
      admit(request, (outlet) => {
        const tail = tails.get(subject) ?? new Tail(subject)
        tails.set(subject, tail)
        tail.outlets.add(outlet)
        if (tail.begun) tail.begin(outlet)
      })
    ),
    count: Effect.sync(() => open.size),
  })
})
