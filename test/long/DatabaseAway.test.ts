/**
 * Two processes under load whose database is away for a minute, longer than every lease: nothing is lost, and nothing
 * is sent again, not even deliveries in flight at its loss.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { until } from "../e2e/support/Until.ts"
import { fixture } from "../e2e/support/ProgramFixture.ts"
import { unanswered } from "../support/Broker.ts"
import { relay, type TcpRelay } from "../support/TcpRelay.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { brisk, second } from "./support/Second.ts"
import { close, databaseOf, ended, traffic } from "./support/Traffic.ts"

const minuteAway = (away: (network: TcpRelay) => void) =>
  Effect.gen(function* () {
    const made = yield* TestDatabase.make
    const network = yield* relay(new URL(Redacted.value(made.url)))
    const by = (address: Redacted.Redacted) => {
      const url = new URL(Redacted.value(address))
      url.port = String(network.port)
      return Redacted.make(url.href)
    }
    const around = yield* fixture(brisk, { database: { url: by(made.url), ownerUrl: by(made.ownerUrl) } })
    const flow = yield* traffic(around)
    yield* second(around)
    for (let n = 0; n < 4; n++) yield* flow.publish(500)
    yield* until("some arrivals", Effect.sync(() => flow.target.hits.length), (n) => n > 300)
    yield* flow.publish(500)
    away(network)
    yield* flow.publish(500)
    // The outage is the thing under test.
    yield* Effect.sleep("1 minute")
    network.mend()
    yield* flow.publish(500)
    const broker = Redacted.make(around.env["NATS_URL"]!)
    yield* until("every event answered for", Effect.delay(unanswered(broker), "1 second"), (left) => left === 0, 180)
    yield* ended(flow)
    yield* close(flow).pipe(Effect.provide(databaseOf(around)))
    const arrived = flow.target.hits.map(({ attempt, id }) => `${id} ${attempt}`)
    const times = Map.groupBy(arrived, (one) => one)
    assert.deepStrictEqual([...times.values()].filter((same) => same.length > 1), [])
  }).pipe(Effect.scoped)

describe.concurrent("a database that is away for a minute under load", () => {
  it.live("loses and repeats nothing when it refuses connections", () => minuteAway((network) => network.refuse()))

  it.live("loses and repeats nothing when packets to it get no answer", () => minuteAway((network) => network.cut()))
})
