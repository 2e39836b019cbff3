/** Our parser against undici, node:http and a simple parser; test/long/Answers.test.ts runs longer. */
import { assert, it } from "@effect/vitest"
import { compare } from "./CompareReaders.ts"

it("4,000 generated responses are read by the RFC; undici and node:http differ only in named ways", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const { faults, accepted } = await compare(4_000, seed)
  assert.deepStrictEqual(faults.slice(0, 5), [], `seed ${seed}`)
  assert.isAbove(accepted, 1_000)
  assert.isBelow(accepted, 3_000)
})
