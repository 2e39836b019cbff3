/** Keys on virtual time, moved by the worker alone. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { KeyRotation, type Standings } from "../../../services/lifecycle/KeyRotation.ts"
import { LifecycleKeys } from "../../../src/workers/LifecycleKeys.ts"
import { rotating, states } from "../../services/lifecycle/Keys/KeysFixture.ts"
import { scene, signAll } from "../../services/lifecycle/LifecycleFixture.ts"
import { timed } from "../../services/transfers/TransferFixture.ts"
import { day } from "../../support/Fixtures.ts"

describe("the worker of keys", () => {
  it.live("publishes an announced key, switches from its time on, and retires the old key seven days later", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      yield* scene
      yield* signAll
      const before = yield* states
      const [first, second] = [before.active[0]!, before.announced[0]!]
      yield* rotation.announce(0)
      /** Lets real time pass, and moves the virtual clock by two seconds a look. */
      const comes = (done: (found: Standings) => boolean) =>
        Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5))).pipe(
          Effect.andThen(TestClock.adjust("2 seconds")),
          Effect.andThen(signAll),
          Effect.andThen(rotation.list),
          Effect.repeat({ until: done }),
        )
      yield* Effect.scoped(Effect.gen(function* () {
        yield* Layer.build(LifecycleKeys.layer)
        yield* comes(({ transition }) => transition === null)
      }))
      assert.deepInclude(yield* states, { active: [second], retiring: [first] })
      yield* TestClock.adjust(7 * day)
      yield* Effect.scoped(Effect.gen(function* () {
        yield* Layer.build(LifecycleKeys.layer)
        yield* comes(({ keys }) => keys.some(({ state }) => state === "retired"))
      }))
      assert.deepInclude(yield* states, { active: [second], retired: [first] })
    }).pipe(timed, Effect.provide(rotating())))
})
