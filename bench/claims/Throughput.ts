/**
 * Deliveries per second, end to end, every attempt durable. Events lie on JetStream before anyone starts; measured is
 * from the first to the last arrival at receivers in a process of their own, and until the last row is settled. A delivery
 * of ours that arrives twice fails the run: nothing is killed here, so each is promised once.
 */
import { Effect, Schedule, type Scope } from "effect"
import { type BenchError, BenchError as Failed } from "../harness/Child.ts"
import * as Child from "../harness/Child.ts"
import { type Claim, type Finding, median, rounded, type Run, type Table } from "../harness/Claim.ts"
import { cpuMillis } from "../harness/Cpu.ts"
import { fill, type Hook, hooksOn, publish } from "../harness/Fixture.ts"
import * as Product from "../harness/Product.ts"
import { broker, type World } from "../harness/Servers.ts"

interface Figures {
  /** Deliveries a second from the first to the last arrival, and after the first 5,000. */
  readonly rate: number
  readonly warmRate: number
  /** Deliveries a second from the first arrival until everything was recorded. */
  readonly settledRate: number
  /** Microseconds of CPU a delivery, after the first 5,000. */
  readonly runtime: number
  readonly postgres: number
  readonly nats: number
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
  readonly last: number
}

interface Counted {
  readonly requests: number
  readonly unique: number
}

/** Starts processes and gives what ends when everything that they do is recorded. */
type Contender = (setting: Setting, world: World) => Effect.Effect<
  { readonly processes: ReadonlyArray<Child.Child>; readonly settled: Effect.Effect<unknown, BenchError> },
  BenchError,
  Scope.Scope
>

const template = "throughput"
/** Our own contender for as long as a queue of results needs to show itself: once, not in rounds. */
const sustained = "bailiwick, sustained"
const sustainedEvents = 150_000

const product = (...splits: ReadonlyArray<string>): Contender => (setting, world) =>
  Effect.gen(function* () {
    const processes = yield* Effect.forEach(
      splits,
      (roles) => Product.start(setting.servers, world, { ROLES: roles }, setting.profile),
      { concurrency: "unbounded" },
    )
    const left = Effect.flatMap(
      world.sql<{ n: number }>`select count(*)::int as n from delivery_queue`,
      ([row]) => row!.n === 0 ? Effect.void : Effect.fail("not yet"),
    )
    const settled = left.pipe(
      Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 4_000 }),
      Effect.andThen(world.sql<{ n: number }>`select count(*)::int as n from deliveries where status = 'delivered'`),
      Effect.flatMap(([row]) =>
        row!.n === setting.events ? Effect.void : Effect.fail(`${row!.n} of ${setting.events} recorded as delivered`)
      ),
      Effect.mapError((cause) => new Failed({ message: String(cause) })),
    )
    return { processes, settled }
  })

const peer = (module: string): Contender => ({ events, hooks }, world) =>
  Effect.gen(function* () {
    const program = yield* Child.start({
      module,
      env: {
        DATABASE_URL: world.ownerUrl,
        NATS_URL: world.natsUrl,
        EVENTS: String(events),
        HOOKS: JSON.stringify(hooks),
      },
    })
    return { processes: [program], settled: program.event("settled") }
  })

const others = "api,actors,relay,timers,intake,mail,lifecycle"

const contenders: Readonly<Record<string, Contender>> = {
  "bare undici loop": peer("bench/programs/bare.ts"),
  "bailiwick": product("all"),
  [sustained]: product("all"),
  "bailiwick, delivery split off": product("delivery", others),
  "pg-boss + undici": peer("bench/programs/pgBoss.ts"),
  "graphile-worker + undici": peer("bench/programs/graphileWorker.ts"),
}

const once = (setting: Setting, name: string): Effect.Effect<Figures, BenchError> =>
  Effect.gen(function* () {
    const { events, hooks, servers, sink } = setting
    const world = yield* servers.world(name.startsWith("bailiwick") ? template : undefined)
    if (!name.startsWith("bare")) yield* publish(yield* broker(world.natsUrl), hooks, 0, events)
    yield* sink.tell(`expect ${events}`)
    yield* sink.event("expecting")
    const { processes, settled } = yield* contenders[name]!(setting, world)
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
    if (name.startsWith("bailiwick") && repeats > 0) {
      return yield* new Failed({ message: `${repeats} of ${events} deliveries were sent again` })
    }
    const each = (what: keyof typeof before) => (after[what] - before[what]) * 1000 / (events - warm)
    return {
      rate: events * 1000 / (done.last - done.first),
      warmRate: (events - warm) * 1000 / (done.last - done.warmAt),
      settledRate: events * 1000 / (end - done.first),
      runtime: each("runtime"),
      postgres: each("postgres"),
      nats: each("nats"),
      repeats,
    }
  }).pipe(
    Effect.scoped,
    Effect.mapError(({ message }) => new Failed({ message: `${name}: ${message}` })),
  )

