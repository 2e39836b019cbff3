/**
 * A product as its own process (Mortal.ts) beside the transmitter. Each process is killed at a point; afterwards its
 * facts must be exactly those of the events up to its position. The last process is not killed and must end equal to
 * the transmitter.
 */
import { assert } from "vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { Server } from "../../src/http/Server.ts"
import { changesOf, type StateEntry } from "../../sdk/EventProjection.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import { ask, type Store } from "../../sdk/Store.ts"
import { verifyEvent } from "../../sdk/Verify.ts"
import { until } from "../e2e/support/Until.ts"
import { start } from "../support/Processes.ts"
import { access, owner, person } from "../support/TestIdentity.ts"
import { everything, pinsFor, type Scene } from "../services/lifecycle/LifecycleFixture.ts"
import { issuer, sorted, stateNow } from "./KitFixture.ts"

/** The settings of a program that receives by a stream. */
export interface Stream {
  readonly env: Readonly<Record<string, string>>
  /** Called with the port on which the program listens for pushes. */
  readonly arrives?: (port: number) => void
}

/** Changes that make events of several kinds, in one transaction and in several. */
export const happen = Effect.fnUntraced(function* ({ institution, project }: Pick<Scene, "institution" | "project">) {
  const [one, other] = [yield* person(), yield* person()]
  const [kept, lost] = [randomUUID(), randomUUID()]
  yield* access(institution, project, one, { id: kept })
  yield* access(institution, project, other, { id: lost })
  yield* access(institution, project, one, { id: kept, version: 2, role: "editor" })
  yield* access(institution, project, other, { id: lost, version: 2, state: "revoked" })
  yield* person({ id: one, version: 2, status: "suspended" })
  yield* owner(project, other)
})

/** A product whose rows are read through `store`; it receives by a stream, or by cursor. */
export const lives = Effect.fnUntraced(function* (
  { asking, ...made }: Scene,
  store: Store<unknown>,
  more: Readonly<Record<string, string>>,
  stream?: Stream,
) {
  const { url } = yield* Server
  const keys = yield* SigningKeys
  yield* keys.ensure
  const { clientId, projectId } = asking
  const { mintAccessToken } = yield* EmbeddedIssuer
  const env = {
    BAILIWICK_URL: url,
    LIFECYCLE_ISSUER: issuer,
    PROJECT_ID: projectId,
    LIFECYCLE_TOKEN: yield* mintAccessToken({ subject: clientId, clientId, audience: "service-lifecycle" }),
    LIFECYCLE_PINS: (yield* keys.jwks).keys.map(({ kid }) => kid).join(","),
    ...stream?.env,
    ...more,
  }
  const begin = Effect.fnUntraced(function* (fault: string) {
    const program = yield* start({ module: "test/sdk/Mortal.ts", env: { ...env, FAULT: fault } })
    // The program may be killed before it listens.
    if (stream?.arrives !== undefined) {
      const { arrives } = stream
      yield* Effect.forkScoped(
        Effect.match(program.line(/listening on (\d+)/), {
          onFailure: () => {},
          onSuccess: ([, port]) => arrives(Number(port)),
        }),
      )
    }
    return program
  })
  /** The standing and the facts, with the row locked against other processes of the product. */
  const seen = Effect.promise(() =>
    store.transact(function* () {
      yield* ask("update bailiwick_consumer set project_id = project_id")
      return { place: yield* Ledger.standing(projectId), facts: sorted(yield* Ledger.facts(projectId)) }
    })
  )

  /** Asserts that the facts are those of the events up to the position. */
  const whole = Effect.gen(function* () {
    const { facts, place } = yield* seen
    if (place === null) return assert.deepStrictEqual(facts, [])
    const pins = { ...(yield* pinsFor(projectId)), issuer }
    // A snapshot reaches to the head, also where its newest events are not signed yet; a page has signed events only.
    const { items } = yield* until(
      "every event up to the position signed",
      everything(asking, undefined, 200),
      (page) => page.items.length >= place.position,
    )
    const state = new Map<string, StateEntry>()
    for (const { set } of items.slice(0, place.position)) {
      const event = yield* Effect.promise(() => verifyEvent(set, pins))
      for (const { group, id, value } of changesOf(event)) {
        if (value === null) state.delete(`${group} ${id}`)
        else state.set(`${group} ${id}`, { group, id, value })
      }
    }
    assert.deepStrictEqual(facts, sorted([...state.values()]))
  })

  /** Makes changes until the program has killed itself at the fault; asserts its facts. */
  const killed = Effect.fnUntraced(function* (fault: string) {
    const doomed = yield* begin(fault)
    const soon = Effect.timeoutOption(doomed.exited, "150 millis")
    // A later hit of the fault needs more events, also if the program started late.
    const some = (times: number, dead: typeof soon) =>
      Effect.repeat(Effect.andThen(happen({ ...made }), dead), { until: (exit) => exit._tag === "Some", times })
    // The transmitter waits longer after each failed push.
    const code = yield* Effect.flatMap(
      some(40, soon),
      (exit) =>
        exit._tag === "Some" ? Effect.succeed(exit) : some(12, Effect.timeoutOption(doomed.exited, "5 seconds")),
    )
    assert.deepStrictEqual(
      [code._tag, code._tag === "Some" && code.value],
      ["Some", null],
      `${fault}: ${doomed.output()}`,
    )
    yield* whole
  }, Effect.scoped)

  /** Runs the program until the transmitter has the acknowledgement of all events; asserts that both are equal. */
  const survives = Effect.fnUntraced(function* () {
    const { sql } = yield* Database
    const last = yield* begin("")
    yield* happen(made)
    const head = yield* stateNow({ asking })
    const heard = Effect.map(
      sql<{ at: bigint }>`
        select acknowledged_position as at from lifecycle_consumers where project_id = ${projectId}`,
      ([row]) => Number(row?.at ?? 0),
    )
    yield* until("everything acknowledged", heard, (at) => at === head.position)
    yield* until("open", seen, ({ place }) => place?.open === true)
    yield* last.kill("SIGTERM")
    yield* last.exited
    const { facts, place } = yield* seen
    assert.deepInclude(place, { open: true, position: head.position })
    assert.deepStrictEqual(facts, head.facts)
    assert.notMatch(last.output(), /"(closed|retrying|unacknowledged)"/)
  }, Effect.scoped)

  return { begin, killed, survives }
})
