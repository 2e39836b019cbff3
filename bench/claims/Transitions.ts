/**
 * Transitions of transfers: timed ones, fired from 50,000 timers due at one moment, and a look at the timers beside a
 * million that are not due; commands through the API, on one process and on two. The yardstick of each is the same
 * transition as one bare SQL statement, in the same round.
 */
import { Effect, Schedule } from "effect"
import * as Child from "../harness/Child.ts"
import { BenchError } from "../harness/Child.ts"
import type { Claim, Finding, Run } from "../harness/Claim.ts"
import { median, rounded, type Table } from "../harness/Figures.ts"
import { node24 } from "../harness/Node24.ts"
import { cpuMillis } from "../harness/Cpu.ts"
import * as Product from "../harness/Product.ts"
import { costOf, costTable, type DatabaseUse } from "../harness/Servers.ts"
import { type Look, looks as look } from "../harness/TimerLooks.ts"
import { due, fill } from "../harness/TransferSeed.ts"
import type { Order as BareOrder } from "../programs/contenders/BareTransitions.ts"
import type { Order } from "../programs/load/TransferLoad.ts"

const template = "transitions"

const broken = (cause: unknown) =>
  cause instanceof BenchError ? cause : new BenchError({ message: `transitions: ${String(cause)}` })

interface Figures {
  /** Transitions a second. */
  readonly rate: number
  /** Microseconds of CPU a transition. */
  readonly runtime: number
  readonly postgres: number
  /** Milliseconds; for timers, until the last one. */
  readonly p50: number | null
  readonly p99: number | null
}

type Measured = Effect.Effect<Figures, BenchError>

/** The cost of `work`, which makes `count` transitions in the seconds that it returns. */
const costing = Effect.fnUntraced(function* <E>(
  { servers }: Run,
  programs: ReadonlyArray<Child.Child>,
  count: number,
  work: Effect.Effect<{ readonly seconds: number; readonly p50?: number; readonly p99?: number }, E>,
) {
  const used = () => ({
    runtime: programs.reduce((sum, { pid }) => sum + (cpuMillis(pid) ?? 0), 0),
    postgres: servers.cpu().postgres,
  })
  const before = used()
  const { p50 = null, p99 = null, seconds } = yield* Effect.raceFirst(
    work,
    Effect.raceAll(programs.map(({ ended }) => ended)),
  )
  const after = used()
  const each = (what: keyof typeof before) => (after[what] - before[what]) * 1_000 / count
  return { rate: count / seconds, runtime: each("runtime"), postgres: each("postgres"), p50, p99 } satisfies Figures
})

/** The states of due transfers, before and after. */
const ends = { expire: ["pending", "expired"], complete: ["accepted", "completed"] } as const
type End = keyof typeof ends

/** Fires `count` timers that are due at one moment; measured from that moment until none of them is left. */
const fired = (run: Run, end: End, count: number): Measured =>
  Effect.gen(function* () {
    const [status, after] = ends[end]
    const fixture = yield* run.servers.fixture(template)
    const program = yield* Product.start(run.servers, fixture, { ROLES: "timers" }, run.profile)
    yield* Product.ready(program)
    const at = new Date(Date.now() + 6_000 + count / 5)
    yield* due(fixture.sql, status, count, at)
    yield* fixture.sql`vacuum analyze`
    yield* fixture.sql`checkpoint`
    const left = at.getTime() - Date.now()
    if (left <= 0) return yield* broken("the fixture was not ready in time")
    yield* Effect.sleep(left)
    const live = fixture.sql`select from timers where due_at <= ${at} limit 1`
    const until = Effect.flatMap(live, ({ length }) => length === 0 ? Effect.void : Effect.fail("not in time")).pipe(
      Effect.retry({ schedule: Schedule.spaced("20 millis"), times: 15_000 }),
      Effect.map(() => ({ seconds: (Date.now() - at.getTime()) / 1_000 })),
    )
    const figures = yield* costing(run, [program], count, until)
    const [ended] = yield* fixture.sql<{ n: number }>`select count(*)::int as n from transfers where status = ${after}`
    if (ended!.n !== count) return yield* broken(`${ended!.n} of ${count} ended as they should`)
    return figures
  }).pipe(Effect.scoped, Effect.mapError(broken))

