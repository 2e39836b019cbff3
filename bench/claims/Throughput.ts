/**
 * Deliveries per second, end to end, every attempt durable. Events are on JetStream before a contender starts; the time
 * runs from the first to the last arrival at receivers in a process of their own, and until the last row is settled. A
 * repeated delivery of ours fails the run: nothing is killed here, so each arrives once.
 */
import { Effect, Schedule, type Scope } from "effect"
import { type BenchError, BenchError as Failed } from "../harness/Child.ts"
import * as Child from "../harness/Child.ts"
import type { Claim, Finding, Run } from "../harness/Claim.ts"
import { median, rounded, type Table } from "../harness/Figures.ts"
import { cpuMillis, peakMegabytes } from "../harness/Cpu.ts"
import { fill, type Hook, hooksOn, publish } from "../harness/Fixture.ts"
import { node24 } from "../harness/Node24.ts"
import * as Product from "../harness/Product.ts"
import { broker, costOf, costTable, type DatabaseUse, type Fixture } from "../harness/Servers.ts"

interface Figures {
  /** Deliveries a second from the first to the last arrival. */
  readonly rate: number
  /** Deliveries a second between the first 5,000 and the last twentieth, and the seconds that this twentieth takes. */
  readonly steadyRate: number
  readonly tailSeconds: number
  /** Deliveries a second from the first arrival until everything was recorded. */
  readonly settledRate: number
  /** Microseconds of CPU a delivery, after the first 5,000. */
  readonly runtime: number
  readonly postgres: number
  readonly nats: number
  /** Peak resident memory, MB, of all processes of the contender. */
  readonly memory: number
  readonly repeats: number
}

interface Setting extends Run {
  readonly hooks: ReadonlyArray<Hook>
  readonly sink: Child.Child
  readonly events: number
}

interface Done {
  readonly first: number
  readonly warmAt: number
  /** The time of the arrival of 95 of 100. */
  readonly mostAt: number
  readonly last: number
}

interface Counted {
  readonly requests: number
  readonly unique: number
}

/** Starts a contender's processes, and returns an effect that ends when all their work is recorded. */
type Contender = (setting: Setting, fixture: Fixture) => Effect.Effect<
  { readonly processes: ReadonlyArray<Child.Child>; readonly settled: Effect.Effect<unknown, BenchError> },
  BenchError,
  Scope.Scope
>

const template = "throughput"

const thisRuntime = Effect.succeed(undefined)

const product = (
  splits: ReadonlyArray<string>,
  command: Effect.Effect<ReadonlyArray<string> | undefined, BenchError> = thisRuntime,
): Contender =>
(setting, fixture) =>
  Effect.gen(function* () {
    const runs = yield* command
    const processes = yield* Effect.forEach(
      splits,
      (roles) => Product.start(setting.servers, fixture, { ROLES: roles }, setting.profile, runs),
      { concurrency: "unbounded" },
    )
    const left = Effect.flatMap(
      fixture.sql<{ n: number }>`select count(*)::int as n from delivery_queue`,
      ([row]) => row!.n === 0 ? Effect.void : Effect.fail("not yet"),
    )
    const settled = left.pipe(
      Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 4_000 }),
      Effect.andThen(fixture.sql<{ n: number }>`select count(*)::int as n from deliveries where status = 'delivered'`),
      Effect.flatMap(([row]) =>
        row!.n === setting.events ? Effect.void : Effect.fail(`${row!.n} of ${setting.events} recorded as delivered`)
      ),
      Effect.mapError((cause) => new Failed({ message: String(cause) })),
    )
    return { processes, settled }
  })

const peer = (module: string): Contender => ({ events, hooks }, fixture) =>
  Effect.gen(function* () {
    const program = yield* Child.start({
      module,
      env: {
        DATABASE_URL: fixture.ownerUrl,
        NATS_URL: fixture.natsUrl,
        EVENTS: String(events),
        HOOKS: JSON.stringify(hooks),
      },
    })
    return { processes: [program], settled: program.event("settled") }
  })

