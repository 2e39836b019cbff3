/**
 * Signed messages a second, sustained: events of many projects that commit at one moment, until the last message is
 * stored and acknowledged by the broker; beside it RS256 alone over the same payloads on the same cores.
 */
import { Effect, Schedule } from "effect"
import type { Order } from "../../programs/contenders/BareSigning.ts"
import * as Child from "../../harness/Child.ts"
import { BenchError } from "../../harness/Child.ts"
import type { Run } from "../../harness/Claim.ts"
import { median, rounded, type Table } from "../../harness/Figures.ts"
import { cpuMillis } from "../../harness/Cpu.ts"
import { lived, tell } from "../../harness/LifecycleSeed.ts"
import * as Product from "../../harness/Product.ts"
import { broker, type Fixture } from "../../harness/Servers.ts"

const own = "bailiwick, signed, stored and published"
const ways: ReadonlyArray<Order> = (["node:crypto", "jose", "the program's way"] as const).map((way) => ({
  way,
  atOnce: 8,
}))
const nameOf = ({ way }: Order) => `bare RS256 by ${way}`

export interface Figures {
  /** A second. */
  readonly rate: number
  /** Microseconds of CPU a message. */
  readonly program: number
  readonly postgres: number
  readonly nats: number
}

export type Round = Readonly<Record<string, Figures>>

/** Waits until every event is signed, and published where `relayed`. */
export const settled = (fixture: Fixture, relayed: boolean) =>
  fixture.sql<{ readonly behind: boolean }>`
    select exists (
        select from lifecycle_heads h left join lifecycle_signed s on s.project_id = h.project_id
        where s.project_id is null or (h.epoch, h.position) > (s.epoch, s.position)
      ) or ${relayed} and exists (select from outbox where published_at is null and aggregate_id is not null)
      as behind`.pipe(
    Effect.flatMap(([row]) => row!.behind ? Effect.fail("not in time") : Effect.void),
    Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 60_000 }),
  )

const lastPublished = (fixture: Fixture) =>
  Effect.map(
    fixture.sql<{ last: Date | null }>`select max(published_at) as last from outbox where stream = 'LIFECYCLE'`,
    ([row]) => row!.last,
  )

const messages = (fixture: Fixture) =>
  Effect.map(
    fixture.sql<{ n: number }>`select count(*)::int as n from lifecycle_messages`,
    ([row]) => row!.n,
  )

/** Appends events of `projects` projects in one transaction: they appear at once. */
const facts = (fixture: Fixture, projects: number, from: number, count: number) =>
  tell(count, count, (n) => lived(n % projects, from + Math.floor(n / projects))).pipe(
    Effect.provide(Product.databaseOf(fixture)),
  )

const signed = (run: Run, fixture: Fixture, projects: number, count: number) =>
  Effect.gen(function* () {
    const program = yield* Product.start(run.servers, fixture, { ROLES: "lifecycle,relay" }, run.profile)
    yield* Product.ready(program)
    const nc = yield* broker(fixture.natsUrl)
    // A fifth of the events to warm up: the first batches pay for starting and compiling.
    const warm = Math.ceil(count / 5 / projects) * projects
    yield* facts(fixture, projects, 0, warm)
    yield* settled(fixture, true)
    const used = () => ({ program: cpuMillis(program.pid) ?? NaN, ...run.servers.cpu() })
    yield* facts(fixture, projects, warm / projects, count)
    const before = used()
    const committed = Date.now()
    nc.publish("bell.v1.lifecycle", "bench")
    yield* Effect.raceFirst(settled(fixture, true), program.ended)
    const after = used()
    const last = yield* lastPublished(fixture)
    if (last === null || (yield* messages(fixture)) !== warm + count) {
      return yield* new BenchError({ message: "signing: not every fact became a message" })
    }
    const each = (what: keyof typeof before) => (after[what] - before[what]) * 1_000 / count
    return {
      rate: count * 1_000 / (last.getTime() - committed),
      program: each("program"),
      postgres: each("postgres"),
      nats: each("nats"),
    } satisfies Figures
  }).pipe(Effect.scoped)

/** RS256 over the payloads of the same events. */
const bare = (fixture: Fixture) =>
  Effect.gen(function* () {
    const program = yield* Child.start({
      module: "bench/programs/contenders/BareSigning.ts",
      env: { DATABASE_URL: fixture.ownerUrl },
    })
    yield* program.event("ready")
    const figures: Record<string, Figures> = {}
    for (const order of ways) {
      const before = cpuMillis(program.pid) ?? NaN
      yield* program.tell(JSON.stringify(order))
      const { count, seconds } = yield* Effect.raceFirst(
        program.event<{ readonly count: number; readonly seconds: number }>("signed", 300),
        program.ended,
      )
      const cpu = ((cpuMillis(program.pid) ?? NaN) - before) * 1_000 / count
      figures[nameOf(order)] = { rate: count / seconds, program: cpu, postgres: 0, nats: 0 }
    }
    return figures
  }).pipe(Effect.scoped)

/** One round: the program, then the yardsticks over the messages that it signed. */
export const signing = (run: Run, template: string, projects: number, count: number, round: number) =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture(template)
    yield* run.tell(`round ${round} of ${run.rounds}: ${count} messages signed and published`)
    const figures = yield* signed(run, fixture, projects, count)
    yield* run.tell(`round ${round} of ${run.rounds}: the same payloads signed bare`)
    return { ...yield* bare(fixture), [own]: figures } as Round
  }).pipe(Effect.scoped)

export const signingTable = (rounds: ReadonlyArray<Round>, count: number): Table => {
  const of = (name: string, pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[name]!)))
  const best = (round: Round) => Math.max(...ways.map((order) => round[nameOf(order)]!.rate))
  return {
    title: `${count} messages that are due at one moment`,
    columns: ["", "/s", "of the fastest bare", "CPU µs: program", "postgres", "nats"],
    rows: [...ways.map(nameOf), own].map((name) => [
      name,
      Math.round(of(name, ({ rate }) => rate)),
      rounded(median(rounds.map((round) => round[name]!.rate / best(round))), 2),
      Math.round(of(name, ({ program }) => program)),
      Math.round(of(name, ({ postgres }) => postgres)),
      Math.round(of(name, ({ nats }) => nats)),
    ]),
  }
}