type Rounds = ReadonlyArray<Readonly<Record<string, Figures>>>

const tableOf = (rounds: Rounds): Table => {
  const of = (name: string, pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[name]!)))
  const ratio = (name: string, to: string) => median(rounds.map((round) => round[name]!.rate / round[to]!.rate))
  return {
    title: "Deliveries a second",
    columns: ["", "/s", "/s after 5,000", "/s until settled", "of bare undici", "CPU µs: runtime", "postgres", "nats"],
    rows: Object.keys(rounds[0]!).map((name) => [
      name,
      Math.round(of(name, (f) => f.rate)),
      Math.round(of(name, (f) => f.warmRate)),
      Math.round(of(name, (f) => f.settledRate)),
      "bare undici loop" in rounds[0]! ? rounded(ratio(name, "bare undici loop"), 2) : "",
      Math.round(of(name, (f) => f.runtime)),
      Math.round(of(name, (f) => f.postgres)),
      Math.round(of(name, (f) => f.nats)),
    ]),
  }
}

const sustainedTable = (events: number, figures: Figures): Table => ({
  title: `${events} events at a stretch`,
  columns: ["", "/s", "/s after 5,000", "/s until settled", "sent again"],
  rows: [["bailiwick", ...[figures.rate, figures.warmRate, figures.settledRate, figures.repeats].map(Math.round)]],
})

/** `only` names the contenders, for work on one of them. */
export const throughput = (only?: ReadonlyArray<string>): Claim => ({
  name: "throughput",
  title: "Webhook deliveries a second, end to end, every attempt durable",
  measure: (run) =>
    Effect.gen(function* () {
      const events = run.quick ? 10_000 : 30_000
      const sink = yield* Child.start({ module: "bench/programs/sink.ts", env: { SINK_PORTS: "4" } })
      const { ports } = yield* sink.event<{ readonly ports: ReadonlyArray<number> }>("ready")
      const hooks = hooksOn(ports)
      yield* run.servers.template(template, fill(hooks, Product.keysFileOf(run.servers)))
      const setting = { ...run, hooks, sink, events }
      const wanted = (name: string) => only === undefined || only.includes(name)
      const names = Object.keys(contenders).filter((name) => name !== sustained && wanted(name))
      yield* run.tell("warming the receivers up")
      yield* once({ ...setting, events: 10_000 }, "bare undici loop")
      const rounds: Array<Record<string, Figures>> = []
      for (let round = 1; names.length > 0 && round <= run.rounds; round++) {
        const figures: Record<string, Figures> = {}
        for (const name of names) {
          yield* run.tell(`round ${round} of ${run.rounds}: ${name}`)
          figures[name] = yield* once(setting, name)
        }
        rounds.push(figures)
      }
      const long = { ...setting, events: run.quick ? events : sustainedEvents }
      yield* wanted(sustained) ? run.tell(`${long.events} events at a stretch`) : Effect.void
      const stretch = wanted(sustained) ? yield* once(long, sustained) : undefined
      const finding: Finding = {
        tables: [
          ...(rounds.length > 0 ? [tableOf(rounds)] : []),
          ...(stretch === undefined ? [] : [sustainedTable(long.events, stretch)]),
        ],
        notes: [
          `${events} events on JetStream beforehand, 20 webhooks of 4 accounts, fan-out 1, receivers on the same machine.`,
          "A delivery of ours that arrives a second time fails the run; what is sustained runs once, alone.",
          "Medians over interleaved rounds, ratios within a round; every contender starts cold.",
          "CPU is of the deliveries after the first 5,000, until all are settled; the receivers' is not shown.",
          "The peers sign and send the same, without address policy, dedupe, attempt log and fairness.",
        ],
        raw: stretch === undefined ? rounds : [...rounds, { [sustained]: stretch }],
      }
      return finding
    }),
})