const others = "api,actors,relay,timers,intake,mail,lifecycle"

const bare = "bare undici loop"
const bareOwn = "bare loop with our own sender"
const boss = "pg-boss + undici"

const contenders: Readonly<Record<string, Contender>> = {
  [bare]: peer("bench/programs/contenders/Bare.ts"),
  [bareOwn]: peer("bench/programs/contenders/BareOwn.ts"),
  "bailiwick": product(["all"]),
  "bailiwick on Node 24": product(["all"], node24),
  "bailiwick, delivery split off": product(["delivery", others]),
  [boss]: peer("bench/programs/contenders/PgBoss.ts"),
  "graphile-worker + undici": peer("bench/programs/contenders/GraphileWorker.ts"),
}

/** The contenders of the long run, long enough for a queue of results to build up. */
const sustained: ReadonlyArray<string> = [bare, bareOwn, "bailiwick", "bailiwick on Node 24", boss]
const sustainedEvents = 150_000

interface Once extends Figures {
  /** PostgreSQL's work; statements only where they were counted. */
  readonly use: DatabaseUse
}

/** `counted` counts statements as well, at the cost of time. */
const once = (setting: Setting, name: string, counted = false): Effect.Effect<Once, BenchError> =>
  Effect.gen(function* () {
    const { events, hooks, servers, sink } = setting
    const fixture = yield* servers.fixture(name.startsWith("bailiwick") ? template : undefined)
    if (counted) yield* fixture.count
    const unused = yield* fixture.used
    if (!name.startsWith("bare")) yield* publish(yield* broker(fixture.natsUrl), hooks, 0, events)
    yield* sink.tell(`expect ${events}`)
    yield* sink.event("expecting")
    const { processes, settled } = yield* contenders[name]!(setting, fixture)
    const used = () => ({
      ...servers.cpu(),
      runtime: processes.reduce((sum, { pid }) => sum + (cpuMillis(pid) ?? 0), 0),
    })
    const dead = Effect.raceAll(processes.map((process) => process.ended))
    const { warm } = yield* Effect.raceFirst(sink.event<{ readonly warm: number }>("warm"), dead)
    const before = used()
    const done = yield* Effect.raceFirst(sink.event<Done>("done", 600), dead)
    yield* Effect.raceFirst(settled, dead)
    const end = performance.timeOrigin + performance.now()
    const after = used()
    yield* sink.tell("count")
    const { requests, unique } = yield* sink.event<Counted>("counted")
    const repeats = requests - unique
    const memory = processes.reduce((sum, { pid }) => sum + (peakMegabytes(pid) ?? 0), 0)
    if (name.startsWith("bailiwick") && repeats > 0) {
      return yield* new Failed({ message: `${repeats} of ${events} deliveries were sent again` })
    }
    const each = (what: keyof typeof before) => (after[what] - before[what]) * 1000 / (events - warm)
    return {
      rate: events * 1000 / (done.last - done.first),
      steadyRate: (Math.ceil(0.95 * events) - warm) * 1000 / (done.mostAt - done.warmAt),
      tailSeconds: (done.last - done.mostAt) / 1000,
      settledRate: events * 1000 / (end - done.first),
      runtime: each("runtime"),
      postgres: each("postgres"),
      nats: each("nats"),
      memory,
      repeats,
      use: costOf(unused, yield* fixture.used, events),
    }
  }).pipe(
    Effect.scoped,
    Effect.mapError(({ message }) => new Failed({ message: `${name}: ${message}` })),
  )

type Rounds = ReadonlyArray<Readonly<Record<string, Once>>>

