/** Random histories of the real service beside the plain model: `TRANSFER_HISTORIES` says how many. */
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { randomUUID } from "node:crypto"
import process from "node:process"
import { domains, persons, type Real, type Services, type Step } from "./HistoryStep.ts"
import { line, steps } from "./HistorySteps.ts"
import { Model } from "./Model.ts"
import { domainLine, feed, noon, seatLine, timed, world } from "./TransferWorld.ts"

const histories = Number(process.env["TRANSFER_HISTORIES"] ?? 60)

const setup = Effect.gen(function* () {
  const people = Array.from({ length: persons }, () => {
    const id = randomUUID()
    return { id, email: `${id}@example.com`, workspaceId: randomUUID() }
  })
  const ids = Array.from({ length: domains }, () => randomUUID()).sort()
  const seats = people.map(() => people.map(() => randomUUID()))
  yield* feed(
    ...people.map((person) => line(person, { active: true, limit: 2 })),
    ...people.map(({ workspaceId: id }, n) => ({
      kind: "workspace",
      id,
      name: "W",
      created_at: `202${n}-01-01T00:00:00Z`,
    })),
    ...people.map(({ id, workspaceId }, n) => seatLine(seats[n]![n]!, workspaceId, id, "owner")),
    ...ids.map((id) => domainLine(id, people[0]!)),
  )
  const context = yield* Effect.context<Services>()
  const run = Effect.runPromiseWith(context)
  return { people, domains: ids, seats, run } satisfies Real
})

layer(world(), { excludeTestServices: true, timeout: "60 seconds" })("histories", (it) => {
  it.effect(
    `${histories} random histories: every answer and every row as the model has them`,
    () =>
      Effect.gen(function* () {
        const run = Effect.runPromiseWith(yield* Effect.context<Services>())
        const history = (commands: Iterable<Step>) =>
          timed(Effect.gen(function* () {
            const real = yield* setup
            yield* Effect.promise(() =>
              fc.asyncModelRun(() => ({ model: new Model(noon, persons, domains), real }), commands)
            )
          }))
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(
              fc.commands([...steps], { maxCommands: 20, size: "max" }),
              (commands) => run(history(commands as Iterable<Step>)),
            ),
            { numRuns: histories },
          )
        )
      }),
    { timeout: 120_000 + histories * 3_000 },
  )
})
