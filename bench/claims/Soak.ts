/**
 * Endurance: the program on Deno and on Node 24 side by side, each with a database, a broker account and receivers of
 * its own, first under a steady load and then at rest. `SOAK_MINUTES` (30) and `SOAK_REST_MINUTES` (10) set the
 * durations, `SOAK_RATE` (80) the events a second; a transfer a second becomes due meanwhile.
 */
import { Effect, type Scope } from "effect"
import process from "node:process"
import * as Child from "../harness/Child.ts"
import type { BenchError } from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { quantile, rounded } from "../harness/Figures.ts"
import { fill, type Hook, hooksOn } from "../harness/Fixture.ts"
import { node24 } from "../harness/Node24.ts"
import * as Product from "../harness/Product.ts"
import type { Fixture } from "../harness/Servers.ts"
import * as TransferFixture from "../harness/TransferSeed.ts"

const numberOf = (name: string, otherwise: number) => Number(process.env[name] ?? otherwise)

const template = "soak"
/** A look forces a collection, so looks are few: growth still shows, and the cost of collections is not hidden. */
const lookMinutes = 5

interface Look {
  readonly minute: number
  /** Megabytes: live after a collection, and resident before it. */
  readonly heap: number
  readonly rss: number
  /** Milliseconds: the longest standstill since the last look. */
  readonly pause: number
}

interface Soaked {
  readonly looks: ReadonlyArray<Look>
  readonly load: { readonly pause: number; readonly p50: number; readonly p99: number; readonly most: number }
  readonly rest: { readonly pause: number }
  readonly timers: { readonly fired: number; readonly latestSeconds: number }
  readonly arrived: number
}

const look = (program: Child.Child, minute: number) =>
  Effect.gen(function* () {
    process.kill(program.pid, "SIGUSR2")
    const { heap, pause, rss } = yield* program.event<{ heap: number; rss: number; pause: number }>("probe")
    return { minute, heap: rounded(heap / 1e6, 1), rss: Math.round(rss / 1e6), pause: Math.round(pause) } satisfies Look
  })

/** How much later than the first transfer another one is due. */
const afterFrom = "substring(domain_name from 'd([0-9]+)')::int * interval '1 second'"

/** Accepted transfers whose safety windows end one after the other, a second apart. */
const transfers = (sql: Fixture["sql"], count: number, from: Date) =>
  Effect.gen(function* () {
    yield* TransferFixture.due(sql, "accepted", count, from)
    yield* sql`update transfers set cooloff_until = ${from}::timestamptz + ${sql.literal(afterFrom)}`
    yield* sql`update timers set due_at = t.cooloff_until, not_before = t.cooloff_until
      from transfers t where t.id::text = timers.aggregate_id`
    yield* sql`analyze`
  })

const firing = (sql: Fixture["sql"], from: Date) =>
  Effect.map(
    sql<{ fired: number; latest: string | null }>`select count(*)::int as fired,
      max(extract(epoch from completed_at - (${from}::timestamptz + ${
      sql.literal(afterFrom)
    }))) as latest from transfers where status = 'completed'`,
    ([row]) => ({ fired: row!.fired, latestSeconds: rounded(Number(row!.latest), 2) }),
  )

interface Setting {
  readonly run: Run
  readonly name: string
  readonly command: ReadonlyArray<string>
  readonly metronome: Child.Child
  readonly hooks: ReadonlyArray<Hook>
  readonly minutes: number
  readonly rest: number
  readonly rate: number
}

