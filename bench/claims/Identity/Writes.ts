/** Decisions through the API at steady rates: the latency of each, from the moment at which it was to be sent. */
import { Effect } from "effect"
import * as Child from "../../harness/Child.ts"
import type { Run } from "../../harness/Claim.ts"
import { median, rounded, type Table } from "../../harness/Figures.ts"
import { cpuMillis } from "../../harness/Cpu.ts"
import type { PeopleTokens } from "../../harness/PeopleTokens.ts"
import * as Product from "../../harness/Product.ts"
import { costOf, costTable } from "../../harness/Servers.ts"
import type { Decided, Order } from "../../programs/load/ReviewLoad.ts"

/** Writes a second. */
export const rates = [100, 200, 300, 500]
/** Writes before the first rate, this many a second, which warm the program up. */
const warming = 800
const warmingRate = 200

export const secondsEach = ({ quick }: Run): number => quick ? 4 : 10
/** Accesses that are reviewed on the way: three of ten writes propose a review. */
export const accessesOf = (run: Run): number =>
  Math.ceil(0.3 * (warming + secondsEach(run) * rates.reduce((sum, rate) => sum + rate, 0))) + 10

interface Figures extends Decided {
  /** Microseconds of CPU a write. */
  readonly program: number
  readonly postgres: number
}

export type Round = ReadonlyArray<Figures>

/** Drives writes through a program on a database of its own; with `counted` their statements are counted, too. */
const driver = (run: Run, template: string, tokens: PeopleTokens, counted: boolean) =>
  Effect.gen(function* () {
    const { servers } = run
    const fixture = yield* servers.fixture(template)
    if (counted) yield* fixture.count
    yield* fixture.sql`vacuum analyze`.pipe(Effect.orDie)
    const program = yield* Product.start(servers, fixture, {
      ROLES: "api,actors,relay,timers",
      MANAGEMENT_ISSUERS: tokens.issuers,
      // A limit that is never reached; requests are counted all the same.
      MANAGEMENT_WRITE_RATE: "10000000",
    }, run.profile)
    const port = Number(new URL(yield* Product.ready(program)).port)
    const client = yield* Child.start({
      module: "bench/programs/load/ReviewLoad.ts",
      env: { KEY: JSON.stringify(tokens.keys.ES256) },
    })
    yield* client.event("ready")
    const drive = Effect.fnUntraced(function* (rate: number, count: number) {
      const used = () => ({ program: cpuMillis(program.pid) ?? NaN, postgres: servers.cpu().postgres })
      const before = used()
      yield* client.tell(JSON.stringify({ port, rate, count } satisfies Order))
      const decided = yield* client.event<Decided>("decided", 300)
      if (decided.fault !== null) return yield* new Child.BenchError({ message: `identity: ${decided.fault}` })
      const after = used()
      const each = (of: "program" | "postgres") => (after[of] - before[of]) * 1_000 / count
      return { ...decided, program: each("program"), postgres: each("postgres") } satisfies Figures
    })
    yield* drive(warmingRate, warming)
    // Plans that were made while there was no review use none of the indexes.
    yield* fixture.sql`analyze`.pipe(Effect.orDie)
    return { fixture, drive }
  })

/** All rates, one after the other, on a database of the round's own. */
export const writes = (run: Run, template: string, tokens: PeopleTokens) =>
  driver(run, template, tokens, false).pipe(
    Effect.flatMap(({ drive }) => Effect.forEach(rates, (rate) => drive(rate, rate * secondsEach(run)))),
    Effect.scoped,
  )

/** PostgreSQL's cost of one write, in a run of its own since counting takes time. */
export const writeCost = (run: Run, template: string, tokens: PeopleTokens) =>
  Effect.gen(function* () {
    const { drive, fixture } = yield* driver(run, template, tokens, true)
    const count = 200 * secondsEach(run)
    const before = yield* fixture.used
    yield* drive(200, count)
    return costTable("a write", [["API of one process", costOf(before, yield* fixture.used, count)]])
  }).pipe(Effect.scoped)

export const writesTable = (rounds: ReadonlyArray<Round>): Table => ({
  title: "Writes at a steady rate, one process",
  columns: ["a second", "answered a second", "p50 ms", "p95 ms", "p99 ms", "CPU µs: program", "postgres"],
  rows: rates.map((rate, i) => {
    const of = (pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[i]!)))
    return [
      rate,
      Math.round(of((figures) => figures.rate)),
      rounded(of(({ p50 }) => p50), 1),
      rounded(of(({ p95 }) => p95), 1),
      rounded(of(({ p99 }) => p99), 1),
      Math.round(of(({ program }) => program)),
      Math.round(of(({ postgres }) => postgres)),
    ]
  }),
})

/** The highest sustained rate: answered as fast as sent, the last one percent within a second. */
export const sustained = (rounds: ReadonlyArray<Round>): ReadonlyArray<string> => {
  if (rounds.length === 0) return []
  const kept = rates.filter((rate, i) => {
    const of = (pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[i]!)))
    return of((figures) => figures.rate) >= 0.95 * rate && of(({ p99 }) => p99) <= 1_000
  })
  return [
    kept.length === 0
      ? `None of these rates was kept up (answered as fast as sent, p99 within a second).`
      : `Kept up (answered as fast as sent, p99 within a second): up to ${Math.max(...kept)} writes a second.`,
  ]
}
