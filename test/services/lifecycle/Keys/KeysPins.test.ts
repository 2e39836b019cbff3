/** The pins that an operator gives a product that connects for the first time, at each moment of a rotation. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { KeyRotation } from "../../../../services/lifecycle/KeyRotation.ts"
import { now, timed } from "../../transfers/TransferFixture.ts"
import { consumer, rotating, states, work } from "./KeysFixture.ts"
import { day } from "../../../support/Fixtures.ts"
import { access, person } from "../../../support/TestIdentity.ts"
import { grant, type Scene, scene, signAll } from "../LifecycleFixture.ts"

describe("a new product", () => {
  it.live("can start at any moment of a rotation from the current pins or the ones before, and reads on", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const [prompt, late] = [yield* scene, yield* scene]
      yield* work
      const [own, slow] = [yield* consumer(prompt), yield* consumer(late)]
      for (const { acknowledge } of [own, slow]) yield* acknowledge

      const connected: Array<Effect.Success<ReturnType<typeof consumer>>> = []
      const three = (yield* rotation.list).pins
      let before = three
      let services = 0
      /** Connects a product of each project, and reads on in every product connected so far. */
      const connect = Effect.fnUntraced(function* (moment: string) {
        const { pins } = yield* rotation.list
        for (const told of [before, pins]) {
          for (const made of [prompt, late]) {
            const clientId = `new-${services++}`
            // A product that may not acknowledge delays no rotation once it has read.
            yield* grant(made, clientId, ["events.read", "snapshot.read"])
            yield* signAll
            connected.push(yield* consumer({ asking: { ...made.asking, clientId } }, told))
          }
        }
        before = pins
        for (const made of [prompt, late] satisfies ReadonlyArray<Scene>) {
          yield* access(made.institution, made.project, yield* person())
        }
        yield* signAll
        for (const one of connected) assert.isAbove((yield* one.read).length, 0, moment)
        return pins
      })

      assert.deepStrictEqual(yield* connect("at rest"), three)
      const start = (yield* now) + day
      yield* rotation.announce(start)
      assert.deepStrictEqual(yield* connect("announced"), three)
      yield* work
      assert.deepStrictEqual((yield* states).published, [three[1]!])
      assert.deepStrictEqual(yield* connect("published"), three)
      yield* own.read
      yield* own.acknowledge
      yield* TestClock.setTime(start)
      yield* work
      assert.deepInclude((yield* rotation.list).transition, { switched: 1, left: 1 })
      const during = yield* connect("activated for some projects")
      assert.deepStrictEqual(during.slice(0, 3), three)
      yield* TestClock.setTime(start + 14 * day)
      yield* work
      assert.deepStrictEqual((yield* states).retiring, [three[0]!])
      assert.deepStrictEqual(yield* connect("retiring"), during.slice(1))
      yield* TestClock.setTime(start + 21 * day)
      yield* work
      assert.deepStrictEqual((yield* states).retired, [three[0]!])
      assert.deepStrictEqual(yield* connect("retired"), during.slice(1))
    }).pipe(timed, Effect.provide(rotating())))
})
