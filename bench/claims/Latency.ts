/**
 * From just before an event's publication to its webhook's arrival, at two rates; beside it a forwarder that records
 * nothing.
 */
import { Effect, type Scope } from "effect"
import * as Child from "../harness/Child.ts"
import type { BenchError } from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { median, quantile, rounded } from "../harness/Figures.ts"
import { fill, type Hook, hooksOn } from "../harness/Fixture.ts"
import * as Product from "../harness/Product.ts"
import type { Fixture } from "../harness/Servers.ts"

const rates = [200, 2_000]
const template = "latency"
const quantiles = [0.5, 0.95, 0.99] as const

type Start = (run: Run, fixture: Fixture, hooks: ReadonlyArray<Hook>) => Effect.Effect<unknown, BenchError, Scope.Scope>

const contenders: Readonly<Record<string, Start>> = {
  "bailiwick": (run, fixture) =>
    Effect.flatMap(Product.start(run.servers, fixture, {}, run.profile), (program) => Product.ready(program)),
  "forwarder that records nothing": (_run, fixture, hooks) =>
    Effect.flatMap(
      Child.start({
        module: "bench/programs/contenders/Forward.ts",
        env: { NATS_URL: fixture.natsUrl, HOOKS: JSON.stringify(hooks) },
      }),
      (program) => program.event("forwarding"),
    ),
}

const once = (run: Run, metronome: Child.Child, hooks: ReadonlyArray<Hook>, name: string) =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture(template)
    yield* contenders[name]!(run, fixture, hooks)
    let from = 0
    const play = Effect.fnUntraced(function* (rate: number, count: number) {
      const { natsUrl } = fixture
      yield* metronome.tell(JSON.stringify({ natsUrl, hooks, from, count, rate }))
      from += count
      const { latencies } = yield* metronome.event<{ readonly latencies: ReadonlyArray<number> }>("played")
      return quantiles.map((share) => quantile(latencies, share))
    })
    yield* play(1_000, 2_000)
    const figures: Record<number, ReadonlyArray<number>> = {}
    for (const rate of rates) figures[rate] = yield* play(rate, rate * (run.quick ? 3 : 10))
    return figures
  }).pipe(Effect.scoped)

export const latency: Claim = {
  name: "latency",
  title: "From publication to arrival, in milliseconds",
  measure: (run) =>
    Effect.gen(function* () {
      const metronome = yield* Child.start({ module: "bench/programs/load/SteadyLoad.ts" })
      const { ports } = yield* metronome.event<{ readonly ports: ReadonlyArray<number> }>("ready")
      const hooks = hooksOn(ports)
      yield* run.servers.template(template, fill(hooks, Product.keysFileOf(run.servers)))
      const rounds: Array<Record<string, Record<number, ReadonlyArray<number>>>> = []
      for (let round = 1; round <= run.rounds; round++) {
        const figures: Record<string, Record<number, ReadonlyArray<number>>> = {}
        for (const name of Object.keys(contenders)) {
          yield* run.tell(`round ${round} of ${run.rounds}: ${name}`)
          figures[name] = yield* once(run, metronome, hooks, name)
        }
        rounds.push(figures)
      }
      return {
        tables: rates.map((rate) => ({
          title: `${rate} events a second`,
          columns: ["", ...quantiles.map((share) => `p${share * 100}`)],
          rows: Object.keys(contenders).map((name) => [
            name,
            ...quantiles.map((_, i) => rounded(median(rounds.map((round) => round[name]![rate]![i]!)), 1)),
          ]),
        })),
        notes: [
          `${run.quick ? 3 : 10} s a rate after 2,000 events of warming up; medians of the rounds' quantiles.`,
          "Publisher and receivers are one process, so one clock measures both.",
        ],
        raw: rounds,
      }
    }),
}