/** The same transitions, a bare statement each. */
const bare = (run: Run, kinds: BareOrder["kinds"], count: number): Measured =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture(template)
    const end = kinds[0]
    if (end === "expire" || end === "complete") yield* due(fixture.sql, ends[end][0], count, new Date())
    yield* fixture.sql`vacuum analyze`
    yield* fixture.sql`checkpoint`
    const program = yield* Child.start({
      module: "bench/programs/contenders/BareTransitions.ts",
      env: { DATABASE_URL: fixture.ownerUrl },
    })
    yield* program.event("ready")
    yield* program.tell(JSON.stringify({ kinds, count } satisfies BareOrder))
    return yield* costing(
      run,
      [program],
      count * kinds.length,
      program.event<{ readonly seconds: number }>("done", 300),
    )
  }).pipe(Effect.scoped, Effect.mapError(broken))

interface Commands {
  readonly processes: number
  readonly count: number
  /** Commands a second; null: full speed. */
  readonly rate: number | null
  /** Counts statements as well, at the cost of time. */
  readonly counted?: boolean
  /** The program's runtime, where it is not this one. */
  readonly runtime?: Effect.Effect<ReadonlyArray<string>, BenchError>
}

/** Offers and accepts through the API of `processes` processes, which together make `count` of each. */
const commanded = (
  run: Run,
  { count, counted = false, processes, rate, runtime }: Commands,
): Effect.Effect<Figures & { readonly use: DatabaseUse }, BenchError> =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture(template)
    if (counted) yield* fixture.count
    yield* fixture.sql`vacuum analyze`
    yield* fixture.sql`checkpoint`
    const env = { ROLES: "api,actors,relay,timers", INITIATE_TRANSFER_RATE: "10000" }
    const command = runtime === undefined ? undefined : yield* runtime
    const programs = yield* Effect.forEach(
      Array.from({ length: processes }),
      () => Product.start(run.servers, fixture, env, run.profile, command),
    )
    const urls = yield* Effect.forEach(programs, Product.ready)
    const client = yield* Child.start({ module: "bench/programs/load/TransferLoad.ts" })
    yield* client.event("ready")
    const drive = Effect.fnUntraced(function* (order: Omit<Order, "ports" | "connections">) {
      const ports = urls.map((url) => Number(new URL(url).port))
      yield* client.tell(JSON.stringify({ ...order, ports, connections: 32 } satisfies Order))
      const driven = yield* client.event<Driven>("driven", 300)
      return driven.fault === null ? driven : yield* broken(driven.fault)
    })
    yield* drive({ from: 0, count: 300, rate: null })
    // Plans that were made while there was no transfer use none of the indexes.
    yield* fixture.sql`analyze`
    const measured = Effect.map(
      drive({ from: 300, count, rate }),
      ({ p50, p99, rate }) => ({ seconds: 2 * count / rate, p50, p99 }),
    )
    const unused = yield* fixture.used
    const figures = yield* costing(run, programs, 2 * count, measured)
    return { ...figures, use: costOf(unused, yield* fixture.used, 2 * count) }
  }).pipe(Effect.scoped, Effect.mapError(broken))

interface Driven {
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly fault: string | null
}

const looked = (run: Run, beside: number): Effect.Effect<Look, BenchError> =>
  Effect.scoped(Effect.flatMap(run.servers.fixture(template), (fixture) => look(fixture, beside))).pipe(
    Effect.mapError(broken),
  )

interface Contender {
  readonly measure: (run: Run, sizes: Sizes) => Measured
  /** The contender that makes the same transitions as bare statements. */
  readonly of?: string
}

interface Sizes {
  readonly timers: number
  readonly commands: number
  readonly seconds: number
}

/** Commands a second. */
const steadyRates = [100, 500]
const steadily = (rate: number) => `${rate} commands a second, one process`
const steady = new Set(steadyRates.map(steadily))

const contenders: Readonly<Record<string, Contender>> = {
  "expire, bare statements": { measure: (run, { commands }) => bare(run, ["expire"], commands) },
  "expire, by timers due at once": {
    measure: (run, { timers }) => fired(run, "expire", timers),
    of: "expire, bare statements",
  },
  "complete, bare statements": { measure: (run, { commands }) => bare(run, ["complete"], commands) },
  "complete, by timers due at once": {
    measure: (run, { timers }) => fired(run, "complete", timers),
    of: "complete, bare statements",
  },
  "offer and accept, bare statements": {
    measure: (run, { commands }) => bare(run, ["initiate", "accept"], commands),
  },
  "offer and accept, API of one process": {
    measure: (run, { commands }) => commanded(run, { processes: 1, count: commands / 2, rate: null }),
    of: "offer and accept, bare statements",
  },
  "offer and accept, API of one process on Node 24": {
    measure: (run, { commands }) => commanded(run, { processes: 1, count: commands / 2, rate: null, runtime: node24 }),
    of: "offer and accept, bare statements",
  },
  "offer and accept, API of two processes": {
    measure: (run, { commands }) => commanded(run, { processes: 2, count: commands / 2, rate: null }),
    of: "offer and accept, bare statements",
  },
  ...Object.fromEntries(steadyRates.map((rate): [string, Contender] => [
    steadily(rate),
    { measure: (run, { seconds }) => commanded(run, { processes: 1, count: seconds * rate / 2, rate }) },
  ])),
}

