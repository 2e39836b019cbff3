/**
 * SIGKILL of the program, of the broker and of the database, each once while events keep coming: all are accounted for.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ownBroker } from "../services/platform/messaging/OwnBroker.ts"
import { ownPostgres } from "../support/OwnPostgres.ts"
import { eventTypes, type MailEvent, mailEvent } from "./support/EventFeed.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { hook, totals } from "./support/ProgramWebhooks.ts"
import { fixture } from "./support/ProgramFixture.ts"

/** The broker acknowledges before it writes: a careful publisher repeats what it published just before a crash. */
const doubtMillis = 1_000
/**
 * A delivery in flight at a kill came at most this long before it, or after it until the killed process is long back.
 */
const inFlightMillis = 20_000

describe("a program, broker or database killed under load", () => {
  it.live("loses no accepted event, and repeats only deliveries in flight", () =>
    Effect.gen(function* () {
      const broker = yield* ownBroker
      const postgres = yield* ownPostgres
      yield* broker.start
      const { account, feed, instance, tls } = yield* fixture(
        { WEBHOOKS_TIMEOUT: "5 seconds", WEBHOOKS_RETRY_DELAYS: Array(8).fill("50 millis").join(",") },
        { database: postgres, natsUrl: broker.url },
      )
      const target = yield* receiver(tls, ({ attempt, body }) => attempt === 1 && body.includes("3@") ? 500 : 200)
      const owners = yield* Effect.all([account(), account()])
      const listening = [eventTypes, eventTypes.slice(0, 4), ["email.bounced"]]
      const hooks = yield* Effect.forEach(
        owners.flatMap((owner, n) => listening.map((events, k) => ({ owner, events, path: `/${n}/${k}` }))),
        ({ events, owner, path }) =>
          Effect.map(hook(owner.api, target, path, events), ({ id }) => ({ id, owner, events, path })),
      )

      let next = 0
      let publishing = true
      const accepted = new Map<string, { readonly event: MailEvent; readonly at: number }>()
      const unheard: Array<MailEvent> = []
      const publish = Effect.fnUntraced(function* (events: ReadonlyArray<MailEvent>) {
        const acked = new Set(yield* feed.events(events, 2_000))
        for (const event of events) {
          if (acked.has(event)) accepted.set(`${event.account_id} ${event.id}`, { event, at: Date.now() })
          else unheard.push(event)
        }
      })
      const made = (n: number) => mailEvent(owners[n % 2]!.id, String(n), eventTypes[(n >> 1) % eventTypes.length])
      const publisher = yield* Effect.gen(function* () {
        while (publishing) {
          // Publishes not far ahead of the arrivals: a slow machine would otherwise fall ever further behind.
          const few = accepted.size - target.arrivals.length < 1_500
          yield* publish([...unheard.splice(0), ...Array.from({ length: few ? 20 : 0 }, () => made(next++))])
          yield* Effect.sleep("20 millis")
        }
        while (unheard.length > 0) yield* publish(unheard.splice(0))
      }).pipe(Effect.forkChild)

      const more = Effect.suspend(() => {
        const enough = target.arrivals.length + 400
        return until("arrivals", Effect.sync(() => target.arrivals.length), (n) => n >= enough)
      })
      const kills: Array<{ readonly at: number; readonly back: number }> = []
      const killed = Effect.fnUntraced(function* (kill: Effect.Effect<unknown>, start: Effect.Effect<unknown>) {
        const at = Date.now()
        yield* kill
        yield* start
        kills.push({ at, back: Date.now() })
      })

      yield* more
      yield* killed(instance.end("SIGKILL"), instance.start())
      yield* more
      const restarted = Effect.suspend(() => {
        const doubtful = [...accepted.values()].filter(({ at }) => at > Date.now() - doubtMillis)
        return Effect.andThen(broker.start, Effect.sync(() => unheard.push(...doubtful.map(({ event }) => event))))
      })
      yield* killed(broker.kill, restarted)
      yield* more
      yield* killed(postgres.kill, postgres.start)
      yield* more
      publishing = false
      yield* Fiber.join(publisher)
      assert.isAbove(accepted.size, 400)

      const events = [...accepted.values()].map(({ event }) => event)
      for (const { events: types, id, owner, path } of hooks) {
        const expected = events.filter((event) => event.account_id === owner.id && types.includes(event.event))
        const ledger = yield* until(
          `the ledger of ${path}`,
          totals(owner.api, id),
          ({ all, pending, retrying }) => all === expected.length && pending + retrying === 0,
        )
        assert.deepInclude(ledger, { all: expected.length, delivered: expected.length, dead_letter: 0 })
        const arrived = new Set(target.at(path).map(({ body }) => JSON.parse(body).email_id))
        assert.deepStrictEqual(expected.filter(({ email_id }) => !arrived.has(email_id)), [], path)
      }

      assert.deepStrictEqual(target.arrivals.flatMap(({ fault }) => fault ?? []), [])
      const taken = new Map<string, number>()
      for (const { answer, at, id, path } of target.arrivals) {
        const before = taken.get(`${path} ${id}`)
        if (before !== undefined) {
          const near = kills.some((kill) =>
            kill.at < at && before > kill.at - inFlightMillis && before < kill.back + inFlightMillis
          )
          assert.isTrue(near, `${id} came again ${at - before} ms after it was taken`)
        } else if (answer === 200) taken.set(`${path} ${id}`, at)
      }
      const repeats = target.arrivals.filter(({ answer }) => answer === 200).length - taken.size
      assert.isBelow(repeats, taken.size / 2)
    }).pipe(Effect.scoped), 600_000)
})
