/**
 * Random histories of keys: operators, thieves, consumers and the clock act in any order. After every step:
 *
 * - one key is active, and each project has exactly one that signs, which is in use; a message is signed by the key of
 *   its position, unless that key was stolen before the message was signed;
 * - no consumer is given a message under a key not announced to it before, unless it took a snapshot meanwhile;
 * - what was signed in the last seven days verifies by the served keys, except under a stolen one, and a stolen key
 *   signs nothing more;
 * - no rotation waits for a consumer beyond the deadline.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { KeyRotation } from "../../../../services/lifecycle/KeyRotation.ts"
import { SigningKeys } from "../../../../services/lifecycle/SigningKeys.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { day, noon } from "../../../support/Fixtures.ts"
import { runs } from "../../../support/Runs.ts"
import { access, person } from "../../../support/TestIdentity.ts"
import { now } from "../../transfers/TransferFixture.ts"
import { consumer, expired, type KeyConsumer, rotating, work } from "./KeysFixture.ts"
import { grant, type Scene, scene, signAll } from "../LifecycleFixture.ts"

type Step =
  | { readonly does: "announce"; readonly inDays: number }
  | { readonly does: "publish" | "project" | "work" }
  | { readonly does: "activate"; readonly force: boolean }
  | { readonly does: "compromise"; readonly state: "active" | "announced" | "published" | "retiring" }
  | { readonly does: "time"; readonly days: number }
  | { readonly does: "event" | "consumer"; readonly project: number }
  | { readonly does: "read" | "acknowledge"; readonly consumer: number }

const index = fc.nat({ max: 20 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ does: fc.constant("announce" as const), inDays: fc.constantFrom(0, 0, 2) }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constantFrom("publish" as const, "project" as const) }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant("work" as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("activate" as const), force: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant("compromise" as const),
      state: fc.constantFrom("active" as const, "announced" as const, "published" as const, "retiring" as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant("time" as const), days: fc.constantFrom(0.5, 2, 6.9, 7.1, 14) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constantFrom("event" as const, "consumer" as const), project: index }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ does: fc.constantFrom("read" as const, "acknowledge" as const), consumer: index }),
  },
)

/** Reads all events, from a snapshot where the cursor is refused. A token that does not verify is a failure. */
const readOn = Effect.fnUntraced(function* (own: KeyConsumer) {
  if (yield* expired(own)) {
    const pinned = [...own.pins]
    yield* own.catchUp.pipe(Effect.catch(Effect.fnUntraced(function* (error) {
      // The consumer was away until its project passed every key it knew: its operator looks up the keys and pins them.
      const { keys } = yield* (yield* KeyRotation).list
      const used = keys.filter(({ state }) => state !== "retired" && state !== "compromised").map(({ kid }) => kid)
      // The project may have switched already, while another key is still the active one. In place of a stolen key that it
      // has not left yet, the active one signs.
      const { sql } = yield* Database
      const [signs] = yield* sql<{ kid: string }>`
        select case when k.state = 'compromised' then (select kid from signing_keys where state = 'active')
          else k.kid end as kid
        from lifecycle_project_keys p join signing_keys k on k.kid = p.kid
        where p.project_id = ${own.asking.projectId}`
      const at = (wanted: string) => keys.findIndex(({ kid }) => kid === wanted)
      assert.isAtLeast(pinned.length, 3, "the pins hold the signing key and two more")
      assert.isAbove(at(signs!.kid), Math.max(...pinned.map(at)), String(error))
      own.pins.clear()
      for (const kid of used) own.pins.add(kid)
      return yield* own.catchUp
    })))
    assert.isFalse(yield* expired(own))
  }
})

const unless = <A, E, R>(command: Effect.Effect<A, E, R>) => Effect.ignore(command)

