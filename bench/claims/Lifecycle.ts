/**
 * The lifecycle's claims: the time until a decision is a signed message at its products, signatures a second, the cost
 * of a snapshot and a page, and the speed of a consumer that catches up. Everything that arrives is verified.
 */
import { Effect } from "effect"
import process from "node:process"
import { BenchError } from "../harness/Child.ts"
import type { Claim, Finding, Run } from "../harness/Claim.ts"
import type { Table } from "../harness/Figures.ts"
import { fill } from "../harness/LifecycleSeed.ts"
import { type Services, services } from "../harness/LifecycleServices.ts"
import { arrival, arrivalTables, rate } from "./Lifecycle/Arrival.ts"
import { catchUp, catchUpTable } from "./Lifecycle/CatchUp.ts"
import { history, type ProjectHistory } from "./Lifecycle/ProjectHistory.ts"
import { pages, pagesTables } from "./Lifecycle/Pages.ts"
import { signing, signingTable } from "./Lifecycle/Signing.ts"
import { snapshot, snapshotTable } from "./Lifecycle/Snapshot.ts"

const template = "lifecycle"
const projects = 50

const parts = ["arrival", "signing", "snapshot", "pages", "catch-up"] as const
type Part = (typeof parts)[number]

const broken = (cause: unknown) =>
  cause instanceof BenchError ? cause : new BenchError({ message: `lifecycle: ${String(cause)}` })

/** LIFECYCLE_EVENTS: the length of the history that is read. All reads of it are linear in it. */
const sizesOf = ({ quick }: Run) => ({
  messages: quick ? 2_000 : 10_000,
  accesses: quick ? 10_000 : 100_000,
  events: Number(process.env["LIFECYCLE_EVENTS"] ?? (quick ? 20_000 : 100_000)),
})

interface Measured {
  readonly tables: ReadonlyArray<Table>
  readonly rounds: ReadonlyArray<unknown>
}

const repeated = Effect.fnUntraced(function* <A, E, R>(
  run: Run,
  once: (round: number) => Effect.Effect<A, E, R>,
  tablesOf: (rounds: ReadonlyArray<A>) => ReadonlyArray<Table>,
) {
  const rounds: Array<A> = []
  for (let round = 1; round <= run.rounds; round++) rounds.push(yield* once(round))
  return { tables: tablesOf(rounds), rounds } satisfies Measured
})

const measured = Effect.fnUntraced(function* (run: Run, wanted: (part: Part) => boolean, followers: Services) {
  const sizes = sizesOf(run)
  const found: Partial<Record<Part, Measured>> = {}
  yield* run.servers.template(template, fill(projects))
  if (wanted("arrival")) {
    found["arrival"] = yield* repeated(run, (n) => arrival(run, template, projects, followers, n), arrivalTables)
  }
  if (wanted("signing")) {
    found["signing"] = yield* repeated(
      run,
      (n) => signing(run, template, projects, sizes.messages, n),
      (rounds) => [signingTable(rounds, sizes.messages)],
    )
  }
  const inHistory = (long: ProjectHistory) =>
    Effect.gen(function* () {
      if (wanted("snapshot")) {
        found["snapshot"] = yield* repeated(
          run,
          (n) => snapshot(run, long, n),
          (rounds) => [snapshotTable(rounds, long.accesses)],
        )
      }
      if (wanted("pages")) found["pages"] = yield* repeated(run, (n) => pages(run, long, n), pagesTables)
      if (wanted("catch-up")) {
        found["catch-up"] = yield* repeated(
          run,
          (n) => catchUp(run, long, n),
          (rounds) => [catchUpTable(rounds, long.events)],
        )
      }
    })
  if (wanted("snapshot") || wanted("pages") || wanted("catch-up")) {
    yield* inHistory(yield* history(run, template, followers, sizes.events, sizes.accesses))
  }
  return found
})

/** `only` names the parts to run, for work on one of them. */
export const lifecycle = (only?: ReadonlyArray<string>): Claim => ({
  name: "lifecycle",
  title: "Lifecycle: decisions as signed messages",
  measure: (run) =>
    Effect.gen(function* () {
      const unknown = only?.find((name) => !parts.some((part) => part === name))
      if (unknown !== undefined) return yield* broken(`${unknown} is not one of ${parts.join(", ")}`)
      const found = yield* measured(run, (part) => only?.includes(part) ?? true, yield* services)
      const sizes = sizesOf(run)
      return {
        tables: parts.flatMap((part) => found[part]?.tables ?? []),
        notes: [
          `Arrivals: ${run.quick ? 3 : 10} s at ${rate} decisions a second over ${projects} projects after ${
            2 * rate
          } of warming up, each appended by Positions in a transaction of the driver process, which also receives the messages: one clock. Every message was verified, in the order of its project's positions.`,
          "The yardstick of arrivals commits the same, publishes and POSTs from memory at once, and signs nothing and stores no message.",
          `Signing: RS256 with 2048 bits, the bare ones 8 at once in one process; the program's way is OpenSSL where the system has it, else jose; ${sizes.messages} facts of ${projects} projects that commit together, after a fifth of them to warm up; until the broker has acknowledged the last.`,
          `Pages and catching up: a history of ${sizes.events} events (LIFECYCLE_EVENTS), signed by the program; all reads are linear in its length. A follower starts with an empty state at position 0 and ends at the head with access open.`,
          "The peers of pages check no grant and record no delivery; their answers were compared first and are equal.",
          "Medians over rounds, ratios within a round.",
        ],
        raw: Object.fromEntries(parts.map((part) => [part, found[part]?.rounds])),
      } satisfies Finding
    }).pipe(Effect.mapError(broken)),
})
