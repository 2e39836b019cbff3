/**
 * Random histories of the real service and of the simple model, several at a time in one database. Each history has its
 * own people, domains and clock, so histories share only tables and servers.
 */
import { Effect, Semaphore } from "effect"
import fc from "fast-check"
import { randomUUID } from "node:crypto"
import { AccountId, DomainId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { domains, persons, type Real, type Services, type Step } from "./HistoryStep.ts"
import { line, steps } from "./HistorySteps.ts"
import { Model } from "./Model.ts"
import { noon } from "../../support/Fixtures.ts"
import { domainLine, feed, seatLine, timed } from "./TransferFixture.ts"

/** Histories at a time: while one waits for PostgreSQL, another runs. */
const parallel = 6
/** Histories whose people are created by one batch of the directory. */
const batchSize = 25

type Ground = Omit<Real, "run">

const ground = (): Ground => {
  const people = Array.from({ length: persons }, () => {
    const id = AccountId.make(randomUUID())
    return { id, email: `${id}@example.com`, workspaceId: WorkspaceId.make(randomUUID()) }
  })
  return {
    people,
    domains: Array.from({ length: domains }, () => DomainId.make(randomUUID())).sort(),
    seats: people.map(() => people.map(() => randomUUID())),
  }
}

const linesOf = ({ domains, people, seats }: Ground) => [
  ...people.map((person, n) => line(person, new Model(noon, persons, 0).people[n]!)),
  ...people.map(({ workspaceId: id }, n) => ({
    kind: "workspace",
    id,
    name: "W",
    created_at: `202${n}-01-01T00:00:00Z`,
  })),
  ...people.map(({ id, workspaceId }, n) => seatLine(seats[n]![n]!, workspaceId, id, "owner")),
  ...domains.map((id) => domainLine(id, people[0]!)),
]

/** Runs `count` histories; a failure shows the shortest failing history and its seed. */
export const histories = Effect.fnUntraced(function* (count: number) {
  const { owner } = yield* Database
  // Each step counts the audit records of its history: without an index it would read those of all histories.
  yield* owner`create index audit_of_subject on audit_records (subject)`
  const run = Effect.runPromiseWith(yield* Effect.context<Services>())
  const lock = Semaphore.makeUnsafe(1)
  const ready: Array<Ground> = []
  const take = lock.withPermit(Effect.gen(function* () {
    if (ready.length === 0) {
      const made = Array.from({ length: batchSize }, ground)
      yield* feed(...made.flatMap(linesOf))
      ready.push(...made)
    }
    return ready.pop()!
  }))

  const history = (commands: Iterable<Step>) =>
    timed(Effect.gen(function* () {
      const context = yield* Effect.context<Services>()
      const real: Real = { ...(yield* take), run: Effect.runPromiseWith(context) }
      yield* Effect.promise(() =>
        fc.asyncModelRun(() => ({ model: new Model(noon, persons, domains), real }), commands)
      )
    }))

  const share = (n: number) =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.commands([...steps], { maxCommands: 20, size: "max" }),
          (commands) => run(history(commands as Iterable<Step>)),
        ),
        { numRuns: Math.ceil((count - n) / parallel) },
      )
    )
  yield* Effect.forEach(Array.from({ length: Math.min(parallel, count) }).keys(), share, {
    concurrency: parallel,
    discard: true,
  })
})
