/** Our reader against undici, node:http and a plain reading of the RFC; test/long/Answers.test.ts runs it longer. */
import { assert, it } from "@effect/vitest"
import { compare } from "./CompareReaders.ts"

it("4,000 generated answers are read alike, but for the named differences", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const { faults, taken } = await compare(4_000, seed)
  assert.deepStrictEqual(faults.slice(0, 5), [], `seed ${seed}`)
  assert.isAbove(taken, 1_000)
  assert.isBelow(taken, 3_000)
})
