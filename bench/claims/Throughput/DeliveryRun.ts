/**
 * One run of a contender, end to end, every attempt durable. Events are on JetStream before it starts; the time runs from
 * the first to the last arrival at receivers in a process of their own, and until the last row is settled. A repeated
 * delivery of ours fails the run: nothing is killed here, so each arrives once.
 */
import { Effect, Schedule, type Scope } from "effect"
import { type BenchError, BenchError as Failed } from "../../harness/Child.ts"
import * as Child from "../../harness/Child.ts"
import type { Run } from "../../harness/Claim.ts"
import { cpuMillis, peakMegabytes } from "../../harness/Cpu.ts"
import { type Hook, publish } from "../../harness/Fixture.ts"
import * as Product from "../../harness/Product.ts"
import { broker, costOf, type DatabaseUse, type Fixture } from "../../harness/Servers.ts"

export interface Figures {
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

export interface Setting extends Run {
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
export type Contender = (setting: Setting, fixture: Fixture) => Effect.Effect<
  { readonly processes: ReadonlyArray<Child.Child>; readonly settled: Effect.Effect<unknown, BenchError> },
  BenchError,
  Scope.Scope
>

/** The template of databases with the accounts and webhooks. */
export const template = "throughput"

const thisRuntime = Effect.succeed(undefined)

/** Processes of the program, each with its roles. */
export const product = (
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

export interface Once extends Figures {
  /** PostgreSQL's work; statements only where they were counted. */
  readonly use: DatabaseUse
}

/** On a starved machine an attempt passes its deadline and is repeated; a repetition without one is a defect. */
const failedAttempts = (fixture: Fixture) =>
  Effect.map(
    fixture.sql<{ error: string; n: number }>`
      select coalesce(error, response_status::text) as error, count(*)::int as n from attempts
      where error is not null or response_status >= 300 group by 1`,
    (rows) => rows.map(({ error, n }) => `${n} by ${error}`).join(", ") || "none",
  )

/** Runs a contender, on a database of the program's schema where it is ours. `counted` counts statements, at the cost of time. */
export const once = (
  setting: Setting,
  name: string,
  contender: Contender,
  counted = false,
): Effect.Effect<Once, BenchError> =>
  Effect.gen(function* () {
    const { events, hooks, servers, sink } = setting
    const fixture = yield* servers.fixture(name.startsWith("bailiwick") ? template : undefined)
    if (counted) yield* fixture.count
    const unused = yield* fixture.used
    if (!name.startsWith("bare")) yield* publish(yield* broker(fixture.natsUrl), hooks, 0, events)
    yield* sink.tell(`expect ${events}`)
    yield* sink.event("expecting")
    const { processes, settled } = yield* contender(setting, fixture)
    const used = () => ({
      ...servers.cpu(),
      runtime: processes.reduce((sum, { pid }) => sum + (cpuMillis(pid) ?? 0), 0),
    })
    const dead = Effect.raceAll(processes.map((process) => process.ended))
    const { warm } = yield* Effect.raceFirst(sink.event<{ readonly warm: number }>("warm", 300), dead)
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
      const why = yield* Effect.orElseSucceed(failedAttempts(fixture), () => "unknown")
      return yield* new Failed({
        message: `${repeats} of ${events} deliveries were sent again; attempts that failed: ${why}`,
      })
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
