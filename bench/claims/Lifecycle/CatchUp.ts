/**
 * A consumer that is far behind: the SDK follows a history from its beginning into SQLite and into PostgreSQL, each
 * page in one transaction, acknowledged after it, once a second at most. Beside it the same pages only read, and read
 * and verified.
 */
import { Effect } from "effect"
import { join } from "node:path"
import { encodeCursor } from "../../../schemas/identity/Cursor.ts"
import type * as Followers from "../../programs/measured/CatchUpProducts.ts"
import * as Child from "../../harness/Child.ts"
import { BenchError } from "../../harness/Child.ts"
import type { Run } from "../../harness/Claim.ts"
import { median, rounded, type Table } from "../../harness/Figures.ts"
import { cpuMillis } from "../../harness/Cpu.ts"
import { audience, installedVersion, projectId } from "../../harness/LifecycleSeed.ts"
import { pins } from "../../harness/LifecycleServices.ts"
import * as Product from "../../harness/Product.ts"
import { issuer, type ProjectHistory, serve, told } from "./ProjectHistory.ts"

const read = "pages that are read"
const ways = {
  [read]: "read",
  "pages that are verified": "verify",
  "followed into SQLite": "sqlite",
  "followed into PostgreSQL": "postgres",
} as const

export interface Figures {
  /** Events a second. */
  readonly rate: number
  /** Microseconds of CPU an event. */
  readonly consumer: number
  readonly program: number
  readonly postgres: number
}

export type Round = Readonly<Record<string, Figures>>

const once = (run: Run, history: ProjectHistory, name: string, how: Followers.Order["how"]) =>
  Effect.gen(function* () {
    const { events, services, fixture } = history
    // A consumer with a later acknowledged position is told so, and would take its own database for a restored one.
    yield* fixture.sql`delete from lifecycle_consumers where project_id = ${projectId(told)}`
    const program = yield* serve(run, history, "api")
    const url = yield* Product.ready(program)
    const consumer = yield* Child.start({ module: "bench/programs/measured/CatchUpProducts.ts" })
    yield* consumer.event("ready")
    const database = how === "postgres"
      ? (yield* run.servers.fixture()).ownerUrl
      : join(run.servers.home, `product-${crypto.randomUUID()}.db`)
    const order: Followers.Order = {
      how,
      database,
      baseUrl: url,
      projectId: projectId(told),
      issuer,
      audience: audience(told),
      pins: yield* pins(url),
      token: yield* services.token(told),
      installedVersion,
      head: events,
      cursor: encodeCursor({ epoch: 1, position: 0 }),
    }
    const used = () => ({
      consumer: cpuMillis(consumer.pid) ?? NaN,
      program: cpuMillis(program.pid) ?? NaN,
      postgres: run.servers.cpu().postgres,
    })
    const before = used()
    yield* consumer.tell(JSON.stringify(order))
    const caught = yield* Effect.raceFirst(consumer.event<Followers.Caught>("caught", 3_600), program.ended)
    const after = used()
    if (caught.fault !== null || caught.events !== events) {
      return yield* new BenchError({ message: `${name}: ${caught.events} of ${events} events, ${caught.fault}` })
    }
    const each = (of: keyof typeof before) => (after[of] - before[of]) * 1_000 / events
    return {
      rate: events / caught.seconds,
      consumer: each("consumer"),
      program: each("program"),
      postgres: each("postgres"),
    } satisfies Figures
  }).pipe(Effect.scoped)

export const catchUp = Effect.fnUntraced(function* (run: Run, history: ProjectHistory, round: number) {
  const figures: Record<string, Figures> = {}
  for (const [name, how] of Object.entries(ways)) {
    yield* run.tell(`round ${round} of ${run.rounds}: ${history.events} events, ${name}`)
    figures[name] = yield* once(run, history, name, how)
  }
  return figures as Round
})

export const catchUpTable = (rounds: ReadonlyArray<Round>, events: number): Table => {
  const of = (name: string, pick: (figures: Figures) => number) => median(rounds.map((round) => pick(round[name]!)))
  return {
    title: `A consumer that is ${events} events behind`,
    columns: ["", "events/s", "of reading", "CPU µs: consumer", "program", "postgres"],
    rows: Object.keys(ways).map((name) => [
      name,
      Math.round(of(name, ({ rate }) => rate)),
      rounded(median(rounds.map((round) => round[name]!.rate / round[read]!.rate)), 2),
      Math.round(of(name, ({ consumer }) => consumer)),
      Math.round(of(name, ({ program }) => program)),
      Math.round(of(name, ({ postgres }) => postgres)),
    ]),
  }
}
