/** Access tokens verified a second by the program's verifier and by bare jose, on this runtime and on Node 24. */
import { Effect } from "effect"
import * as Child from "../../harness/Child.ts"
import type { Run } from "../../harness/Claim.ts"
import { median, rounded, type Table } from "../../harness/Figures.ts"
import { type Algorithm, algorithms, type PeopleTokens } from "../../harness/PeopleTokens.ts"
import { node24 } from "../../harness/Node24.ts"
import type { Order, Way } from "../../programs/measured/Verifications.ts"

interface Figures {
  readonly rate: number
  /** Microseconds of CPU each, all threads together. */
  readonly micros: number
}

const runtimes = ["here", "Node 24"] as const
type Runtime = (typeof runtimes)[number]

const contenders: ReadonlyArray<readonly [Runtime, Way]> = [
  ["here", "first seen"],
  ["here", "bare jose"],
  ["here", "seen before"],
  ["Node 24", "first seen"],
  ["Node 24", "bare jose"],
]

const nameOf = ([runtime, way]: readonly [Runtime, Way]) =>
  `${way === "bare jose" ? way : `the program's verifier, ${way}`}${runtime === "here" ? "" : `, ${runtime}`}`

type Round = Readonly<Record<string, Readonly<Record<Algorithm, Figures>>>>

/** Starts a verifier on each runtime; `round` lets each of them verify. */
export const verification = Effect.fnUntraced(function* (run: Run, { jwks, keys }: PeopleTokens) {
  const tokens = run.quick ? 300 : 1_000
  const env = { JWKS: jwks, KEYS: JSON.stringify(keys), TOKENS: String(tokens) }
  const module = "bench/programs/measured/Verifications.ts"
  const children: Readonly<Record<Runtime, Child.Child>> = {
    here: yield* Child.start({ module, env }),
    "Node 24": yield* Child.start({ module, env, command: yield* node24 }),
  }
  for (const runtime of runtimes) yield* children[runtime].event("ready")
  const verify = Effect.fnUntraced(function* (runtime: Runtime, way: Way, alg: Algorithm) {
    const times = way === "seen before" ? 30 : 3
    yield* children[runtime].tell(JSON.stringify({ alg, way, tokens, times } satisfies Order))
    return yield* children[runtime].event<Figures>("verified")
  })
  const round = Effect.gen(function* () {
    const figures: Record<string, Record<Algorithm, Figures>> = {}
    for (const contender of contenders) {
      const found: Partial<Record<Algorithm, Figures>> = {}
      for (const alg of algorithms) found[alg] = yield* verify(...contender, alg)
      figures[nameOf(contender)] = found as Record<Algorithm, Figures>
    }
    return figures as Round
  })
  return { round }
})

export const verificationTable = (rounds: ReadonlyArray<Round>): Table => ({
  title: "Access tokens verified a second, each another one",
  columns: ["", ...algorithms.flatMap((alg) => [`${alg}: /s`, "CPU µs", "to bare jose there"])],
  rows: contenders.map((contender) => {
    const name = nameOf(contender)
    const bare = nameOf([contender[0], "bare jose"])
    return [
      name,
      ...algorithms.flatMap((alg) => {
        const of = (pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[name]![alg])))
        const ratio = median(rounds.map((round) => round[name]![alg].rate / round[bare]![alg].rate))
        return [Math.round(of(({ rate }) => rate)), rounded(of(({ micros }) => micros), 1), rounded(ratio, 2)]
      }),
    ]
  }),
})
