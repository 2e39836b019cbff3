/** Deliveries per second of the program and of its peers, each on its own database and broker account. */
import { Effect } from "effect"
import * as Child from "../harness/Child.ts"
import type { Claim, Finding } from "../harness/Claim.ts"
import { median, rounded, type Table } from "../harness/Figures.ts"
import { fill, hooksOn } from "../harness/Fixture.ts"
import { node24 } from "../harness/Node24.ts"
import * as Product from "../harness/Product.ts"
import { costTable } from "../harness/Servers.ts"
import {
  type Contender,
  type Figures,
  type Once,
  once as onceOf,
  product,
  type Setting,
  template,
} from "./Throughput/DeliveryRun.ts"

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

const once = (setting: Setting, name: string, counted = false) => onceOf(setting, name, contenders[name]!, counted)

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
