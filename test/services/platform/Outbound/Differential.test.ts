/** Our parser against undici, node:http and a simple parser; test/long/Answers.test.ts runs longer. */
import { assert, it } from "@effect/vitest"
import { compare } from "./CompareReaders.ts"
import { runs } from "../../../support/Runs.ts"

it("generated responses are read by the RFC; undici and node:http differ only in named ways", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const cases = runs(4_000)
  const { faults, accepted } = await compare(cases, seed)
  assert.deepStrictEqual(faults.slice(0, 5), [], `seed ${seed}`)
  assert.isAbove(accepted, cases / 4)
  assert.isBelow(accepted, 3 * cases / 4)
})
