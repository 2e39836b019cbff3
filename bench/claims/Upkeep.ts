/**
 * Long work at size: a bulk replay and the cancelling of a deleted webhook, through the API, with counts that are
 * compared while it runs; a partition dropped during a read; and tables under load for UPKEEP_MINUTES.
 */
import { Clock, Effect, Schedule } from "effect"
import process from "node:process"
import { hashOf } from "../../services/authentication/Principals.ts"
import { newKey } from "../../services/accounts/KeySecret.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { Partitions } from "../../services/webhooks/Partitions.ts"
import * as Child from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"
import { fill, type Hook, hooksOn, publish } from "../harness/Fixture.ts"
import * as Product from "../harness/Product.ts"
import { broker, type Fixture } from "../harness/Servers.ts"
import { type Size, sizesOf } from "../harness/Sizes.ts"
import { deliveries } from "./Reads.ts"

const tables = ["deliveries", "attempts", "delivery_queue", "delivery_counts", "webhook_lanes"]
const template = "upkeep"
const perSecond = 300
const retention = { deliveredDays: 30, deadLetterDays: 90, intakeMemoryDays: 400 }

const failed = (cause: unknown) => new Child.BenchError({ message: `upkeep: ${String(cause)}` })

/** Deliveries that arrived at their first attempt, and a key of their account. */
const past = (hook: Hook, rows: number, key: string) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    yield* deliveries(hook, rows)
    yield* owner`insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status)
      select id, 1, 1, 1, created_at, 5, 200 from deliveries`
    yield* owner`insert into api_keys (id, account_id, name, hash, key_prefix, permissions, is_active, created_at)
      values (gen_random_uuid(), ${hook.accountId}::uuid, 'Bench', ${hashOf(key)}, ${
      key.slice(7, 15)
    }, array['send'], true,
        ${new Date()})`
    yield* owner`vacuum analyze`
  })

interface Look {
  /** The difference between the counts and the rows, which must always be none. */
  readonly wrong: number
  readonly state: string | null
  /** Deliveries that the newest job has done. */
  readonly done: number
}

/** The counts beside the counted deliveries, and the newest job, in one snapshot. */
const look = ({ sql }: Fixture) =>
  Effect.map(
    sql<Look>`
      select (select state from jobs order by created_at desc limit 1) as state,
        coalesce((select done::int from jobs order by created_at desc limit 1), 0) as done, (
        select count(*)::int from (
          select webhook_id, status, sum(n) as n from delivery_counts group by 1, 2 having sum(n) <> 0
        ) c full join (
          select webhook_id, status, count(*) as n from deliveries group by 1, 2
        ) d using (webhook_id, status) where c.n is distinct from d.n
      ) as wrong`,
    ([row]) => row!,
  )