const tableOf = (title: string, rounds: Rounds): Table => {
  const of = (name: string, pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[name]!)))
  const ratio = (name: string, to: string) =>
    to in rounds[0]! ? rounded(median(rounds.map((round) => round[name]!.rate / round[to]!.rate)), 2) : ""
  return {
    title,
    columns: [
      ...["", "/s", "steady /s", "tail s", "/s until settled", "of bare undici", "of bare own", "to pg-boss"],
      ...["CPU µs: runtime", "postgres", "nats", "MB at most"],
    ],
    rows: Object.keys(rounds[0]!).map((name) => [
      name,
      Math.round(of(name, (f) => f.rate)),
      Math.round(of(name, (f) => f.steadyRate)),
      rounded(of(name, (f) => f.tailSeconds), 2),
      Math.round(of(name, (f) => f.settledRate)),
      ratio(name, bare),
      ratio(name, bareOwn),
      ratio(name, boss),
      Math.round(of(name, (f) => f.runtime)),
      Math.round(of(name, (f) => f.postgres)),
      Math.round(of(name, (f) => f.nats)),
      Math.round(of(name, (f) => f.memory)),
    ]),
  }
}

const interleaved = Effect.fnUntraced(function* (setting: Setting, names: ReadonlyArray<string>) {
  const rounds: Array<Record<string, Once>> = []
  for (let round = 1; names.length > 0 && round <= setting.rounds; round++) {
    const figures: Record<string, Once> = {}
    for (const name of names) {
      yield* setting.tell(`round ${round} of ${setting.rounds}, ${setting.events} events: ${name}`)
      figures[name] = yield* once(setting, name)
    }
    rounds.push(figures)
  }
  return rounds
})

const sustainedPrefix = "sustained: "

/** `only` names the contenders to run, `sustained: …` those of the long run, for work on one of them. */
export const throughput = (only?: ReadonlyArray<string>): Claim => ({
  name: "throughput",
  title: "Webhook deliveries a second, end to end, every attempt durable",
  measure: (run) =>
    Effect.gen(function* () {
      const events = run.quick ? 10_000 : 30_000
      const many = run.quick ? 20_000 : sustainedEvents
      const sink = yield* Child.start({ module: "bench/programs/receivers/Sink.ts", env: { SINK_PORTS: "4" } })
      const { ports } = yield* sink.event<{ readonly ports: ReadonlyArray<number> }>("ready")
      const hooks = hooksOn(ports)
      yield* run.servers.template(template, fill(hooks, Product.keysFileOf(run.servers)))
      const setting = { ...run, hooks, sink, events }
      const wanted = (name: string) => only === undefined || only.includes(name)
      yield* run.tell("warming the receivers up")
      yield* once({ ...setting, events: 10_000 }, bare)
      const short = yield* interleaved(setting, Object.keys(contenders).filter(wanted))
      const long = yield* interleaved(
        { ...setting, events: many },
        sustained.filter((name) => wanted(`${sustainedPrefix}${name}`)),
      )
      yield* run.tell("counting statements")
      const counted = wanted("bailiwick") ? [yield* once(setting, "bailiwick", true)] : []
      return {
        tables: [
          ...(short.length > 0 ? [tableOf(`Deliveries a second, ${events} events from a cold start`, short)] : []),
          ...(long.length > 0 ? [tableOf(`Deliveries a second, ${many} events at a stretch`, long)] : []),
          ...(counted.length > 0
            ? [costTable("a delivery", counted.map(({ use }) => ["bailiwick", use] as const))]
            : []),
        ],
        notes: [
          "Events on JetStream beforehand, 20 webhooks of 4 accounts, fan-out 1, receivers on the same machine.",
          "A delivery of ours that arrives a second time fails the run.",
          "Medians over interleaved rounds, ratios within a round; every contender starts cold.",
          "Steady: from the 5,000th arrival until 95 of 100 have arrived; the tail is the time that the rest takes.",
          "CPU is of the deliveries after the first 5,000, until all are settled; the receivers' is not shown.",
          "Statements are counted in a run of their own, since counting takes time.",
          "The bare loops sign and POST from memory, 64 in flight, one by undici.request as the peers do, one by our own sender.",
          "The peers sign and send the same, without address policy, dedupe, attempt log and fairness.",
        ],
        raw: { short, long, counted },
      } satisfies Finding
    }),
})