const soak = ({ command, hooks, metronome, minutes, name, rate, rest, run }: Setting) =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture(template)
    const due = new Date(Date.now() + 10_000)
    yield* transfers(fixture.sql, minutes * 60, due)
    const program = yield* Child.start({
      module: "bench/programs/measured/ProbedProgram.ts",
      env: Product.environment(run.servers, fixture),
      command,
    })
    yield* Product.ready(program)
    const looks: Array<Look> = []
    const latencies: Array<number> = []
    let from = 0
    for (let minute = 0; minute < minutes; minute++) {
      if (minute % lookMinutes === 1 || minutes < lookMinutes) looks.push(yield* look(program, minute))
      const order = { natsUrl: fixture.natsUrl, hooks, from, count: rate * 60, rate }
      yield* metronome.tell(JSON.stringify(order))
      from += order.count
      latencies.push(...(yield* metronome.event<{ latencies: ReadonlyArray<number> }>("played", 300)).latencies)
      yield* run.tell(`${name}: ${minute + 1} of ${minutes} minutes`)
    }
    looks.push(yield* look(program, minutes))
    const loaded = looks.length
    for (let minute = 0; minute < rest; minute += lookMinutes) {
      const pause = Math.min(lookMinutes, rest - minute)
      yield* Effect.sleep(`${pause} minutes`)
      looks.push(yield* look(program, minutes + minute + pause))
    }
    const sorted = latencies.sort((a, b) => a - b)
    const worst = (of: ReadonlyArray<Look>) => Math.max(...of.map(({ pause }) => pause))
    return {
      looks,
      // The cost of starting falls before the first look.
      load: {
        pause: worst(looks.slice(1, loaded)),
        p50: quantile(sorted, 0.5),
        p99: quantile(sorted, 0.99),
        most: quantile(sorted, 1),
      },
      rest: { pause: worst(looks.slice(loaded)) },
      timers: yield* firing(fixture.sql, due),
      arrived: latencies.length,
    } satisfies Soaked
  }).pipe(Effect.scoped, Effect.mapError((cause) => new Child.BenchError({ message: `${name}: ${String(cause)}` })))

const collecting = ["run", "-A", "--node-modules-dir=manual", "--no-lock", "--v8-flags=--expose-gc"]

const runtimes: Effect.Effect<Readonly<Record<string, ReadonlyArray<string>>>, BenchError> = Effect.map(
  node24,
  (node) => ({ "Deno": [process.execPath, ...collecting], "Node 24": [...node, "--expose-gc"] }),
)

const metronomes = (names: ReadonlyArray<string>): Effect.Effect<
  ReadonlyArray<{ readonly metronome: Child.Child; readonly hooks: ReadonlyArray<Hook> }>,
  BenchError,
  Scope.Scope
> =>
  Effect.forEach(names, () =>
    Effect.gen(function* () {
      const metronome = yield* Child.start({ module: "bench/programs/load/SteadyLoad.ts" })
      const { ports } = yield* metronome.event<{ readonly ports: ReadonlyArray<number> }>("ready")
      return { metronome, hooks: hooksOn(ports) }
    }))

export const soaking: Claim = {
  name: "soak",
  title: "Staying up: memory, pauses and timers",
  once: true,
  measure: (run) =>
    Effect.gen(function* () {
      const minutes = run.quick ? 2 : numberOf("SOAK_MINUTES", 30)
      const rest = run.quick ? 1 : numberOf("SOAK_REST_MINUTES", 10)
      const rate = numberOf("SOAK_RATE", 80)
      const commands = yield* runtimes
      const names = Object.keys(commands)
      const players = yield* metronomes(names)
      const hooks = players.flatMap((player) => player.hooks)
      yield* run.servers.template(
        template,
        Effect.andThen(fill(hooks, Product.keysFileOf(run.servers)), TransferFixture.fill(minutes * 60)),
      )
      const soaked = yield* Effect.forEach(names, (name, at) =>
        soak({ run, name, command: commands[name]!, ...players[at]!, minutes, rest, rate }), { concurrency: 2 })
      const heaps = soaked[0]!.looks.map(({ minute }) =>
        `heap at ${minute} min`
      )
      return {
        tables: [{
          title: `${minutes} minutes at ${rate} events a second, ${rest} minutes at rest: MB`,
          columns: ["", ...heaps, "RSS first", "RSS last", "RSS most"],
          rows: soaked.map(({ looks }, at) => [
            names[at]!,
            ...looks.map(({ heap }) => heap),
            looks[0]!.rss,
            looks.at(-1)!.rss,
            Math.max(...looks.map(({ rss }) => rss)),
          ]),
        }, {
          title: "Standstill of the event loop and arrival after publication in ms, lateness of timers in s",
          columns: ["", "worst under load", "worst at rest", "p50", "p99", "most", "timers", "latest timer"],
          rows: soaked.map(({ load, rest, timers }, at) => [
            names[at]!,
            load.pause,
            rest.pause,
            rounded(load.p50, 1),
            rounded(load.p99, 1),
            rounded(load.most, 0),
            timers.fired,
            timers.latestSeconds,
          ]),
        }],
        notes: [
          "Both runtimes at once on the same machine, each with receivers of its own; heap after a forced collection.",
          "A timer is late by what lies between the end of a transfer's safety window and its completion in the row.",
        ],
        raw: Object.fromEntries(names.map((name, at) => [name, soaked[at]])),
      }
    }),
}
