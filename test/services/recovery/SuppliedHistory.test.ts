/** Ranges of missing sequences, without those that were supplied. */
import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import { rangesWithout } from "../../../services/recovery/SuppliedHistory.ts"

const ascending = fc.uniqueArray(fc.nat({ max: 60 })).map((all) => all.sort((a, b) => a - b))

/** The ranges of these sequences, which ascend. */
const rangesOf = (sequences: ReadonlyArray<number>) => {
  const ranges: Array<{ first: number; last: number }> = []
  for (const seq of sequences) {
    const range = ranges.at(-1)
    if (range?.last === seq - 1) range.last = seq
    else ranges.push({ first: seq, last: seq })
  }
  return ranges
}

it("ranges lose the sequences that were supplied, and nothing else", () => {
  fc.assert(fc.property(ascending, ascending, (missing, supplied) => {
    const left = missing.filter((seq) => !supplied.includes(seq))
    assert.deepStrictEqual(rangesWithout(rangesOf(missing), supplied), rangesOf(left))
  }))
})

it("each range and each sequence is looked at once", () => {
  let looks = 0
  const many = 2_000
  const sequences = new Proxy(Array.from({ length: many }, (_, n) => 2 * n), {
    get: (all, name, self) => {
      if (typeof name === "string" && /^\d+$/.test(name)) looks++
      return Reflect.get(all, name, self)
    },
  })
  const ranges = Array.from({ length: many }, (_, n) => ({ first: 2 * n + 1, last: 2 * n + 1 }))
  assert.deepStrictEqual(rangesWithout(ranges, sequences), ranges)
  assert.isBelow(looks, 5 * many)
})
