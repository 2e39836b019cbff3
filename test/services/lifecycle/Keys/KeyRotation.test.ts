/** Rotation of signing keys, on a clock that the test moves. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { announcedBy, compromisedBy } from "../../../../sdk/EventProjection.ts"
import { KeyRotation } from "../../../../services/lifecycle/KeyRotation.ts"
import { EventSigner } from "../../../../services/lifecycle/EventSigner.ts"
import { SigningKeys } from "../../../../services/lifecycle/SigningKeys.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { load } from "../../../../src/AppConfig.ts"
import { day } from "../../../support/Fixtures.ts"
import { access, person } from "../../../support/TestIdentity.ts"
import { now, timed } from "../../transfers/TransferFixture.ts"
import { consumer, expired, rotating, served, signedBy, states, work } from "./KeysFixture.ts"
import { everything, type Scene, scene, signAll, transmitter } from "../LifecycleFixture.ts"

/** Appends and signs one more event. */
const change = Effect.fnUntraced(function* ({ institution, project }: Scene) {
  yield* access(institution, project, yield* person())
  yield* signAll
})

const pair = ([one, other]: ReadonlyArray<string>) => [one!, other!] as const

const expiry = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error) => error instanceof Error ? error.name : String(error))

/** Rotation with the defaults of an empty configuration. */
const unconfigured = Layer.unwrap(Effect.map(
  Effect.provideService(load, ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({})),
  ({ keyTransitionDeadline }) => KeyRotation.layer({ deadlineMillis: keyTransitionDeadline }),
))

describe("a rotation", () => {
  it.live("waits at most 14 days for acknowledgements, and the old key verifies for exactly 7 days more", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const [prompt, late] = [yield* scene, yield* scene]
      const [one, other] = [yield* consumer(prompt), yield* consumer(late)]
      for (const own of [one, other]) {
        yield* work
        yield* own.read
        yield* own.acknowledge
      }
      const before = yield* states
      const first = before.active[0]!
      const [second, third] = pair(before.announced)
      assert.deepStrictEqual(yield* served, [first])

      // The old key signs the announcement to every project; the new key is served once all are told; no early switch.
      const start = (yield* now) + day
      assert.strictEqual(yield* rotation.announce(start), second)
      yield* work
      const told = (yield* one.read).at(-1)!
      assert.deepStrictEqual([told.kid, announcedBy(told)], [first, [second, third]])
      assert.deepInclude(told.payload as object, { not_before: start / 1_000 })
      assert.deepStrictEqual((yield* states).published, [second])
      assert.deepStrictEqual(yield* served, [first, second])
      yield* one.acknowledge
      yield* TestClock.setTime(start - 1)
      yield* work
      assert.strictEqual((yield* rotation.list).transition!.switched, 0)
      assert.strictEqual((yield* Effect.flip(rotation.announce(0))).name, "KeyRefused")

      // A project whose consumers acknowledged switches at once; a late consumer is listed by name.
      yield* TestClock.setTime(start)
      yield* work
      const { transition } = yield* rotation.list
      assert.deepInclude(transition, { switched: 1, left: 1, untold: 0 })
      assert.deepStrictEqual(transition!.waiting, [
        { projectId: late.project, consumers: [`${late.asking.issuer} ${late.asking.clientId}`] },
      ])
      const [arrived] = yield* one.read
      const fourth = (yield* states).announced.at(-1)!
      assert.deepStrictEqual([arrived!.kid, announcedBy(arrived!)], [second, [third, fourth]])
      yield* change(late)
      assert.strictEqual((yield* signedBy(late.project)).at(-1), first)

      // The deadline, and not a millisecond before it.
      yield* TestClock.setTime(start + 14 * day - 1)
      yield* work
      assert.strictEqual((yield* rotation.list).transition!.left, 1)
      assert.isFalse(yield* expired(one))
      yield* TestClock.setTime(start + 14 * day)
      yield* work
      assert.isNull((yield* rotation.list).transition)
      assert.deepInclude(yield* states, { retiring: [first], active: [second], announced: [third, fourth] })
      assert.isTrue(yield* expired(other))
      assert.isFalse(yield* expired(one))
      assert.strictEqual(yield* other.catchUp, second)
      yield* change(late)
      assert.deepStrictEqual((yield* other.read).map(({ kid }) => kid), [second])

      // The old key verifies for 7 days more; then it signs and verifies nothing, and no cursor leads there.
      const { sql } = yield* Database
      const stranger = yield* consumer(prompt)
      yield* TestClock.setTime(start + 21 * day - 1)
      yield* work
      assert.deepStrictEqual(yield* served, [first, second])
      assert.strictEqual((yield* Effect.flip(rotation.retire(first))).name, "KeyRefused")
      assert.isAbove((yield* everything(prompt.asking)).items.length, 3)
      yield* TestClock.setTime(start + 21 * day)
      yield* work
      assert.deepStrictEqual((yield* states).retired, [first])
      assert.deepStrictEqual(yield* served, [second])
      assert.deepStrictEqual(
        yield* sql`select private_key, vault_kid from signing_keys where kid = ${first}`,
        [{ private_key: null, vault_kid: null }],
      )
      assert.strictEqual(yield* expiry(everything(prompt.asking)), "CursorExpired")
      assert.isFalse(yield* expired(stranger))
      assert.isFalse(yield* expired(one))
    }).pipe(Effect.provide(unconfigured), timed, Effect.provide(transmitter)))
})

