import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { every } from "../../../src/workers/Loop.ts"

describe("a loop", () => {
  it.effect("takes its turns in time, and retries a failed one soon, or at its wake-up signal", () =>
    Effect.gen(function* () {
      const turns = { usual: 0, patient: 0 }
      const turn = (which: keyof typeof turns) =>
        Effect.suspend(() => ++turns[which] < 3 ? Effect.fail("not yet") : Effect.void)
      yield* every("usual", 3_600_000, turn("usual"))
      yield* every("patient", 3_600_000, turn("patient"), 60_000)
      const after = (millis: number) => Effect.as(TestClock.adjust(millis), turns)
      assert.deepEqual(yield* after(0), { usual: 1, patient: 1 })
      assert.deepEqual(yield* after(999), { usual: 1, patient: 1 })
      assert.deepEqual(yield* after(1), { usual: 2, patient: 1 })
      assert.deepEqual(yield* after(58_999), { usual: 3, patient: 1 })
      assert.deepEqual(yield* after(1), { usual: 3, patient: 2 })
      assert.deepEqual(yield* after(60_000), { usual: 3, patient: 3 })
      assert.deepEqual(yield* after(3_600_000), { usual: 4, patient: 4 })
    }))
})
