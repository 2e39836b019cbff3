/**
 * From the return of COMMIT to the arrival of the signed message, by JetStream and by push, at a steady rate of
 * decisions over many projects; beside it a program that publishes and POSTs the same events itself, unsigned, after
 * each commit.
 */
import { Effect } from "effect"
import type * as Decisions from "../../programs/load/LifecycleLoad.ts"
import * as Child from "../../harness/Child.ts"
import { BenchError } from "../../harness/Child.ts"
import type { Run } from "../../harness/Claim.ts"
import { median, quantile, rounded, type Table } from "../../harness/Figures.ts"
import { cpuMillis } from "../../harness/Cpu.ts"
import type { Services } from "../../harness/LifecycleServices.ts"
import { pushStreams } from "../../harness/LifecycleStreams.ts"
import * as Product from "../../harness/Product.ts"

export const rate = 500
const quantiles = [0.5, 0.95, 0.99] as const

interface Contender {
  /** Null: the driver publishes itself. */
  readonly roles: string | null
  readonly pushed: boolean
}

const yardstick = "commit, then publish unsigned"

const contenders: Readonly<Record<string, Contender>> = {
  [yardstick]: { roles: null, pushed: true },
  "bailiwick, without push": { roles: "api,lifecycle,relay", pushed: false },
  "bailiwick, api, lifecycle and relay": { roles: "api,lifecycle,relay", pushed: true },
  "bailiwick, every role": { roles: "all", pushed: true },
}

export interface Figures {
  /** Milliseconds: p50, p95, p99. */
  readonly jetstream: ReadonlyArray<number>
  readonly push: ReadonlyArray<number>
  readonly signed: ReadonlyArray<number>
  readonly published: ReadonlyArray<number>
  /** Microseconds of CPU a message. */
  readonly program: number
  readonly postgres: number
  readonly nats: number
  /** Decisions committed a second. */
  readonly rate: number
}

const once = (run: Run, template: string, projects: number, services: Services, { pushed, roles }: Contender) =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture(template)
    const env = { ROLES: roles ?? "", LIFECYCLE_ISSUERS: services.issuers }
    const program = roles === null ? null : yield* Product.start(run.servers, fixture, env, run.profile)
    const url = program === null ? "" : yield* Product.ready(program)
    const driver = yield* Child.start({ module: "bench/programs/load/LifecycleLoad.ts" })
    const { port } = yield* driver.event<{ readonly port: number }>("ready")
    if (pushed && program !== null) yield* pushStreams(url, services, projects, `http://127.0.0.1:${port}/`)
    const { databaseUrl, natsUrl, ownerUrl } = fixture
    const order = { order: "open", databaseUrl, natsUrl, ownerUrl, bare: program === null } satisfies Decisions.Open
    yield* driver.tell(JSON.stringify(order))
    yield* driver.event("opened")
    let from = 0
    const verify = program === null ? null : { baseUrl: url, issuer: new URL("/lifecycle", url).href }
    const play = Effect.fnUntraced(function* (count: number) {
      const order = { order: "play", from, projects, count, rate, pushed, verify } satisfies Decisions.Play
      yield* driver.tell(JSON.stringify(order))
      from += Math.ceil(count / projects)
      const played = yield* Effect.raceFirst(
        driver.event<Decisions.Played>("played", 180),
        program === null ? Effect.never : program.ended,
      )
      return played.fault === null ? played : yield* new BenchError({ message: `arrival: ${played.fault}` })
    })
    yield* play(rate * 2)
    const used = () => ({ program: program === null ? 0 : cpuMillis(program.pid) ?? NaN, ...run.servers.cpu() })
    const before = used()
    const count = rate * (run.quick ? 3 : 10)
    const played = yield* play(count)
    const after = used()
    const each = (what: keyof typeof before) => (after[what] - before[what]) * 1_000 / count
    return {
      jetstream: quantiles.map((share) => quantile(played.jetstream, share)),
      push: quantiles.map((share) => quantile(played.push, share)),
      signed: quantiles.map((share) => quantile(played.signed, share)),
      published: quantiles.map((share) => quantile(played.published, share)),
      program: each("program"),
      postgres: each("postgres"),
      nats: each("nats"),
      rate: played.rate,
    } satisfies Figures
  }).pipe(Effect.scoped)

export type Round = Readonly<Record<string, Figures>>

/** One round of every contender over `projects` projects of the template. */
export const arrival = Effect.fnUntraced(
  function* (run: Run, template: string, projects: number, services: Services, round: number) {
    const figures: Record<string, Figures> = {}
    for (const [name, contender] of Object.entries(contenders)) {
      yield* run.tell(`round ${round} of ${run.rounds}: ${name}`)
      figures[name] = yield* once(run, template, projects, services, contender)
    }
    return figures
  },
)

/** The tables of all rounds. */
export const arrivalTables = (rounds: ReadonlyArray<Round>): ReadonlyArray<Table> => {
  const of = (name: string, pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[name]!)))
  const names = Object.keys(contenders)
  const arrivals = (way: "jetstream" | "push", title: string): Table => ({
    title: `From COMMIT to ${title}, ms, at ${rate} decisions a second`,
    columns: ["", ...quantiles.map((share) => `p${share * 100}`), "p99 to it"],
    rows: names.filter((name) => way === "jetstream" || contenders[name]!.pushed).map((name) => [
      name,
      ...quantiles.map((_, i) => rounded(of(name, (figures) => figures[way][i]!), 1)),
      rounded(median(rounds.map((round) => round[name]![way][2]! / round[yardstick]![way][2]!)), 1),
    ]),
  })
  return [
    arrivals("jetstream", "a subscriber of JetStream"),
    arrivals("push", "the receiver of a push stream"),
    {
      title: "Where the time goes: ms from COMMIT, by what the program wrote down",
      columns: ["", "signed p50", "p99", "published p50", "p99"],
      rows: names.filter((name) => contenders[name]!.roles !== null).map((name) => [
        name,
        ...(["signed", "published"] as const).flatMap((step) =>
          [0, 2].map((i) => Math.round(of(name, (figures) => figures[step][i]!)))
        ),
      ]),
    },
    {
      title: "What a decision costs with all that follows, µs of CPU; the driver's own is not shown",
      columns: ["", "decisions/s", "program", "postgres", "nats"],
      rows: names.map((name) => [
        name,
        Math.round(of(name, ({ rate }) => rate)),
        Math.round(of(name, ({ program }) => program)),
        Math.round(of(name, ({ postgres }) => postgres)),
        Math.round(of(name, ({ nats }) => nats)),
      ]),
    },
  ]
}
