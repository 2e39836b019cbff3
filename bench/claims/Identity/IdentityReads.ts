/**
 * Two reads of the identity API beside the same in Fastify + pg + jose on Node, over the same rows, in the same round.
 */
import { Effect } from "effect"
import * as Child from "../../harness/Child.ts"
import type { Run } from "../../harness/Claim.ts"
import { median, rounded, type Table } from "../../harness/Figures.ts"
import { cpuMillis } from "../../harness/Cpu.ts"
import { issuer, listed, lister, listers, reader, readers, reviews } from "../../harness/IdentityFixture.ts"
import type { PeopleTokens } from "../../harness/PeopleTokens.ts"
import { node24 } from "../../harness/Node24.ts"
import { sameAnswers } from "../../harness/SameAnswers.ts"
import * as Product from "../../harness/Product.ts"
import type { Fixture } from "../../harness/Servers.ts"
import * as queries from "../../programs/contenders/IdentityQueries.ts"
import { signer } from "../../programs/load/SignTokens.ts"

export const connections = 32

const own = "bailiwick"
const verifying = "Fastify + pg + jose"
const remembering = "the same, remembering tokens"
const names = [own, verifying, remembering] as const
type Name = (typeof names)[number]

const paths = {
  "GET /v1/me": "/v1/me",
  [`The list of ${reviews} reviews`]: `/v1/institutions/${listed}/access-grant-reviews`,
} as const

interface Driven {
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly answered: number
  readonly fault: string | null
}

/** The driver's figures, and microseconds of CPU for each answer. */
interface Figures extends Driven {
  readonly program: number
  readonly postgres: number
}

type Round = Readonly<Record<string, Readonly<Record<Name, Figures>>>>

const seconds = ({ quick }: Run) => quick ? 2 : 4

/** The answer's contents without the time of its reading. */
const answer = (port: number, path: string, token: string) =>
  Effect.tryPromise({
    try: async () => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${token}` } })
      if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
      const body = await response.json() as Readonly<Record<string, unknown>>
      return { ...body, as_of: null }
    },
    catch: (cause) => new Child.BenchError({ message: `identity: ${path}: ${String(cause)}` }),
  })

/** Starts the contenders on one database; `round` drives each of them once. */
export const reads = Effect.fnUntraced(function* (run: Run, fixture: Fixture, tokens: PeopleTokens) {
  const program = yield* Product.start(run.servers, fixture, {
    ROLES: "api,actors,timers",
    MANAGEMENT_ISSUERS: tokens.issuers,
    // A limit that is never reached; requests are counted all the same.
    MANAGEMENT_READ_RATE: "10000000",
  }, run.profile)
  const url = new URL(yield* Product.ready(program))
  const command = yield* node24
  const peer = Effect.fnUntraced(function* (remember: boolean) {
    const env = {
      DATABASE_URL: fixture.databaseUrl,
      QUERIES: JSON.stringify(queries),
      JWKS: tokens.jwks,
      ISSUER: issuer,
      REMEMBER: String(remember),
    }
    const child = yield* Child.start({ module: "bench/programs/contenders/FastifyIdentity.mjs", command, env })
    const { port } = yield* child.event<{ readonly port: number }>("listening")
    return { port, pid: child.pid }
  })
  const contenders: Readonly<Record<Name, { readonly port: number; readonly pid: number }>> = {
    [own]: { port: Number(url.port), pid: program.pid },
    [verifying]: yield* peer(false),
    [remembering]: yield* peer(true),
  }
  const sign = yield* Effect.promise(() => signer(tokens.keys.RS256))
  const tokensOf = (people: number, person: (n: number) => string) =>
    Effect.promise(() => Promise.all(Array.from({ length: people }, (_, n) => sign(person(n)))))
  const [mine, theirs] = [yield* tokensOf(readers, reader), yield* tokensOf(listers, lister)]
  const keysOf = (path: string) => path === paths["GET /v1/me"] ? mine : theirs
  for (const path of Object.values(paths)) {
    const answers = yield* Effect.forEach(names, (n) => answer(contenders[n].port, path, keysOf(path)[0]!))
    yield* sameAnswers(path, answers)
  }
  const load = yield* Child.start({ module: "bench/programs/load/KeepAliveLoad.ts" })
  const drive = Effect.fnUntraced(function* (name: Name, path: string) {
    const { pid, port } = contenders[name]
    const used = () => ({ program: cpuMillis(pid) ?? NaN, postgres: run.servers.cpu().postgres })
    const before = used()
    const order = { port, path, keys: keysOf(path), connections, warmSeconds: 1, seconds: seconds(run) }
    yield* load.tell(JSON.stringify(order))
    const driven = yield* load.event<Driven>("driven")
    if (driven.fault !== null) return yield* new Child.BenchError({ message: `${path}: ${driven.fault}` })
    const after = used()
    const each = (of: "program" | "postgres") => (after[of] - before[of]) * 1_000 / driven.answered
    return { ...driven, program: each("program"), postgres: each("postgres") } satisfies Figures
  })
  const round = Effect.gen(function* () {
    const figures: Record<string, Record<Name, Figures>> = {}
    for (const [title, path] of Object.entries(paths)) {
      const found: Partial<Record<Name, Figures>> = {}
      for (const name of names) found[name] = yield* drive(name, path)
      figures[title] = found as Record<Name, Figures>
    }
    return figures as Round
  })
  return { round }
})

export const readsTables = (rounds: ReadonlyArray<Round>): ReadonlyArray<Table> =>
  Object.keys(paths).map((title) => ({
    title,
    columns: ["", "/s", "p50 ms", "p99 ms", "CPU µs: program", "postgres", "bailiwick to it: rate", "CPU"],
    rows: names.map((name) => {
      const of = (pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[title]![name])))
      const ratio = (pick: (figures: Figures) => number) =>
        rounded(median(rounds.map((round) => pick(round[title]![own]) / pick(round[title]![name]))), 2)
      return [
        name,
        Math.round(of(({ rate }) => rate)),
        rounded(of(({ p50 }) => p50), 1),
        rounded(of(({ p99 }) => p99), 1),
        Math.round(of(({ program }) => program)),
        Math.round(of(({ postgres }) => postgres)),
        ratio(({ rate }) => rate),
        ratio(({ postgres, program }) => program + postgres),
      ]
    }),
  }))
