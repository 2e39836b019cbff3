/** A snapshot of a project with many Accesses: its time and memory, beside a bare select, JSON and signature. */
import { Effect } from "effect"
import { join } from "node:path"
import { encodeCursor } from "../../../schemas/identity/Cursor.ts"
import type * as Followers from "../../programs/measured/CatchUpProducts.ts"
import * as Child from "../../harness/Child.ts"
import { BenchError } from "../../harness/Child.ts"
import type { Run } from "../../harness/Claim.ts"
import { median, rounded, type Table } from "../../harness/Figures.ts"
import { forgetPeak, peakMegabytes, rssMegabytes } from "../../harness/Cpu.ts"
import { audience, installedVersion, projectId } from "../../harness/LifecycleSeed.ts"
import { asked, pins } from "../../harness/LifecycleServices.ts"
import * as Product from "../../harness/Product.ts"
import { issuer, type ProjectHistory, serve, standing } from "./ProjectHistory.ts"

const bare = "bare: select, JSON, sign"
const answer = "bailiwick: the answer to GET …/snapshot"
const whole = "bailiwick: fetched, verified and in the product's SQLite"
const names = [bare, answer, whole]

export interface Figures {
  readonly seconds: number
  /** MB, resident, of the process that makes it. */
  readonly before: number
  readonly most: number
}

export type Round = Readonly<Record<string, Figures>>

/** Time and memory of a snapshot in the process `pid`. */
const measured = Effect.fnUntraced(function* <E>(pid: number, seconds: Effect.Effect<number, E>) {
  const before = rssMegabytes(pid) ?? NaN
  yield* Effect.sync(() => forgetPeak(pid))
  return { seconds: yield* seconds, before, most: peakMegabytes(pid) ?? NaN } satisfies Figures
})

const timed = <A, E>(work: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const from = performance.now()
    yield* work
    return (performance.now() - from) / 1_000
  })

const byHand = ({ accesses, fixture }: ProjectHistory) =>
  Effect.gen(function* () {
    const program = yield* Child.start({
      module: "bench/programs/contenders/BareSnapshot.ts",
      env: { DATABASE_URL: fixture.ownerUrl, PROJECT_ID: projectId(standing) },
    })
    yield* program.event("ready")
    const made = Effect.gen(function* () {
      yield* program.tell("snapshot")
      const { facts, seconds } = yield* program.event<{ readonly facts: number; readonly seconds: number }>("made")
      return facts === accesses
        ? seconds
        : yield* new BenchError({ message: `snapshot: ${facts} of ${accesses} facts` })
    })
    yield* made
    return yield* measured(program.pid, made)
  }).pipe(Effect.scoped)

/** The second snapshot of a running program: the first pays for compiling. */
const byProgram = (run: Run, history: ProjectHistory, round: number) =>
  Effect.gen(function* () {
    const { accesses, services } = history
    const program = yield* serve(run, history, "api")
    const url = yield* Product.ready(program)
    const token = yield* services.token(standing)
    const get = asked(new URL(`/v1/projects/${projectId(standing)}/lifecycle/snapshot`, url), { token })
    yield* get
    const answered = yield* measured(program.pid, timed(get))
    const product = yield* Child.start({ module: "bench/programs/measured/CatchUpProducts.ts" })
    yield* product.event("ready")
    const order: Followers.Order = {
      how: "snapshot",
      baseUrl: url,
      projectId: projectId(standing),
      issuer,
      audience: audience(standing),
      pins: yield* pins(url),
      token,
      installedVersion,
      cursor: encodeCursor({ epoch: 1, position: 0 }),
      head: accesses,
      database: join(run.servers.home, `snapshot-${round}.db`),
    }
    const fetched = yield* measured(
      program.pid,
      Effect.gen(function* () {
        yield* product.tell(JSON.stringify(order))
        const { fault, seconds } = yield* product.event<Followers.Caught>("caught", 180)
        return fault === null ? seconds : yield* new BenchError({ message: `snapshot: ${fault}` })
      }),
    )
    return { [answer]: answered, [whole]: fetched } as const
  }).pipe(Effect.scoped)

export const snapshot = Effect.fnUntraced(function* (run: Run, history: ProjectHistory, round: number) {
  yield* run.tell(`round ${round} of ${run.rounds}: snapshots of ${history.accesses} accesses`)
  return { [bare]: yield* byHand(history), ...yield* byProgram(run, history, round) } as Round
})

export const snapshotTable = (rounds: ReadonlyArray<Round>, accesses: number): Table => {
  const of = (name: string, pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[name]!)))
  return {
    title: `A snapshot of ${accesses} accesses`,
    columns: ["", "seconds", "to bare", "MB before", "MB at most"],
    rows: names.map((name) => [
      name,
      rounded(of(name, ({ seconds }) => seconds), 2),
      rounded(median(rounds.map((round) => round[name]!.seconds / round[bare]!.seconds)), 2),
      Math.round(of(name, ({ before }) => before)),
      Math.round(of(name, ({ most }) => most)),
    ]),
  }
}
