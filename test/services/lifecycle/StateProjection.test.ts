import { assert, layer } from "@effect/vitest"
import { Effect, Random } from "effect"
import { PersonId } from "../../../schemas/BrandedIds.ts"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { changesOf, entriesOf, type StateEntry } from "../../../sdk/EventProjection.ts"
import type { VerifiedEvent, VerifiedSnapshot } from "../../../sdk/Verify.ts"
import { verifyEvent, verifySnapshot } from "../../../sdk/Verify.ts"
import { access, owner, person, project as tellProject } from "../../support/TestIdentity.ts"
import { everything, pinsFor, scene, signAll, transmitter } from "./LifecycleFixture.ts"

const keyed = (entries: ReadonlyArray<StateEntry>) =>
  new Map(entries.map((entry) => [`${entry.group} ${entry.id}`, entry.value]))

/** The state that a product reaches by applying `entries` as events. */
const after = (entries: ReadonlyArray<StateEntry>, events: ReadonlyArray<VerifiedEvent>) => {
  const state = keyed(entries)
  for (const event of events) {
    for (const { group, id, value } of changesOf(event)) {
      if (value === null) state.delete(`${group} ${id}`)
      else state.set(`${group} ${id}`, value)
    }
  }
  return state
}

const sorted = (state: ReadonlyMap<string, unknown>) => [...state].sort(([a], [b]) => a < b ? -1 : 1)

layer(transmitter, { excludeTestServices: true })("Fold", (it) => {
  it.effect(
    "a snapshot and the events after it make the same state as all events, through random histories",
    () =>
      Effect.gen(function* () {
        const { snapshot } = yield* CursorApi
        const kinds = new Set<string>()
        for (let history = 0; history < 4; history++) {
          const { asking, institution, project } = yield* scene
          const people = ["a b", "a", "u/x"].map((name) => `${name}-${project}`)
          const versions = new Map<string, number>()
          const next = (id: string) => {
            versions.set(id, (versions.get(id) ?? 0) + 1)
            return versions.get(id)!
          }
          const one = <A>(of: ReadonlyArray<A>) => Effect.map(Random.nextInt, (n) => of[Math.abs(n) % of.length]!)
          const idOf = (name: string) => name.replace(/[^A-Za-z0-9_-]/g, "_")
          const say = Effect.fnUntraced(function* (name: string) {
            const id = idOf(name)
            const status = yield* one(["active", "active", "suspended", "disabled"] as const)
            const subject = yield* one([name, name, `${name}/2`, `${name} 3`])
            yield* person({ id, version: next(id), subject, status })
          })
          const act = Effect.fnUntraced(function* () {
            const name = yield* one(people)
            const who = PersonId.make(idOf(name))
            switch (yield* one(["person", "access", "access", "owner", "project"] as const)) {
              case "person":
                return yield* say(name)
              case "access": {
                const id = `access-${who}`
                const [role, state] = [
                  yield* one(["user", "editor"]),
                  yield* one(["active", "active", "revoked"] as const),
                ]
                return yield* access(institution, project, who, { id, version: next(id), role, state })
              }
              case "owner": {
                const id = `owner-${who}`
                return yield* owner(project, who, { id, version: next(id), active: yield* one([true, false]) })
              }
              case "project": {
                const state = yield* one(["launched", "registered"] as const)
                return yield* tellProject(institution, { id: project, version: 1 + next(project), state })
              }
            }
          })
          for (const name of people) yield* say(name)
          const snapshots: Array<VerifiedSnapshot> = []
          const take = Effect.gen(function* () {
            const token = yield* snapshot(asking)
            const pins = yield* pinsFor(project)
            snapshots.push(yield* Effect.promise(() => verifySnapshot(token, project, pins)))
          })
          yield* take
          for (let i = 0; i < 24; i++) {
            yield* act()
            if (i % 6 === 5) yield* take
          }
          yield* signAll
          yield* take

          const pins = yield* pinsFor(project)
          const { items } = yield* everything(asking)
          const events = yield* Effect.forEach(items, ({ set }) => Effect.promise(() => verifyEvent(set, pins)))
          for (const { type } of events) kinds.add(type.slice(type.lastIndexOf("/") + 1))
          const now = sorted(keyed(entriesOf(snapshots.at(-1)!.state)))
          assert.isAbove(now.length, 3)
          assert.deepStrictEqual(sorted(after([], events)), now)
          for (const { position, state } of snapshots) {
            assert.deepStrictEqual(sorted(after(entriesOf(state), events.slice(position))), now)
            assert.deepStrictEqual(sorted(after([], events.slice(0, position))), sorted(keyed(entriesOf(state))))
          }
        }
        for (
          const kind of ["access-granted", "access-revoked", "session-revoked", "identity-linked", "account-disabled"]
        ) {
          assert.isTrue(kinds.has(kind), kind)
        }
      }),
    120_000,
  )
})
