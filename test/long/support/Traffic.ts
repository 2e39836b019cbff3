/**
 * Traffic with a known outcome for each event, and its final check by the receiver's own records: acknowledged events
 * against arrivals, and both against the API.
 */
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Database } from "../../../services/platform/database/Database.ts"
import { type MailEvent, mailEvent } from "../../e2e/support/EventFeed.ts"
import { until } from "../../e2e/support/Until.ts"
import { deliveries, statuses, totals } from "../../e2e/support/ProgramWebhooks.ts"
import type { Account, ProgramFixture } from "../../e2e/support/ProgramFixture.ts"
import { type Hit, target as makeTarget } from "./Target.ts"

const numberOf = (hit: Pick<Hit, "body">): number => Number(JSON.parse(hit.body).email_id.slice("em_".length))

/** A receiver never accepts bounces and, where it is moody, refuses every third of the other events at first. */
const answer = (hit: Pick<Hit, "path" | "attempt" | "body">) => {
  if (hit.path === "/doomed") return 503
  return hit.path === "/moody" && hit.attempt === 1 && numberOf(hit) % 3 === 0 ? 503 : 204
}

const typeOf = (n: number) => n % 10 === 9 ? "email.bounced" : n % 2 === 0 ? "email.delivered" : "email.opened"

const subscriptions = [
  { path: "/steady", events: ["email.delivered", "email.opened"] },
  { path: "/moody", events: ["email.delivered"] },
  { path: "/doomed", events: ["email.bounced"] },
] as const

/** An account with three webhooks at one receiver. */
export const traffic = Effect.fnUntraced(function* (fixture: ProgramFixture) {
  const account: Account = yield* fixture.account()
  const target = yield* makeTarget(answer)
  const hooks: Array<{ readonly id: string; readonly path: string; readonly events: ReadonlyArray<string> }> = []
  for (const { events, path } of subscriptions) {
    const { json, status, text } = yield* account.api.post("/v1/webhooks/", { url: target.url(path), events })
    assert.strictEqual(status, 201, text)
    target.trust(path, json.secret)
    hooks.push({ id: json.id, path, events })
  }
  const acknowledged: Array<MailEvent> = []
  let made = 0

  const fresh = (count: number) =>
    Array.from({ length: count }, () => mailEvent(account.id, String(made), typeOf(made++)))

  /** Publishes `count` new events; acknowledged ones are added to the expected events. */
  const publish = Effect.fnUntraced(function* (count: number) {
    const events = fresh(count)
    const taken = yield* fixture.feed.events(events, 10_000)
    acknowledged.push(...taken)
    return taken
  })
  /** Publishes `count` new events, and repeats each until the broker acknowledges it. */
  const insist = Effect.fnUntraced(function* (count: number) {
    const events = fresh(count)
    for (let left = events; left.length > 0;) {
      const taken = new Set(yield* fixture.feed.events(left, 2_000))
      left = left.filter((event) => !taken.has(event))
    }
    acknowledged.push(...events)
  })
  return { account, target, hooks, acknowledged, publish, insist }
})

export type Traffic = Effect.Success<ReturnType<typeof traffic>>

const expected = ({ acknowledged }: Traffic, events: ReadonlyArray<string>) =>
  acknowledged.filter((event) => events.includes(event.event))

/** Waits until every delivery has ended: none is pending or due, and there is one for each event and subscription. */
export const ended = (flow: Traffic, seconds = 180) =>
  Effect.forEach(flow.hooks, (hook) =>
    until(
      `the end of ${hook.path}`,
      // Polled seldom: ten concurrent runs would otherwise be busy with polling.
      Effect.delay(totals(flow.account.api, hook.id), "500 millis"),
      ({ all, pending, retrying }) => all >= expected(flow, hook.events).length && pending === 0 && retrying === 0,
      seconds,
    ))

/** Delivery ids that are claimed now, in the database of a program that is dead or frozen. */
export const inFlight = Effect.gen(function* () {
  const { sql } = yield* Database
  // The last statement of a killed process may still run.
  const busy = sql<{ n: number }>`
    select count(*)::int as n from pg_stat_activity
    where datname = current_database() and state = 'active' and pid <> pg_backend_pid()`
  yield* until("the last statement's end", busy, ([row]) => row!.n === 0)
  const rows = yield* sql<{ id: string }>`select delivery_id as id from delivery_queue where claim is not null`
  return rows.map((row) => row.id)
}).pipe(Effect.orDie)

