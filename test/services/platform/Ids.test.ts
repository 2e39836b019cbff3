import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Ids, leastIdAt, millisOf } from "../../../services/platform/Ids.ts"

const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

layer(Layer.empty)("Ids", (it) => {
  it.effect("ids are UUIDv7 of the clock, each greater than the last, also where the clock stands or goes back", () =>
    Effect.gen(function* () {
      const { batch, next } = yield* Ids
      const at = Date.parse("2031-03-10T12:00:00.000Z")
      yield* TestClock.setTime(at)
      const many = yield* batch(20_000)
      const one = yield* next
      yield* TestClock.setTime(at + 1)
      const later = yield* batch(2)
      yield* TestClock.setTime(at - 5_000)
      const all = [...many, one, ...later, yield* next]
      assert.deepStrictEqual(all.filter((id) => !version7.test(id)), [])
      assert.deepStrictEqual(all, [...new Set(all)].sort())
      assert.deepStrictEqual([...new Set(all.map(millisOf))], [at, at + 1])
      assert.isTrue(leastIdAt(at) < many[0]! && one < leastIdAt(at + 1) && leastIdAt(at + 1) < later[0]!)
      assert.isAbove(new Set(many.map((id) => id.slice(-8))).size, 19_000)
    }))

  it.effect("a batch of no ids is empty", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* (yield* Ids).batch(0), [])
    }))
})
