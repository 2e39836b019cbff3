/** Whoever comes at the same moment: operators, and signers that hold a key when it is found to be stolen. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { KeyRotation } from "../../../services/lifecycle/KeyRotation.ts"
import { Messages } from "../../../services/lifecycle/Messages.ts"
import { Database } from "../../../services/platform/Database.ts"
import { access, person } from "../../support/TestIdentity.ts"
import { timed } from "../transfers/TransferWorld.ts"
import { rotating, signedBy, slow, states, work } from "./KeysWorld.ts"
import { scene } from "./World.ts"

const outcomes = <A, E, R>(...commands: ReadonlyArray<Effect.Effect<A, E, R>>) =>
  Effect.map(
    Effect.all(commands.map(Effect.result), { concurrency: "unbounded" }),
    (results) => results.map(({ _tag }) => _tag).sort(),
  )

layer(rotating(), slow)("keys at the same moment", (it) => {
  it.effect("one announcement, one loss, one switch, whoever else says the same", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      yield* scene
      yield* work
      const { announce, compromise } = rotation
      assert.deepStrictEqual(yield* outcomes(announce(0), announce(0), announce(0)), ["Failure", "Failure", "Success"])
      const [first] = (yield* states).active
      const lost = compromise(first!, "found in a log")
      assert.deepStrictEqual(yield* outcomes(lost, lost), ["Failure", "Success"])
      yield* work
      const after = yield* states
      assert.deepStrictEqual([after.active.length, after.announced.length, after.compromised], [1, 2, [first!]])

      // A thief and an operator: either order leaves one key that signs and two that follow.
      const [active] = after.active
      yield* outcomes<unknown, unknown, never>(compromise(active!, "found in a log"), announce(0), rotation.advance)
      yield* work
      const last = yield* states
      assert.deepStrictEqual([last.active.length, last.announced.length, last.compromised], [1, 2, [first!, active!]])
      assert.isNull((yield* rotation.list).transition)
    }).pipe(timed))

  it.effect("what is being stored under a key while that is found to be stolen is not stored", () =>
    Effect.gen(function* () {
      const { compromise } = yield* KeyRotation
      const { signDue } = yield* Messages
      const { owner, sql } = yield* Database
      const made = yield* scene
      yield* work
      const { active: [stolen], announced: [next] } = yield* states
      const before = yield* signedBy(made.project)
      yield* access(made.institution, made.project, yield* person())

      const [found, commit] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const finding = yield* Effect.forkChild(sql.withTransaction(
        compromise(stolen!, "found in a log").pipe(
          Effect.andThen(Deferred.succeed(found, undefined)),
          Effect.andThen(Deferred.await(commit)),
        ),
      ))
      yield* Deferred.await(found)
      const signing = yield* Effect.forkChild(signDue)
      yield* Effect.repeat(
        owner`select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%signing_keys%for share%'`,
        { until: (rows) => rows.length > 0 },
      )
      yield* Deferred.succeed(commit, undefined)
      yield* Fiber.join(finding)
      assert.isFalse(yield* Fiber.join(signing))
      assert.deepStrictEqual(yield* signedBy(made.project), before)
      yield* work
      assert.deepStrictEqual((yield* signedBy(made.project)).slice(before.length), [next!, next!])
    }).pipe(timed))
})
