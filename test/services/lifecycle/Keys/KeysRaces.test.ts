/** Key commands at the same moment: by several operators, and beside signers of a key that is reported stolen. */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { KeyRotation } from "../../../../services/lifecycle/KeyRotation.ts"
import { EventSigner } from "../../../../services/lifecycle/EventSigner.ts"
import { ownMessages } from "../../../../services/event-streams/Streams/ControlMessages.ts"
import { type Signer, SigningKeys } from "../../../../services/lifecycle/SigningKeys.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { access, person } from "../../../support/TestIdentity.ts"
import { timed } from "../../transfers/TransferFixture.ts"
import { consumer, ownKids, rotating, signedBy, slow, states, stream, work } from "./KeysFixture.ts"
import { everything, publicUrl, scene } from "../LifecycleFixture.ts"

const outcomes = <A, E, R>(...commands: ReadonlyArray<Effect.Effect<A, E, R>>) =>
  Effect.map(
    Effect.all(commands.map(Effect.result), { concurrency: "unbounded" }),
    (results) => results.map(({ _tag }) => _tag).sort(),
  )

layer(rotating(), slow)("Concurrent commands on keys", (it) => {
  it.effect("concurrent commands of the same kind make one announcement, one compromise, one switch", () =>
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

      // An operator reports a theft and announces a rotation: either order leaves one active key and two announced.
      const [active] = after.active
      yield* outcomes<unknown, unknown, never>(compromise(active!, "found in a log"), announce(0), rotation.advance)
      yield* work
      const last = yield* states
      assert.deepStrictEqual([last.active.length, last.announced.length, last.compromised], [1, 2, [first!, active!]])
      assert.isNull((yield* rotation.list).transition)
    }).pipe(timed))

  it.effect("a message being stored under a key is not stored once that key is reported stolen meanwhile", () =>
    Effect.gen(function* () {
      const { compromise } = yield* KeyRotation
      const { signDue } = yield* EventSigner
      const { owner, sql } = yield* Database
      const made = yield* scene
      yield* work
      const { active: [stolen], announced: [next] } = yield* states
      const before = yield* signedBy(made.project)
      yield* access(made.institution, made.project, yield* person())
      const { addVerification } = yield* ownMessages(publicUrl)
      const paused = yield* stream(made, before.length)

      const [found, commit] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const finding = yield* Effect.forkChild(sql.withTransaction(
        compromise(stolen!, "found in a log").pipe(
          Effect.andThen(Deferred.succeed(found, undefined)),
          Effect.andThen(Deferred.await(commit)),
        ),
      ))
      yield* Deferred.await(found)
      const signing = yield* Effect.forkChild(signDue)
      const verifying = yield* Effect.forkChild(addVerification(paused, "asked"))
      yield* Effect.repeat(
        owner`select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%signing_keys%for share%'`,
        { until: (rows) => rows.length > 1 },
      )
      yield* Deferred.succeed(commit, undefined)
      yield* Fiber.join(finding)
      assert.isFalse(yield* Fiber.join(signing))
      yield* Fiber.join(verifying)
      assert.deepStrictEqual(yield* ownKids(paused), [next!])
      assert.deepStrictEqual(yield* signedBy(made.project), before)
      yield* work
      assert.deepStrictEqual((yield* signedBy(made.project)).slice(before.length), [next!, next!])
    }).pipe(timed))

  it.effect("a signer that is overtaken by the withdrawal of a stolen key's messages leaves no gap", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const made = yield* scene
      yield* work
      const { head } = yield* everything(made.asking)
      yield* stream(made, head - 2)
      yield* rotation.announce(0)
      yield* rotation.activate({ force: true })
      yield* work
      const { active: [next] } = yield* states
      const [stolen] = yield* signedBy(made.project)
      yield* access(made.institution, made.project, yield* person())

      // A signer that has read the unsigned events, and pauses before it signs.
      const keys = yield* SigningKeys
      const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const taking = (signer: Signer): Signer => ({
        ...signer,
        sign: async (typ, payload) => {
          begun.resolve()
          await goOn.promise
          return await signer.sign(typ, payload)
        },
      })
      const signersOf: typeof keys.signersOf = (places) =>
        Effect.map(keys.signersOf(places), (found) => found.map((signer) => signer === null ? null : taking(signer)))
      const one = yield* Layer.build(
        EventSigner.layer(publicUrl).pipe(Layer.provide(Layer.succeed(SigningKeys, { ...keys, signersOf }))),
      )
      const signing = yield* Effect.forkChild(Context.get(one, EventSigner).signDue)
      yield* Effect.promise(() => begun.promise)
      yield* rotation.compromise(stolen!, "found in a log")
      while (yield* rotation.advance);
      goOn.resolve()
      yield* Fiber.join(signing)
      yield* work

      const { sql } = yield* Database
      const [told] = yield* sql<{ n: number }>`
        select position::int as n from lifecycle_heads where project_id = ${made.project}`
      const kids = yield* signedBy(made.project)
      assert.lengthOf(kids, told!.n)
      assert.deepStrictEqual(kids.slice(head - 3), [
        stolen!,
        ...Array.from({ length: told!.n - head + 2 }, () => next!),
      ])
    }).pipe(Effect.scoped, timed))

  it.effect("a settlement and the announcement of a theft lock streams before consumers, so both complete", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const { owner, sql } = yield* Database
      const made = yield* scene
      yield* work
      const own = yield* consumer(made)
      yield* own.acknowledge
      const streamId = yield* stream(made, 0)
      const { active: [stolen] } = yield* states
      yield* rotation.compromise(stolen!, "found in a log")

      const [held, goOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const settling = yield* Effect.forkChild(sql.withTransaction(Effect.gen(function* () {
        yield* sql`select from lifecycle_streams where id = ${streamId}::uuid for update`
        yield* Deferred.succeed(held, undefined)
        yield* Deferred.await(goOn)
        return yield* sql`
          update lifecycle_consumers set delivered_at = acknowledged_at where project_id = ${made.project} returning 1`
      })))
      yield* Deferred.await(held)
      const telling = yield* Effect.forkChild(rotation.advance)
      yield* Effect.repeat(
        owner`select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%update lifecycle_streams%'`,
        { until: (rows) => rows.length > 0 },
      )
      yield* Deferred.succeed(goOn, undefined)
      assert.lengthOf(yield* Fiber.join(settling), 1)
      assert.isTrue(yield* Fiber.join(telling))
      yield* work
    }).pipe(timed))
})
