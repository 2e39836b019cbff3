/**
 * Ten thousand events for twenty webhooks of five accounts, some with failing receivers: every delivery is accounted
 * for.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isDeepStrictEqual } from "node:util"
import { eventTypes, type MailEvent, mailEvent } from "./support/EventFeed.ts"
import { type Answer, type Arrival, receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { hook, totals } from "./support/ProgramWebhooks.ts"
import { fixture } from "./support/ProgramFixture.ts"

const accounts = 5
const eventsEach = 2_000

type Manner = "well" | "flaky" | "slow" | "dead"

/** Four webhooks for each account: their events, and how their receiver behaves. */
const plans = (n: number): ReadonlyArray<{ readonly manner: Manner; readonly events: ReadonlyArray<string> }> => [
  { manner: "well", events: eventTypes.filter((_, i) => (i + n) % 2 === 0) },
  { manner: "flaky", events: ["email.delivered", "email.opened"] },
  n === 0 ? { manner: "dead", events: ["email.complained"] } : { manner: "well", events: eventTypes.slice(n, n + 2) },
  { manner: "slow", events: ["email.sent"] },
]

const numberOf = (body: string) => Number(/em_(\d+)/.exec(body)![1])

/** Provoked failures: every tenth event once with a 500, a few once with silence. */
const behave = ({ attempt, body, path }: Omit<Arrival, "answer">): Answer => {
  const manner = path.split("/")[1]
  if (manner === "dead") return 500
  if (manner === "flaky" && attempt === 1 && numberOf(body) % 10 === 1) return 500
  return manner === "slow" && attempt === 1 && numberOf(body) % 400 === 0 ? "silence" : 200
}

const payloadOf = ({ email_id, event, metadata, recipient, timestamp }: MailEvent) => ({
  event,
  email_id,
  recipient,
  timestamp,
  metadata,
})

const byId = (arrivals: ReadonlyArray<Arrival>) => {
  const found = new Map<string, Array<Arrival>>()
  for (const arrival of arrivals) found.set(arrival.id, [...found.get(arrival.id) ?? [], arrival])
  return found
}

describe("a realistic load", () => {
  it.live(
    "arrives signed, each delivery once or as often as it was refused, and is accounted for",
    () =>
      Effect.gen(function* () {
        const around = yield* fixture({
          WEBHOOKS_RETRY_DELAYS: Array(8).fill("20 millis").join(","),
          WEBHOOKS_TIMEOUT: "10 seconds",
        })
        const target = yield* receiver(around.tls, behave)
        const owners = yield* Effect.all(Array.from({ length: accounts }, () => around.account()), { concurrency: 5 })
        const hooks = yield* Effect.forEach(
          owners.flatMap((owner, n) =>
            plans(n).map((plan, k) => ({ ...plan, owner, path: `/${plan.manner}/${n}/${k}` }))
          ),
          (plan) =>
            Effect.map(hook(plan.owner.api, target, plan.path, plan.events), ({ id }) => ({
              ...plan,
              id,
              expected: plan.events.length * eventsEach / eventTypes.length,
            })),
        )
        assert.strictEqual(hooks.length, 20)

        const events = owners.flatMap(({ id }) =>
          Array.from({ length: eventsEach }, (_, i) => mailEvent(id, String(i), eventTypes[i % eventTypes.length]))
        )
        const published = new Map(events.map((event) => [`${event.account_id} ${event.email_id}`, payloadOf(event)]))
        assert.strictEqual(published.size, 10_000)
        for (let i = 0; i < events.length; i += 500) {
          assert.lengthOf(yield* around.feed.events(events.slice(i, i + 500)), 500)
        }

        const expected = hooks.reduce((sum, { expected }) => sum + expected, 0)
        yield* until(
          "the first attempts",
          Effect.sync(() => target.arrivals.filter(({ attempt }) => attempt === 1).length),
          (n) => n >= expected,
          180,
        )
        for (const { expected, id, manner, owner, path } of hooks) {
          const ledger = yield* until(
            `the ledger of ${path}`,
            totals(owner.api, id),
            ({ pending, retrying }) => pending + retrying === 0,
          )
          const dead = manner === "dead" ? expected : 0
          const rest = { pending: 0, retrying: 0, cancelled: 0 }
          assert.deepStrictEqual(
            ledger,
            { all: expected, delivered: expected - dead, dead_letter: dead, ...rest },
            path,
          )
        }

        assert.deepStrictEqual(target.arrivals.flatMap(({ fault }) => fault ?? []), [])
        for (const { expected, manner, owner, path } of hooks) {
          const deliveries = byId(target.at(path))
          assert.strictEqual(deliveries.size, expected, path)
          const emails = new Set<string>()
          for (const attempts of deliveries.values()) {
            const [first] = attempts
            const payload = JSON.parse(first!.body)
            emails.add(payload.email_id)
            assert.isTrue(isDeepStrictEqual(payload, published.get(`${owner.id} ${payload.email_id}`)), first!.body)
            assert.isTrue(attempts.every(({ body }) => body === first!.body), "the same bytes")
            assert.deepStrictEqual(attempts.map(({ attempt }) => attempt), attempts.map((_, i) => i + 1))
            // Every repeat was provoked, and none follows an acceptance, except one that came too late.
            const again = attempts.slice(0, -1).filter(({ answer }) => answer === 200)
            if (again.length > 0) {
              const { json } = yield* owner.api.get(`/v1/webhook-deliveries/${first!.id}`)
              const errors = new Map(json.attempts.map((a: typeof json) => [a.attempt, a.error]))
              assert.deepStrictEqual(again.map(({ attempt }) => errors.get(attempt)), again.map(() => "timeout"), path)
            }
            assert.strictEqual(attempts.length === 8, manner === "dead")
          }
          assert.strictEqual(emails.size, expected)
        }
        const provoked = target.arrivals.filter(({ answer }) => answer === "silence").length
        assert.isAbove(provoked, 0)
      }).pipe(Effect.scoped),
    600_000,
  )
})
