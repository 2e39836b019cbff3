/**
 * Live streams of notifications (docs/api/mail.md). PostgreSQL is the truth: a stream is a position in an inbox, and
 * newer changes are read from there, so a client that reconnects with its position misses nothing and gets nothing
 * twice, whichever process it reaches.
 *
 * All streams of a process share one wake-up signal and one poll, at most every 50 ms: one statement for a few hundred
 * streams. No stream has a loop of its own. Without a signal they are polled every second.
 */
import { Clock, Context, Effect, Latch, Layer } from "effect"
import type { AccountId } from "../../schemas/BrandedIds.ts"
import { StreamLimit } from "../../schemas/problems/NotificationProblems.ts"
import { type PresentedAgain, standingOf } from "../authentication/StandingCredentials.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { changes } from "./Live/ChangeFeed.ts"
import { batchOf, positionOf } from "./Live/Events.ts"
import { LiveClient, type Outlets } from "./Live/LiveClient.ts"
import { greeting } from "../platform/StreamOutlet.ts"
import { inboxesTopic } from "./Notifications.ts"

/** Streams that an account may have open in one process. */
const perAccount = 10

const tickMillis = 50
const pollMillis = 1_000
const recheckMillis = 30_000

/** Notifications that one poll gives to one stream. */
const page = 50

/** Positions that one statement answers: with a page for each it stays far below the statement timeout. */
const together = 200

export interface LiveRequest {
  readonly accountId: AccountId
  /** Presents the request's credential again: it is checked every 30 s, and the stream ends with it. */
  readonly credential: PresentedAgain
  /** The header Last-Event-ID, if the client sent one. */
  readonly lastEventId: string | undefined
}

export class Live extends Context.Service<Live, {
  /**
   * Opens a stream of `text/event-stream`; it lasts until it is ended, its client is gone, or no connection was
   * attached for 45 s. Fails with StreamLimit where the account has too many streams.
   */
  readonly open: (request: LiveRequest) => Effect.Effect<LiveClient, StreamLimit>
  /** How many streams are open in this process. */
  readonly count: Effect.Effect<number>
}>()("bailiwick/services/notifications/Live") {
  static readonly layer = Layer.effect(
    Live,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const waiter = yield* (yield* WakeUps).waiter(inboxesTopic)
      const arrived = Latch.makeUnsafe(false)
      const outlets = new Set<LiveClient>()
      const ofAccount = new Map<string, number>()

      const all: Outlets = {
        now,
        left: (outlet) => {
          outlets.delete(outlet)
          const others = (ofAccount.get(outlet.accountId) ?? 1) - 1
          if (others === 0) ofAccount.delete(outlet.accountId)
          else ofAccount.set(outlet.accountId, others)
        },
      }

      /** Reads newer changes for groups of streams; the streams of a group are at the same position. */
      const answer = Effect.fnUntraced(function* (asked: ReadonlyArray<ReadonlyArray<LiveClient>>) {
        const found = yield* changes(reads, asked.map(([first]) => first!), page)
        for (const [i, change] of found) {
          const [first] = asked[i]!
          const since = first!.epoch === null ? null : { epoch: first!.epoch, version: first!.since }
          const { bytes, more, position } = batchOf(change, since, first!.owed, page)
          for (const outlet of asked[i]!) {
            outlet.epoch = position.epoch
            outlet.since = position.version
            outlet.behind = more
            outlet.owed = outlet.owed && more
            outlet.push(bytes)
          }
        }
      })

      const look = Effect.fnUntraced(function* (wanted: ReadonlyArray<LiveClient>) {
        // Streams of one account at one position are asked for once, and get the same bytes.
        const groups = new Map<string, Array<LiveClient>>()
        for (const outlet of wanted) {
          const key = `${outlet.accountId} ${outlet.epoch} ${outlet.since} ${outlet.owed}`
          const group = groups.get(key)
          if (group === undefined) groups.set(key, [outlet])
          else group.push(outlet)
        }
        const asked = [...groups.values()]
        for (let at = 0; at < asked.length; at += together) yield* answer(asked.slice(at, at + together))
      })

      const turn = Effect.gen(function* () {
        const woken = yield* Effect.raceFirst(
          Effect.as(waiter.wait(pollMillis), "all" as const),
          Effect.as(arrived.await, "eager" as const),
        )
        arrived.closeUnsafe()
        const began = now()
        yield* look([...outlets].filter((outlet) => outlet.open && (woken === "all" || outlet.eager)))
        if ([...outlets].some((outlet) => outlet.eager && outlet.open)) arrived.openUnsafe()
        // The pause is three times the poll's duration, so that polling takes at most a quarter of the time.
        yield* Effect.sleep(Math.min(pollMillis, Math.max(tickMillis, 3 * (now() - began))))
      })

      /** Ends the streams among `due` whose credential is no longer valid. */
      const recheck = Effect.fnUntraced(function* (due: ReadonlyArray<LiveClient>) {
        const { refused, valid } = yield* standingOf(reads, due)
        for (const outlet of valid) outlet.recheckAt = now() + recheckMillis
        for (const outlet of refused) outlet.end()
      })

      const beat = Effect.gen(function* () {
        yield* Effect.sleep(pollMillis)
        const due: Array<LiveClient> = []
        for (const outlet of outlets) {
          outlet.beat()
          if (!outlet.ended && outlet.recheckAt <= now()) due.push(outlet)
        }
        yield* recheck(due)
      })

      const forever = <E>(name: string, loop: Effect.Effect<void, E>) =>
        loop.pipe(
          Effect.catchCause((cause) =>
            Effect.andThen(Effect.logWarning(`${name} failed`, cause), Effect.sleep("1 second"))
          ),
          Effect.forever,
          Effect.forkScoped,
        )
      yield* forever("live notifications", turn)
      yield* forever("live notifications' heartbeat", beat)

      const open = ({ accountId, credential, lastEventId }: LiveRequest) =>
        Effect.suspend(() => {
          const open = ofAccount.get(accountId) ?? 0
          if (open >= perAccount) {
            const detail = `An account may have ${perAccount} live streams.`
            return Effect.fail(new StreamLimit({ detail, retry_after: 30 }))
          }
          // A text that is no position is treated as a position of an unknown epoch.
          const position = lastEventId === undefined || lastEventId === ""
            ? null
            : positionOf(lastEventId) ?? { epoch: "-", version: 0 }
          const outlet = new LiveClient(all, accountId, credential, position, now() + recheckMillis)
          ofAccount.set(accountId, open + 1)
          outlets.add(outlet)
          outlet.push(greeting(outlets.size))
          arrived.openUnsafe()
          return Effect.succeed(outlet)
        })
      yield* Effect.addFinalizer(() => Effect.sync(() => outlets.forEach((outlet) => outlet.end())))

      return Live.of({
        open,
        count: Effect.sync(() => outlets.size),
      })
    }),
  )
}
