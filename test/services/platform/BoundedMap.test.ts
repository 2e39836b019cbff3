import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import { BoundedMap } from "../../../services/platform/BoundedMap.ts"
import { counted, gaugedMaps } from "../../../services/platform/MapSizes.ts"

describe("BoundedMap", () => {
  it("drops the entry that was set longest ago", () => {
    const dropped: Array<number> = []
    const map = new BoundedMap<string, number>(3, (value) => dropped.push(value))
    for (const [n, key] of ["a", "b", "c", "a", "d", "e"].entries()) map.set(key, n)
    assert.deepStrictEqual([...map], [["a", 3], ["d", 4], ["e", 5]])
    map.get("a")
    map.set("f", 6)
    assert.deepStrictEqual([...map.keys()], ["d", "e", "f"])
    map.delete("d")
    assert.deepStrictEqual(dropped, [1, 2, 3])
  })

  it.effect("has its size as a gauge while its owner lives", () =>
    Effect.gen(function* () {
      const map = new BoundedMap<number, number>(100)
      yield* counted("of a test", () => map.size)
      yield* Layer.build(gaugedMaps)
      for (let n = 0; n < 200; n++) map.set(n, n)
      yield* TestClock.adjust("10 seconds")
      const gauges = (yield* Metric.snapshot).filter(({ id }) => id === "bailiwick_map_entries")
      const own = gauges.find(({ attributes }) => attributes?.["map"] === "of a test")
      assert.deepInclude(own?.state, { value: 100 })
    }))
})
