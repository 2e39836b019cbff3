/**
 * The API shows the same attempts wherever the first one is kept: in the delivery's own row, or as rows of `attempts`,
 * as earlier versions wrote all of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { type Arrival, receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { deliveries, type Hook, hook, totals } from "./support/ProgramWebhooks.ts"
import { fixture } from "./support/ProgramFixture.ts"

const manners = {
  "/well": () => 200,
  "/second": (attempt: number) => attempt === 1 ? 500 : 200,
  "/never": () => 503,
} as const

/** The expected attempts, from the arrivals: each first attempt begins a new cycle. */
const heard = (arrivals: ReadonlyArray<Arrival>) => {
  let cycle = 0
  return arrivals.map(({ answer, attempt }) => [attempt === 1 ? ++cycle : cycle, attempt, answer])
}

const moveToRows = Effect.gen(function* () {
  const { owner } = yield* Database
  const moved = yield* owner`
    with first as (
      select id, first_started_at, first_duration_ms, first_response_status from deliveries
      where first_started_at is not null
    ), emptied as (
      update deliveries d set first_started_at = null, first_duration_ms = null, first_response_status = null
      from first where d.id = first.id
    )
    insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status)
    select id, 1, 1, 0, first_started_at, first_duration_ms, first_response_status from first returning delivery_id as id`
  return moved.length
})

describe("attempts over HTTP", () => {
  it.live("are the same wherever the first one is kept, and what the receiver saw", () =>
    Effect.gen(function* () {
      const around = yield* fixture({ WEBHOOKS_RETRY_DELAYS: Array(8).fill("30 millis").join(",") })
      const { api, id } = yield* around.account()
      const target = yield* receiver(
        around.tls,
        ({ attempt, path }) => manners[path as keyof typeof manners](attempt),
      )
      const events = ["email.sent", "email.delivered", "email.bounced"] as const
      const paths = ["/well", "/second", "/never"] as const
      const hooks: Array<Hook> = []
      for (const [i, path] of paths.entries()) hooks.push(yield* hook(api, target, path, [events[i]!]))
      const ended = (n: number) =>
        Effect.forEach(hooks, (one) =>
          until(`what ends at ${one.path}`, totals(api, one.id), ({ all, dead_letter, delivered }) =>
            all === n && dead_letter + delivered === n))
      const answers = Effect.forEach(hooks, (one) =>
        Effect.flatMap(deliveries(api, one.id), (found) =>
          Effect.forEach(found, (record) =>
            Effect.map(api.get(`/v1/webhook-deliveries/${record.id}`), ({ json }) =>
              json))))
      const same = Effect.gen(function* () {
        const told = yield* answers
        for (const [i, records] of told.entries()) {
          for (const record of records) {
            const arrivals = target.at(paths[i]!).filter((arrival) =>
              arrival.id === record.id
            )
            assert.deepStrictEqual(
              record.attempts.map((a: typeof record) => [a.cycle, a.attempt, a.response_status]),
              heard(arrivals),
            )
          }
        }
        const moved = yield* moveToRows
        assert.deepStrictEqual(yield* answers, told)
        return moved
      })

      yield* Effect.gen(function* () {
        for (const [i, event] of events.entries()) {
          yield* around.feed.events(["1", "2", "3"].map((n) =>
            mailEvent(id, `${i}-${n}`, event)
          ))
        }
        yield* ended(3)
        assert.strictEqual(yield* same, 3)
        // These go on from the old form, the next ones from the new one.
        yield* around.feed.events(events.map((event, i) =>
          mailEvent(id, `${i}-4`, event)
        ))
        yield* ended(4)
        // Ten replays a minute.
        for (const [i, one] of hooks.slice(0, 2).entries()) {
          const before = target.at(one.path).length
          for (const { id } of yield* deliveries(api, one.id)) {
            assert.strictEqual((yield* api.post(`/v1/webhook-deliveries/${id}/replay`)).status, 202)
          }
          const arrived = Effect.sync(() => target.at(one.path).length)
          yield* until("the replays", arrived, (n) => n === before + 4 * (i + 1))
          yield* ended(4)
        }
        assert.strictEqual(yield* same, 1)
      }).pipe(Effect.provide(Database.layer({
        url: Redacted.make(around.env["DATABASE_URL"]!),
        ownerUrl: Redacted.make(around.env["DATABASE_OWNER_URL"]!),
        maxConnections: 2,
      })))
    }).pipe(Effect.scoped), 240_000)

  it.live.each(
    [
      ["the first one only where the installation keeps it", "false", null],
      ["each where the installation keeps it", "true", "text/plain"],
    ] as const,
  )(
    "of a success have the answer's header fields: %s",
    ([_name, WEBHOOKS_SUCCESS_HEADERS, first]) =>
      Effect.gen(function* () {
        const around = yield* fixture({
          WEBHOOKS_RETRY_DELAYS: Array(8).fill("30 millis").join(","),
          WEBHOOKS_SUCCESS_HEADERS,
        })
        const { api, id } = yield* around.account()
        const target = yield* receiver(
          around.tls,
          ({ attempt, path }) => manners[path as keyof typeof manners](attempt),
        )
        const types = Effect.fnUntraced(
          function* (path: keyof typeof manners, event: "email.sent" | "email.delivered") {
            const one = yield* hook(api, target, path, [event])
            yield* around.feed.events([mailEvent(id, path.slice(1), event)])
            yield* until(`what ends at ${path}`, totals(api, one.id), ({ delivered }) => delivered === 1)
            const [record] = yield* deliveries(api, one.id)
            const { json } = yield* api.get(`/v1/webhook-deliveries/${record!.id}`)
            return json.attempts.map((a: typeof json) => a.response_headers?.["content-type"] ?? null)
          },
        )
        assert.deepStrictEqual(yield* types("/well", "email.sent"), [first])
        assert.deepStrictEqual(yield* types("/second", "email.delivered"), ["text/plain", "text/plain"])
      }).pipe(Effect.scoped),
    240_000,
  )
})
