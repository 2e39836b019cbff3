/** CPU of a signed POST by each way to send it, the ways in turn in one process, on this runtime and on Node 24. */
import { Effect } from "effect"
import * as Child from "../harness/Child.ts"
import type { Claim, Finding } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"
import { hooksOn } from "../harness/Fixture.ts"
import { node24 } from "../harness/Node24.ts"
import type { Order, Way } from "../programs/measured/SenderRuns.ts"

interface Figures {
  readonly rate: number
  /** Microseconds of CPU a POST, all threads together. */
  readonly cpu: number
}

const ways: ReadonlyArray<Way> = ["own", "undici.dispatch", "undici.request", "node:http"]
const inFlights = [64, 256]

type Round = Readonly<Record<string, Figures>>

const nameOf = (runtime: string, way: Way, inFlight: number) => `${way}, ${inFlight} in flight, ${runtime}`

export const senders: Claim = {
  name: "senders",
  title: "CPU of a signed POST, by way to send it",
  measure: (run) =>
    Effect.gen(function* () {
      const posts = run.quick ? 4_000 : 20_000
      const sink = yield* Child.start({ module: "bench/programs/receivers/Sink.ts", env: { SINK_PORTS: "4" } })
      const { ports } = yield* sink.event<{ readonly ports: ReadonlyArray<number> }>("ready")
      const env = { HOOKS: JSON.stringify(hooksOn(ports)) }
      const module = "bench/programs/measured/SenderRuns.ts"
      const programs = {
        "here": yield* Child.start({ module, env }),
        "Node 24": yield* Child.start({ module, env, command: yield* node24 }),
      }
      for (const program of Object.values(programs)) yield* program.event("ready")
      const rounds: Array<Round> = []
      // The first round warms up.
      for (let n = 0; n <= run.rounds; n++) {
        const round: Record<string, Figures> = {}
        for (const [runtime, program] of Object.entries(programs)) {
          for (const inFlight of inFlights) {
            yield* run.tell(`round ${n} of ${run.rounds}: ${inFlight} in flight, ${runtime}`)
            for (const way of ways) {
              yield* program.tell(JSON.stringify({ way, inFlight, posts } satisfies Order))
              round[nameOf(runtime, way, inFlight)] = yield* program.event<Figures>("posted")
            }
          }
        }
        if (n > 0) rounds.push(round)
      }
      const of = (name: string, pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[name]!)))
      return {
        tables: [{
          title: `${posts} POSTs to four origins`,
          columns: ["", "CPU µs", "of undici.dispatch", "/s"],
          rows: Object.keys(programs).flatMap((runtime) =>
            inFlights.flatMap((inFlight) =>
              ways.map((way) => {
                const name = nameOf(runtime, way, inFlight)
                const before = nameOf(runtime, "undici.dispatch", inFlight)
                const ratio = median(rounds.map((round) => round[name]!.cpu / round[before]!.cpu))
                return [
                  name,
                  rounded(of(name, ({ cpu }) => cpu), 1),
                  rounded(ratio, 2),
                  Math.round(of(name, ({ rate }) => rate)),
                ]
              })
            )
          ),
        }],
        notes: [
          "Signing is in every figure; the receivers are a process of their own, and their CPU is not.",
          "Ratios within a round, medians over rounds; undici.dispatch is how deliveries went out before.",
        ],
        raw: rounds,
      } satisfies Finding
    }),
}
