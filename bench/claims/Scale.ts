/**
 * What several processes on the same cores cost each other: the same deliveries by one, two, four and eight processes with
 * every role, and by as many that divide the roles. Nothing can double where the cores are as
 * many as before: the rate and the cost of PostgreSQL show what grows with the number of processes.
 */
import { Effect, Schedule } from "effect"
import * as Child from "../harness/Child.ts"
import type { Claim, Finding } from "../harness/Claim.ts"
import { median, rounded, type Table } from "../harness/Figures.ts"
import { fill, hooksOn } from "../harness/Fixture.ts"
import * as Product from "../harness/Product.ts"
import type { Fixture } from "../harness/Servers.ts"
import { type Contender, type Once, once, product, type Setting, template } from "./Throughput/DeliveryRun.ts"

const others = "api,actors,relay,timers,intake,mail,lifecycle"

const all: Readonly<Record<string, ReadonlyArray<string>>> = {
  "one process": ["all"],
  "two processes": Array(2).fill("all"),
  "four processes": Array(4).fill("all"),
  "eight processes": Array(8).fill("all"),
  "two by role: delivery, the rest": ["delivery", others],
  "four by role: three delivery, the rest": [...Array(3).fill("delivery"), others],
  "eight by role: five delivery, intake, api, the rest": [
    ...Array(5).fill("delivery"),
    "intake",
    "api",
    "actors,relay,timers,mail,lifecycle",
  ],
}

interface Waits {
  /** Of the looks at busy sessions, how many found one that waited for a row's or an advisory lock, and for an internal lock. */
  readonly locks: number
  readonly internal: number
}

/** Looks at the sessions of the program's role every 50 ms until interrupted, and adds what they wait for. */
const watched = (fixture: Fixture, waits: { busy: number; locks: number; internal: number }) =>
  fixture.sql<{ kind: string | null; n: number }>`
    select wait_event_type as kind, count(*)::int as n from pg_stat_activity
    where datname = current_database() and state = 'active' and pid <> pg_backend_pid() group by 1`.pipe(
    Effect.map((rows) => {
      for (const { kind, n } of rows) {
        waits.busy += n
        if (kind === "Lock") waits.locks += n
        if (kind === "LWLock") waits.internal += n
      }
    }),
    Effect.repeat(Schedule.spaced("50 millis")),
    Effect.ignore,
  )

type Measured = Once & Waits

/** Names what a failure happened in. */
const within = (name: string) => (error: Child.BenchError) =>
  new Child.BenchError({ message: `${name}: ${error.message}` })

const measured = Effect.fnUntraced(function* (setting: Setting, roles: ReadonlyArray<string>) {
  const waits = { busy: 0, locks: 0, internal: 0 }
  const beside: Contender = (of, fixture) =>
    Effect.tap(product(roles)(of, fixture), () => Effect.forkScoped(watched(fixture, waits)))
  const found = yield* once(setting, "bailiwick", beside)
  const share = (n: number) => waits.busy === 0 ? 0 : n / waits.busy
  return { ...found, locks: share(waits.locks), internal: share(waits.internal) } satisfies Measured
})

type Rounds = ReadonlyArray<Readonly<Record<string, Measured>>>

const tableOf = (events: number, rounds: Rounds, counted: Readonly<Record<string, Once>>): Table => ({
  title: `${events} deliveries by several processes on the same cores`,
  columns: [
    ...[
      "",
      "/s",
      "steady /s",
      "to one process",
      "CPU µs: runtime",
      "postgres",
      "statements",
      "bytes of WAL",
      "fsyncs of it",
    ],
    ...["% waiting for locks", "% for internal locks", "MB at most"],
  ],
  rows: Object.keys(counted).map((name) => {
    const of = (pick: (one: Measured) => number) => median(rounds.map((round) => pick(round[name]!)))
    const { use } = counted[name]!
    return [
      name,
      Math.round(of(({ rate }) => rate)),
      Math.round(of(({ steadyRate }) => steadyRate)),
      rounded(median(rounds.map((round) => round[name]!.steadyRate / round["one process"]!.steadyRate)), 2),
      Math.round(of(({ runtime }) => runtime)),
      Math.round(of(({ postgres }) => postgres)),
      rounded(use.statements, 4),
      Math.round(use.walBytes),
      rounded(use.fsyncs, 4),
      rounded(100 * of(({ locks }) => locks), 1),
      rounded(100 * of(({ internal }) => internal), 1),
      Math.round(of(({ memory }) => memory)),
    ]
  }),
})

/** Of the ways those in `only`, and one process, which the others are compared with. */
export const scale = (only?: ReadonlyArray<string>): Claim => ({
  name: "scale",
  title: "Several processes on the same cores",
  takes: "25 minutes with five rounds, 10 with --rounds=2, 4 with --quick; --rows=N deliveries each (30,000)",
  measure: (run) =>
    Effect.gen(function* () {
      const ways = Object.fromEntries(
        Object.entries(all).filter(([name]) => only === undefined || name === "one process" || only.includes(name)),
      )
      // Figures begin with the 5,000th arrival.
      const events = Math.max(10_000, run.rows ?? (run.quick ? 10_000 : 30_000))
      const sink = yield* Child.start({ module: "bench/programs/receivers/Sink.ts", env: { SINK_PORTS: "4" } })
      const { ports } = yield* sink.event<{ readonly ports: ReadonlyArray<number> }>("ready")
      const hooks = hooksOn(ports)
      yield* run.servers.template(template, fill(hooks, Product.keysFileOf(run.servers)))
      const setting = { ...run, hooks, sink, events }
      const rounds: Array<Record<string, Measured>> = []
      for (let round = 1; round <= run.rounds; round++) {
        const figures: Record<string, Measured> = {}
        for (const [name, roles] of Object.entries(ways)) {
          yield* run.tell(`round ${round} of ${run.rounds}: ${name}`)
          figures[name] = yield* Effect.mapError(measured(setting, roles), within(name))
        }
        rounds.push(figures)
      }
      const counted: Record<string, Once> = {}
      for (const [name, roles] of Object.entries(ways)) {
        yield* run.tell(`counting statements: ${name}`)
        counted[name] = yield* Effect.mapError(once(setting, "bailiwick", product(roles), true), within(name))
      }
      return {
        tables: [tableOf(events, rounds, counted)],
        notes: [
          "Events on JetStream beforehand, 20 webhooks of 4 accounts, fan-out 1, receivers on the same machine.",
          "A delivery that arrives a second time fails the run.",
          "Waiting: of the sessions that were found busy every 50 ms; a lock of a row, table or advisory, and one inside of PostgreSQL.",
          "Statements are counted in a run of their own, since counting takes time; those of idle loops are among them.",
          "Medians over interleaved rounds, ratios within a round; every run starts cold.",
        ],
        raw: { rounds, counted },
      } satisfies Finding
    }),
})