/** Calls the API, and watches the job that it began to its end. */
const job = Effect.fnUntraced(function* (
  { tell }: Run,
  fixture: Fixture,
  request: { readonly url: string; readonly method: string; readonly key: string; readonly body?: unknown },
  what: string,
  rows: number,
) {
  const { body, key, method, url } = request
  const from = performance.now()
  const response = yield* Effect.promise(() =>
    fetch(url, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  )
  if (!response.ok) return yield* failed(`${what}: ${response.status} ${yield* Effect.promise(() => response.text())}`)
  let looks = 0
  let seconds = 0
  yield* Effect.gen(function* () {
    const { done, state, wrong } = yield* look(fixture)
    looks++
    // A deleted webhook's job goes on looking for a while after the last delivery was cancelled.
    if (done >= rows && seconds === 0) seconds = (performance.now() - from) / 1_000
    yield* tell(`${what}: ${done} of ${rows}`)
    if (wrong > 0) return yield* failed(`${what}: ${wrong} counts were wrong at look ${looks}`)
    if (state === "failed") return yield* failed(`${what}: the job failed`)
    return state === "effective"
  }).pipe(Effect.repeat({ until: (over) => over, schedule: Schedule.spaced("500 millis") }))
  return { looks, seconds }
})

const jobs = (run: Run, hook: Hook, key: string, rows: number) =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture(template)
    const program = yield* Product.start(run.servers, fixture, { ROLES: "api,actors,timers,relay" }, run.profile)
    const url = `${yield* Product.ready(program)}/v1/webhooks/${hook.id}`
    const before = yield* sizesOf(fixture.sql, tables)
    // Paused, so that replayed deliveries wait.
    yield* fixture.sql`update webhooks set is_active = false, version = version + 1 where id = ${hook.id}::uuid`
    yield* fixture.sql`update webhook_lanes set paused = true where webhook_id = ${hook.id}::uuid`
    const body = { since: new Date(Date.now() - 30 * 3_600_000).toISOString(), status: "delivered" }
    const replayed = yield* job(run, fixture, { url: `${url}/replay`, method: "POST", key, body }, "replay", rows)
    const between = yield* sizesOf(fixture.sql, tables)
    const cancelled = yield* job(run, fixture, { url, method: "DELETE", key }, "cancelling", rows)
    const [left] = yield* fixture.sql<{ n: number }>`select count(*)::int as n from delivery_queue`
    if (left!.n > 0) return yield* failed(`${left!.n} of ${rows} are left in the queue`)
    return { replayed, cancelled, before, between, after: yield* sizesOf(fixture.sql, tables) }
  }).pipe(Effect.scoped, Effect.mapError(failed))

/**
 * Drops a day of `rows` deliveries, every `of`th of which still waits; measures the drop, and the delay of a reader.
 */
const dropped = (run: Run, hook: Hook, of: number) =>
  Effect.gen(function* () {
    const { owner, reads } = yield* Database
    yield* owner`insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
      select id, webhook_id, account_id, event_id, 1, 2, created_at
      from (select *, row_number() over () as n from deliveries) d where n % ${of}::int = 0`
    yield* owner`vacuum analyze delivery_queue`
    yield* run.tell("dropping a day")
    const clock = yield* Clock.Clock
    const later: Clock.Clock = Object.assign(Object.create(clock), {
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + 40 * 86_400_000,
      currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + 40 * 86_400_000),
    })
    let longest = 0
    const reader = Effect.gen(function* () {
      const from = performance.now()
      yield* Effect.ignore(
        reads`select id from deliveries where webhook_id = ${hook.id}::uuid order by id desc limit 1`,
      )
      longest = Math.max(longest, performance.now() - from)
      yield* Effect.sleep("10 millis")
    })
    const from = performance.now()
    yield* Effect.raceFirst(
      Effect.provideService(Effect.flatMap(Partitions, ({ upkeep }) => upkeep), Clock.Clock, later),
      Effect.forever(reader),
    )
    const [kept] = yield* owner<{ n: number }>`select count(*)::int as n from deliveries`
    return { seconds: (performance.now() - from) / 1000, longest, kept: kept!.n }
  }).pipe(Effect.provide(Partitions.layer(retention)))

const retained = (run: Run, hook: Hook, of: number) =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture(template)
    return yield* dropped(run, hook, of).pipe(Effect.provide(Product.databaseOf(fixture)))
  }).pipe(Effect.scoped, Effect.mapError(failed))

/** Sizes every tenth of the time while events come in, a tenth of which is refused once. */
const loaded = (run: Run, seconds: number) =>
  Effect.gen(function* () {
    const { servers } = run
    const moody = yield* Child.start({ module: "bench/programs/receivers/FlakyReceivers.ts" })
    const { ports } = yield* moody.event<{ readonly ports: ReadonlyArray<number> }>("ready")
    const hooks = hooksOn(ports)
    yield* servers.template("load", fill(hooks, Product.keysFileOf(servers)))
    const fixture = yield* servers.fixture("load")
    const delays = ["2 seconds", ...Array(7).fill("1 minute")].join(",")
    yield* Product.ready(yield* Product.start(servers, fixture, { WEBHOOKS_RETRY_DELAYS: delays }))
    const nc = yield* broker(fixture.natsUrl)
    const seen: Array<{ readonly second: number; readonly sizes: ReadonlyMap<string, Size> }> = []
    let sent = 0
    const from = performance.now()
    for (let second = 1; second <= seconds; second++) {
      yield* publish(nc, hooks, sent, sent += perSecond)
      yield* Effect.sleep(Math.max(0, from + second * 1_000 - performance.now()))
      if (second % Math.ceil(seconds / 10) !== 0 && second !== seconds) continue
      seen.push({ second, sizes: yield* sizesOf(fixture.sql, tables) })
      yield* run.tell(`load: ${second} of ${seconds} s`)
    }
    return { sent, seen }
  }).pipe(Effect.scoped, Effect.mapError(failed))