describe("a rotation without consumers to wait for", () => {
  it.live("happens once under concurrent calls, and a project made meanwhile starts with a key that goes on", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const { sql } = yield* Database
      const scenes = yield* Effect.forEach([1, 2, 3], () => scene)
      yield* work
      const [second] = (yield* states).announced
      yield* rotation.announce(0)
      const rush = Effect.all([rotation.advance, rotation.advance, rotation.advance, rotation.advance], {
        concurrency: "unbounded",
      })
      const unsigned = Effect.andThen(rush, rotation.list)
      yield* Effect.repeat(unsigned, { until: ({ transition }) => transition!.left === 0 })
      // The rotation does not end before the old key has signed the events that are its own.
      yield* rush
      assert.strictEqual((yield* rotation.list).transition!.left, 0)
      const late = yield* scene
      yield* signAll
      const signed = Effect.andThen(Effect.andThen(rush, signAll), rotation.list)
      yield* Effect.repeat(signed, { until: ({ transition }) => transition === null })
      yield* signAll
      const places = yield* sql<{ n: number }>`
        select count(*)::int as n from lifecycle_key_places where kid = ${second} and position > 0 group by project_id`
      assert.deepStrictEqual(places, [...scenes, late].map(() => ({ n: 1 })))
      const told = yield* sql<{ n: number }>`
        select count(*)::int as n from lifecycle_events where kind = 'key-transition' group by project_id order by n`
      assert.deepStrictEqual(told.map(({ n }) => n), [1, 2, 2, 2])
      const next = yield* scene
      yield* signAll
      assert.deepStrictEqual(new Set(yield* signedBy(next.project)), new Set([second]))
    }).pipe(timed, Effect.provide(rotating())))
})

describe("a stolen key", () => {
  it.live("is dropped at once: projects switch, consumers take a snapshot, the next key signs the rest", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const { holdUsable } = yield* SigningKeys
      const made = yield* scene
      yield* work
      const own = yield* consumer(made)
      yield* own.acknowledge
      const before = yield* states
      const first = before.active[0]!
      const [second, third] = pair(before.announced)
      const told = (yield* signedBy(made.project)).length
      // Appended before the theft was reported, not signed yet.
      yield* access(made.institution, made.project, yield* person())
      assert.isTrue(yield* holdUsable([first]))
      assert.strictEqual(yield* rotation.compromise(first, "found in a log"), second)
      assert.isFalse(yield* holdUsable([first, second]))
      assert.deepStrictEqual(yield* served, [second])
      // Until the project has switched, no key signs for it.
      assert.isFalse(yield* (yield* EventSigner).signDue)
      assert.lengthOf(yield* signedBy(made.project), told)

      yield* work
      assert.deepStrictEqual((yield* signedBy(made.project)).slice(told), [second, second])
      assert.isTrue(yield* expired(own))
      assert.strictEqual(yield* expiry(everything(made.asking)), "CursorExpired")
      assert.strictEqual(yield* own.catchUp, second)
      assert.isFalse(own.pins.has(first))
      assert.deepStrictEqual(yield* own.read, [])
      const { announced } = yield* states
      assert.lengthOf(announced, 2)
      assert.strictEqual(announced[0], third)
      const { sql } = yield* Database
      const [event] = yield* sql<{ payload: object }>`
        select payload from lifecycle_events where kind = 'key-transition' and project_id = ${made.project}`
      assert.deepInclude(event!.payload, { compromised: first, next: announced })
      assert.strictEqual((yield* Effect.flip(rotation.compromise(first, "once more"))).name, "KeyRefused")
      assert.strictEqual((yield* Effect.flip(rotation.compromise("nobody", "no such key"))).name, "KeyRefused")
    }).pipe(timed, Effect.provide(rotating())))
})

describe("a stolen key", () => {
  it.live("that was about to become active is skipped: the key after it takes over, and consumers go on", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const [prompt, slowly] = [yield* scene, yield* scene]
      yield* work
      const [gone, stays] = [yield* consumer(prompt), yield* consumer(slowly)]
      for (const own of [gone, stays]) yield* own.acknowledge
      yield* rotation.announce(0)
      yield* work
      yield* gone.read
      yield* gone.acknowledge
      yield* work
      const before = yield* states
      const [first, next, lost] = [before.active[0]!, before.announced[0]!, before.published[0]!]
      assert.deepInclude((yield* rotation.list).transition, { successor: lost, switched: 1, left: 1 })

      assert.strictEqual(yield* rotation.compromise(lost, "found in a log"), first)
      yield* work
      const { transition } = yield* rotation.list
      assert.deepInclude(transition, { successor: next, switched: 1, left: 1 })
      assert.isTrue(yield* expired(gone))
      assert.strictEqual(yield* gone.catchUp, next)
      const heard = yield* stays.read
      assert.deepStrictEqual([heard.at(-1)!.kid, compromisedBy(heard.at(-1)!)], [first, lost])
      assert.isFalse(stays.pins.has(lost))
      yield* stays.acknowledge
      yield* work
      assert.deepStrictEqual((yield* stays.read).map(({ kid }) => kid), [next])
      assert.isNull((yield* rotation.list).transition)
      assert.deepInclude(yield* states, { active: [next], retiring: [first] })
      assert.lengthOf((yield* states).announced, 2)
    }).pipe(timed, Effect.provide(rotating())))
})
