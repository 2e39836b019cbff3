/**
 * A page of a thousand signed events, by cursor and by poll (RFC 8936), beside plain node:http that serves the same
 * rows.
 */
import { Effect } from "effect"
import { isDeepStrictEqual } from "node:util"
import { encodeCursor } from "../../../schemas/identity/Cursor.ts"
import * as Child from "../../harness/Child.ts"
import { BenchError } from "../../harness/Child.ts"
import type { Run } from "../../harness/Claim.ts"
import { median, rounded, type Table } from "../../harness/Figures.ts"
import { cpuMillis } from "../../harness/Cpu.ts"
import { projectId } from "../../harness/LifecycleSeed.ts"
import { asked } from "../../harness/LifecycleServices.ts"
import { pollStream } from "../../harness/LifecycleStreams.ts"
import * as Product from "../../harness/Product.ts"
import { type ProjectHistory, serve, told } from "./ProjectHistory.ts"

export const pageSize = 1_000
const connections = [1, 8]

const bare = "node:http + postgres.js, by cursor"
const cursor = "bailiwick, by cursor"
const poll = "bailiwick, by poll"
const names = [bare, cursor, poll]

interface Driven {
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly answered: number
  readonly fault: string | null
}

/** Microseconds of CPU are those of a page. */
interface Figures extends Driven {
  readonly program: number
  readonly postgres: number
}

/** By contender and number of connections. */
export type Round = Readonly<Record<string, Readonly<Record<number, Figures>>>>

interface Contender {
  readonly port: number
  readonly pid: number
  readonly path: string
  readonly body?: string
}

/** The contenders, their answers compared. */
const contenders = Effect.fnUntraced(function* (run: Run, history: ProjectHistory) {
  const { services, fixture } = history
  const program = yield* serve(run, history, "api")
  const url = yield* Product.ready(program)
  const token = yield* services.token(told)
  const byHand = yield* Child.start({
    module: "bench/programs/contenders/BareEvents.ts",
    env: { DATABASE_URL: fixture.databaseUrl },
  })
  const { port } = yield* byHand.event<{ readonly port: number }>("listening")
  const from = encodeCursor({ epoch: 1, position: Math.min(5_000, history.events - pageSize) })
  const path = `/v1/projects/${projectId(told)}/lifecycle/events?after=${from}&limit=${pageSize}`
  const [own, other] = yield* Effect.forEach(
    [url, `http://127.0.0.1:${port}`],
    (base) => Effect.map(asked(new URL(path, base), { token }), (text) => JSON.parse(text)),
  )
  if (!isDeepStrictEqual(own, other) || own.items.length !== pageSize) {
    return yield* new BenchError({ message: "pages: the answers differ, or are no whole page" })
  }

  // From the beginning of the history, not from the stream's creation.
  const polled = yield* pollStream(url, services, told)
  yield* fixture.sql`update lifecycle_streams set epoch = 1, position = 0 where project_id = ${projectId(told)}`
  const body = JSON.stringify({ maxEvents: pageSize, returnImmediately: true })
  const { moreAvailable, sets } = JSON.parse(yield* asked(new URL(polled, url), { token, body: JSON.parse(body) }))
  if (Object.keys(sets).length !== pageSize || moreAvailable !== true) {
    return yield* new BenchError({ message: `pages: a poll gave ${Object.keys(sets).length} messages` })
  }
  const here = { port: Number(new URL(url).port), pid: program.pid }
  const all: Readonly<Record<string, Contender>> = {
    [bare]: { port, pid: byHand.pid, path },
    [cursor]: { ...here, path },
    [poll]: { ...here, path: polled, body },
  }
  return { all, token }
})

export const pages = (run: Run, history: ProjectHistory, round: number) =>
  Effect.gen(function* () {
    yield* run.tell(`round ${round} of ${run.rounds}: pages of ${pageSize} events`)
    const { all, token } = yield* contenders(run, history)
    const load = yield* Child.start({ module: "bench/programs/load/KeepAliveLoad.ts" })
    yield* load.event("ready")
    const drive = Effect.fnUntraced(function* ({ pid, ...to }: Contender, connections: number) {
      const used = () => ({ program: cpuMillis(pid) ?? NaN, postgres: run.servers.cpu().postgres })
      const before = used()
      yield* load.tell(
        JSON.stringify({ ...to, keys: [token], connections, warmSeconds: 1, seconds: run.quick ? 1 : 4 }),
      )
      const driven = yield* load.event<Driven>("driven")
      if (driven.fault !== null) return yield* new BenchError({ message: `pages: ${driven.fault}` })
      const after = used()
      const each = (of: "program" | "postgres") => (after[of] - before[of]) * 1_000 / driven.answered
      return { ...driven, program: each("program"), postgres: each("postgres") } satisfies Figures
    })
    const figures: Record<string, Record<number, Figures>> = {}
    for (const name of names) {
      figures[name] = {}
      for (const count of connections) figures[name][count] = yield* drive(all[name]!, count)
    }
    return figures as Round
  }).pipe(Effect.scoped)

export const pagesTables = (rounds: ReadonlyArray<Round>): ReadonlyArray<Table> =>
  connections.map((count) => {
    const of = (name: string, pick: (figures: Figures) => number) =>
      median(rounds.map((round) => pick(round[name]![count]!)))
    return {
      title: `A page of ${pageSize} signed events, ${count} ${count === 1 ? "connection" : "connections"}`,
      columns: ["", "p50 ms", "p99 ms", "pages/s", "of bare", "CPU µs: program", "postgres"],
      rows: names.map((name) => [
        name,
        rounded(of(name, ({ p50 }) => p50), 1),
        rounded(of(name, ({ p99 }) => p99), 1),
        Math.round(of(name, ({ rate }) => rate)),
        rounded(median(rounds.map((round) => round[name]![count]!.rate / round[bare]![count]!.rate)), 2),
        Math.round(of(name, ({ program }) => program)),
        Math.round(of(name, ({ postgres }) => postgres)),
      ]),
    }
  })