type Rounds = ReadonlyArray<Readonly<Record<string, Figures>>>

const tablesOf = (
  rounds: Rounds,
  looks: ReadonlyArray<ReadonlyArray<Look>>,
  { timers }: Sizes,
): ReadonlyArray<Table> => {
  const of = (name: string, pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[name]!)))
  const names = Object.keys(rounds[0]!)
  return [
    {
      title: "Transitions a second",
      columns: ["", "/s", "of bare statements", "CPU µs: runtime", "postgres"],
      rows: names.filter((name) => !steady.has(name)).map((name) => {
        const yardstick = contenders[name]!.of
        return [
          name,
          Math.round(of(name, ({ rate }) => rate)),
          yardstick === undefined || !names.includes(yardstick)
            ? ""
            : rounded(median(rounds.map((round) => round[name]!.rate / round[yardstick]!.rate)), 2),
          Math.round(of(name, ({ runtime }) => runtime)),
          Math.round(of(name, ({ postgres }) => postgres)),
        ]
      }),
    },
    {
      title: `Until the last of ${timers} timers that are due at one moment has fired`,
      columns: ["", "seconds"],
      rows: names.filter((name) => name.includes("timers")).map((name) => [
        name,
        rounded(timers / of(name, ({ rate }) => rate), 1),
      ]),
    },
    {
      title: "Latency of a command",
      columns: ["", "p50 ms", "p99 ms"],
      rows: names.filter((name) => rounds[0]![name]!.p99 !== null).map((name) => [
        name,
        rounded(of(name, ({ p50 }) => p50!), 1),
        rounded(of(name, ({ p99 }) => p99!), 1),
      ]),
    },
    {
      title: "A look at timers of which none is due",
      columns: ["pending", "claim ms", "next ms"],
      rows: (looks[0] ?? []).map(({ pending }, i) => [
        pending,
        rounded(median(looks.map((round) => round[i]!.claim)), 2),
        rounded(median(looks.map((round) => round[i]!.next)), 2),
      ]),
    },
  ]
}

/** `only` names the contenders to run, for work on one of them. */
export const transitions = (only?: ReadonlyArray<string>): Claim => ({
  name: "transitions",
  title: "Transitions of transfers, with all that belongs to each",
  measure: (run) =>
    Effect.gen(function* () {
      const sizes = run.quick
        ? { timers: 10_000, commands: 3_000, seconds: 4 }
        : { timers: 50_000, commands: 10_000, seconds: 10 }
      yield* run.servers.template(template, fill(sizes.timers))
      const rounds: Array<Record<string, Figures>> = []
      const looks: Array<ReadonlyArray<Look>> = []
      for (let round = 1; round <= run.rounds; round++) {
        const figures: Record<string, Figures> = {}
        for (const [name, { measure }] of Object.entries(contenders)) {
          if (only !== undefined && !only.includes(name)) continue
          yield* run.tell(`round ${round} of ${run.rounds}: ${name}`)
          figures[name] = yield* measure(run, sizes)
        }
        yield* run.tell(`round ${round} of ${run.rounds}: looks`)
        if (only === undefined) {
          looks.push(yield* Effect.forEach([0, run.quick ? 100_000 : 1_000_000], (beside) => looked(run, beside)))
        }
        rounds.push(figures)
      }
      yield* run.tell("counting statements")
      const { use } = yield* commanded(run, {
        processes: 1,
        count: sizes.commands / 4,
        rate: 200,
        counted: true,
      })
      return {
        tables: [...tablesOf(rounds, looks, sizes), costTable("an offer or accept", [["API of one process", use]])],
        notes: [
          "Statements are counted in a run of their own at 200 commands a second, since counting takes time; those of the relay and of other workers are among them.",
          "A transition of ours writes state, fence, timer, two audit records, two notifications, its mails and a message for each of them; a bare statement writes state, fence, timer, two audit records and one message, and decides nothing.",
          `Timers: one process, ${sizes.timers} transfers of as many domains and 2,000 accounts, all due at one moment. Commands: 32 connections from a client on the same machine; at a steady rate a latency counts from when the command was to be sent.`,
          "Medians over interleaved rounds, ratios within a round; every contender starts cold on a database of its own.",
        ],
        raw: { rounds, looks, use },
      } satisfies Finding
    }),
})