const shown = (size: Size | undefined): ReadonlyArray<string | number> =>
  size === undefined ? ["", "", ""] : [rounded(size.table, 1), rounded(size.indexes, 1), Math.round(size.dead)]

export const upkeep: Claim = {
  name: "upkeep",
  title: "Long work at size, and tables under load",
  measure: (run) =>
    Effect.gen(function* () {
      const rows = run.quick ? 50_000 : 1_000_000
      const minutes = Math.min(60, Number(process.env["UPKEEP_MINUTES"] ?? (run.quick ? 0.5 : 3)))
      const hooks = hooksOn([9]).slice(0, 1)
      const [hook] = hooks
      const { key } = yield* newKey
      yield* run.tell(`writing ${rows} deliveries`)
      yield* run.servers.template(
        template,
        Effect.andThen(fill(hooks, Product.keysFileOf(run.servers)), past(hook!, rows, key)),
      )
      const done = yield* jobs(run, hook!, key, rows)
      const drops = [{ of: 1_000_000_000, kept: "none" }, { of: 10, kept: "a tenth" }]
      const days = yield* Effect.forEach(drops, ({ of }) => retained(run, hook!, of))
      const load = yield* loaded(run, Math.max(20, Math.round(minutes * 60)))
      const speed = (
        { looks, seconds }: typeof done.replayed,
      ) => [rounded(seconds, 1), Math.round(rows / seconds), looks]
      const half = load.seen.slice(load.seen.length >> 1)
      return {
        tables: [
          {
            title: `A webhook with ${rows} deliveries`,
            columns: ["", "s", "rows/s", "looks, all exact"],
            rows: [["replayed", ...speed(done.replayed)], ["cancelled, when it is deleted", ...speed(done.cancelled)]],
          },
          {
            title: "Its tables: MB, MB of indexes, dead rows",
            columns: ["", "before", "", "", "replayed", "", "", "cancelled", "", ""],
            rows: tables.map((name) => [
              name,
              ...[done.before, done.between, done.after].flatMap((sizes) => shown(sizes.get(name))),
            ]),
          },
          {
            title: `A day of ${rows} deliveries and their attempts is dropped`,
            columns: ["still waiting", "s", "a reader waited at most, ms", "carried over"],
            rows: days.map(({ kept, longest, seconds }, n) => [
              drops[n]!.kept,
              rounded(seconds, 2),
              Math.round(longest),
              kept,
            ]),
          },
          {
            title: `Under ${perSecond} events a second, MB with indexes`,
            columns: ["s", ...tables.slice(2)],
            rows: load.seen.map(({ second, sizes }) => [
              second,
              ...tables.slice(2).map((name) =>
                rounded((sizes.get(name)?.table ?? 0) + (sizes.get(name)?.indexes ?? 0), 2)
              ),
            ]),
          },
        ],
        notes: [
          "A look compares every count with the deliveries that are there, in one snapshot, while the job works.",
          `A tenth of the load's deliveries is refused once and due again 2 s later; ${load.sent} events in all.`,
          `delivery_queue in the load's second half: median ${
            rounded(median(half.map(({ sizes }) => sizes.get("delivery_queue")?.table ?? 0)), 2)
          } MB, without its indexes.`,
        ],
        raw: { done: { replayed: done.replayed, cancelled: done.cancelled }, days, load: load.seen.length },
      }
    }),
}