/** Waits until each of these claims was ended as interrupted. */
export const interrupted = (ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const left = sql<{ n: number }>`
      select count(*)::int as n from unnest(${[...ids]}::uuid[]) f(id)
      where not exists (select from attempts a where a.delivery_id = f.id and a.error = 'interrupted')`
    yield* until("claims ended by others", left, ([row]) => row!.n === 0)
  })

export const databaseOf = (fixture: ProgramFixture) =>
  Database.layer({
    url: Redacted.make(fixture.env["DATABASE_URL"]!),
    ownerUrl: Redacted.make(fixture.env["DATABASE_OWNER_URL"]!),
    maxConnections: 2,
  })

const emailIds = (events: ReadonlyArray<{ readonly email_id: string }>) => events.map((e) => e.email_id).sort()

/**
 * Compares everything. Only a claim that ended without an outcome, recorded as `interrupted`, may have repeated a
 * delivery within one attempt or after an acceptance; an acceptance after the deadline is recorded as a failure.
 */
export const close = Effect.fnUntraced(function* (flow: Traffic) {
  assert.deepStrictEqual(flow.target.hits.filter((hit) => !hit.signed), [])
  const { sql } = yield* Database
  for (const hook of flow.hooks) {
    const owed = expected(flow, hook.events)
    const arrived = flow.target.at(hook.path)
    const byId = Map.groupBy(arrived, (arrival) => arrival.id)
    // Nothing lost, nothing invented, one delivery for each event.
    const first = [...byId.values()].map(([arrival]) => JSON.parse(arrival!.body))
    assert.deepStrictEqual(emailIds(first), emailIds(owed), hook.path)
    for (const same of byId.values()) assert.strictEqual(new Set(same.map((a) => a.body)).size, 1)

    const failed = yield* sql<{ id: string; interrupted: boolean }>`
      select a.delivery_id as id, bool_or(a.error = 'interrupted') as interrupted from attempts a
      join deliveries d on d.id = a.delivery_id
      where d.webhook_id = ${hook.id}::uuid and a.error is not null group by 1`
    const interrupted = new Set(failed.flatMap((row) => row.interrupted ? [row.id] : []))
    const silent = new Set(failed.map((row) => row.id))
    const repeated = [...byId].filter(([id, same]) =>
      new Set(same.map((a) => a.attempt)).size < same.length && !interrupted.has(id) ||
      same.filter((a) => a.answer === 204).length > 1 && !silent.has(id)
    )
    assert.deepStrictEqual(repeated.map(([id]) => id), [], `repeats at ${hook.path}`)

    const records = yield* deliveries(flow.account.api, hook.id)
    const counted = yield* totals(flow.account.api, hook.id)
    const rows = yield* sql<{ status: string; n: number }>`
      select status, count(*)::int as n from deliveries where webhook_id = ${hook.id}::uuid group by status`
    const left = yield* sql<{ n: number }>`
      select count(*)::int as n from delivery_queue where webhook_id = ${hook.id}::uuid`
    assert.strictEqual(left[0]!.n, 0, `still queued at ${hook.path}`)
    const listed = Object.fromEntries(statuses.map((s) => [s, records.filter((r) => r.status === s).length]))
    const stored = Object.fromEntries(statuses.map((s) => [s, rows.find((r) => r.status === s)?.n ?? 0]))
    assert.deepStrictEqual(listed, stored)
    assert.deepStrictEqual(counted, { all: owed.length, ...stored } as typeof counted)
    // On a starved machine an acceptance may miss the deadline; it is a failure then, and no other failure may exist.
    const late = yield* sql<{ key: string }>`
      select a.delivery_id || ' ' || a.attempt as key from attempts a join deliveries d on d.id = a.delivery_id
      where d.webhook_id = ${hook.id}::uuid and a.error = 'timeout'`
    const tooLate = new Set(late.map(({ key }) => key))
    const yes = [...byId].filter(([id, same]) =>
      same.some((a) => a.answer === 204 && !tooLate.has(`${id} ${a.attempt}`))
    ).length
    assert.strictEqual(counted.delivered, yes, hook.path)
    assert.strictEqual(counted.dead_letter, owed.length - yes, hook.path)
  }
})
