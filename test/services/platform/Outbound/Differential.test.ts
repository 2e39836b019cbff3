/** Ours against undici, node:http and the RFC's own words; test/long/Answers.test.ts does it at length. */
import { assert, it } from "@effect/vitest"
import { compare } from "./compareReaders.ts"

it("4,000 generated answers are read alike, but for the differences that have a name", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const { faults, taken } = await compare(4_000, seed)
  assert.deepStrictEqual(faults.slice(0, 5), [], `seed ${seed}`)
  assert.isAbove(taken, 1_000)
  assert.isBelow(taken, 3_000)
})
