/**
 * The cost of waiting: the program's memory while many deliveries are pending at silent receivers, and the scan for due
 * retries beside many that are not due.
 */
import { Clock, Effect, Schedule } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { announceDue } from "../../services/webhooks/Deliveries/DeliveryClaims.ts"
import * as Child from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"
import { rssMegabytes } from "../harness/Cpu.ts"
import { fill, type Hook, hooksOn, publish } from "../harness/Fixture.ts"
import * as Product from "../harness/Product.ts"
import { broker } from "../harness/Servers.ts"

const failed = (cause: unknown) => new Child.BenchError({ message: String(cause) })

const pending = (run: Run, count: number) =>
  Effect.gen(function* () {
    const { servers } = run
    const hole = yield* Child.start({ module: "bench/programs/receivers/BlackHole.ts" })
    const { ports } = yield* hole.event<{ readonly ports: ReadonlyArray<number> }>("ready")
    const hooks = hooksOn(ports)
    yield* servers.template("pending", fill(hooks, Product.keysFileOf(servers)))
    const fixture = yield* servers.fixture("pending")
    const program = yield* Product.start(servers, fixture)
    yield* Product.ready(program)
    const idle = rssMegabytes(program.pid) ?? 0
    yield* run.tell(`${count} events to receivers that never answer`)
    yield* publish(yield* broker(fixture.natsUrl), hooks, 0, count)
    const waiting = Effect.map(
      fixture.sql<{ n: number }>`select count(*)::int as n from delivery_queue`,
      ([row]) => row!.n,
    )
    let most = 0
    const look = Effect.sync(() => most = Math.max(most, rssMegabytes(program.pid) ?? 0))
    yield* Effect.tap(waiting, () => look).pipe(
      Effect.flatMap((n) => n === count ? Effect.void : Effect.fail(`${n} of ${count} pending`)),
      Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 600 }),
    )
    yield* look.pipe(Effect.repeat({ schedule: Schedule.spaced("250 millis"), times: run.quick ? 20 : 80 }))
    return { idle, most, after: rssMegabytes(program.pid) ?? 0 }
  }).pipe(Effect.scoped, Effect.mapError(failed))

const retries = (hooks: ReadonlyArray<Hook>, count: number) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    const due = new Date(Date.now() + 3_600_000)
    for (const { accountId, id } of hooks) {
      yield* owner`insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
        select gen_random_uuid(), ${id}::uuid, ${accountId}::uuid, gen_random_uuid(), 1, 2,
          ${due}::timestamptz + n * interval '1 millisecond'
        from generate_series(1, ${count / hooks.length}::int) n`
      yield* owner`update webhook_lanes set next_due_at = ${due} where webhook_id = ${id}::uuid`
    }
    yield* owner`vacuum analyze`
  })

/** Milliseconds of a scan where no webhook is marked due, and where all of them are looked at and have nothing due. */
const scan = (run: Run, count: number) =>
  Effect.gen(function* () {
    const { servers } = run
    const hooks = hooksOn([9, 9, 9, 9])
    const template = `retries_${count}`
    yield* run.tell(`${count} retries that are not due`)
    yield* servers.template(
      template,
      Effect.andThen(fill(hooks, Product.keysFileOf(servers)), retries(hooks, count)),
    )
    const { sql } = yield* servers.fixture(template)
    const all = hooks.map((hook) => hook.id)
    const timed = Effect.fnUntraced(function* (looked: ReadonlyArray<string>) {
      const options = { queues: 256, depth: 100, again: 30_000 }
      const times: Array<number> = []
      for (let n = 0; n < 60; n++) {
        yield* sql`update webhook_lanes set next_due_at = ${new Date(0)} where webhook_id = any(${[...looked]}::uuid[])`
        const from = yield* Clock.currentTimeNanos
        yield* announceDue(sql, options)
        times.push(Number((yield* Clock.currentTimeNanos) - from) / 1e6)
      }
      return median(times.slice(10))
    })
    return { idle: yield* timed([]), looked: yield* timed(all) }
  }).pipe(Effect.scoped, Effect.mapError(failed))

export const memory: Claim = {
  name: "memory",
  title: "What waiting costs",
  measure: (run) =>
    Effect.gen(function* () {
      const many = run.quick ? 20_000 : 100_000
      const far = run.quick ? 100_000 : 1_000_000
      const few = yield* scan(run, 1_000)
      const full = yield* scan(run, far)
      const rss = yield* pending(run, many)
      return {
        tables: [
          {
            title: "Resident memory of the program, MB",
            columns: ["", "idle", "most", "20 s later"],
            rows: [[`${many} deliveries pending, receivers never answer`, rss.idle, rss.most, rss.after]],
          },
          {
            title: "A scan for due retries, ms",
            columns: ["retries that are not due", "no webhook due", "20 webhooks looked at"],
            rows: [[1_000, rounded(few.idle, 2), rounded(few.looked, 2)], [
              far,
              rounded(full.idle, 2),
              rounded(full.looked, 2),
            ]],
          },
        ],
        notes: ["Scans are medians of 50."],
        raw: { rss, few, full },
      }
    }),
}