/** The invariants after every step. */
const holds = Effect.gen(function* () {
  const { sql } = yield* Database
  const at = yield* now
  const count = (rows: ReadonlyArray<object>) => rows.length
  assert.strictEqual(count(yield* sql`select from signing_keys where state = 'active'`), 1, "one active key")
  assert.deepStrictEqual(
    yield* sql`
      select p.project_id from lifecycle_project_keys p
      join lateral (
        select a.kid from lifecycle_key_places a where a.project_id = p.project_id
        order by a.epoch desc, a.position desc limit 1
      ) a on true
      join signing_keys k on k.kid = p.kid
      where a.kid <> p.kid or k.state not in ('published', 'active', 'compromised')
        or k.state = 'compromised' and p.news_id >= (select max(id) from lifecycle_key_news)`,
    [],
    "each project has one key that signs",
  )
  assert.deepStrictEqual(
    yield* sql`
      select m.project_id, m.position from lifecycle_messages m
      join lateral (
        select a.kid from lifecycle_key_places a
        where a.project_id = m.project_id and (a.epoch, a.position) <= (m.epoch, m.position)
        order by a.epoch desc, a.position desc limit 1
      ) a on true
      join signing_keys k on k.kid = a.kid
      where m.kid <> a.kid and k.state <> 'compromised'`,
    [],
    "a message is signed by the key of its position",
  )
  const served = (yield* (yield* SigningKeys).jwks).keys.map(({ kid }) => String(kid))
  assert.deepStrictEqual(
    yield* sql`
      select distinct m.kid from lifecycle_messages m join signing_keys k on k.kid = m.kid
      where k.state <> 'compromised' and m.signed_at > ${new Date(at - 7 * day)} and m.kid <> all(${served}::text[])`,
    [],
    "messages of the last seven days verify",
  )
  assert.deepStrictEqual(
    yield* sql`
      select k.kid from signing_keys k
      where k.state = 'compromised' and (k.kid = any(${served}::text[]) or exists (
        select from lifecycle_messages m where m.kid = k.kid and m.signed_at > k.changed_at))`,
    [],
    "a stolen key signs and verifies nothing",
  )
})

const history = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const rotation = yield* KeyRotation
  const scenes: Array<Scene> = []
  const consumers: Array<KeyConsumer> = []
  const begin = Effect.gen(function* () {
    const made = yield* scene
    scenes.push(made)
    yield* signAll
    consumers.push(yield* consumer(made))
  })
  yield* begin
  for (const next of steps) {
    switch (next.does) {
      case "announce":
        yield* unless(rotation.announce((yield* now) + next.inDays * day))
        break
      case "publish":
        yield* unless(rotation.publish())
        break
      case "activate":
        yield* unless(rotation.activate(next))
        break
      case "compromise": {
        const key = (yield* rotation.list).keys.find(({ state }) => state === next.state)
        if (key !== undefined) yield* rotation.compromise(key.kid, "a thief came by")
        break
      }
      case "project":
        yield* begin
        break
      case "work":
        yield* work
        break
      case "time":
        yield* TestClock.adjust(Math.round(next.days * day))
        yield* work
        break
      case "event": {
        const { institution, project } = scenes[next.project % scenes.length]!
        yield* access(institution, project, yield* person())
        break
      }
      case "consumer": {
        const made = scenes[next.project % scenes.length]!
        const clientId = `client-${consumers.length}-${made.project}`
        yield* grant(made, clientId)
        consumers.push(yield* consumer({ asking: { ...made.asking, clientId } }))
        break
      }
      case "read":
        yield* readOn(consumers[next.consumer % consumers.length]!)
        break
      case "acknowledge": {
        const own = consumers[next.consumer % consumers.length]!
        yield* readOn(own)
        yield* own.acknowledge
        break
      }
    }
    yield* holds
  }
  // A rotation in progress ends by itself: at the deadline where a consumer does not acknowledge.
  yield* TestClock.adjust(17 * day)
  yield* work
  assert.isNull((yield* rotation.list).transition, "no rotation waits beyond its deadline")
  for (const own of consumers) yield* readOn(own)
  yield* holds
})

describe("histories of keys", () => {
  it.live("one key signs, no consumer meets an unannounced key, and no rotation outlasts its deadline", () =>
    Effect.gen(function* () {
      const context = yield* Effect.context<Effect.Services<ReturnType<typeof history>>>()
      // All histories share one clock, since they share their keys.
      let begins = noon
      const lived = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
        yield* TestClock.setTime(begins)
        yield* history(steps)
        begins = yield* now
      })
      const property = fc.asyncProperty(
        fc.array(step, { minLength: 10, maxLength: 25 }),
        (steps) => Effect.runPromiseWith(context)(Effect.provide(lived(steps), TestClock.layer())),
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: runs(5), endOnFailure: true }))
    }).pipe(Effect.provide(rotating())))
})
