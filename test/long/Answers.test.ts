/** Our reader against undici, node:http and a plain reading of the RFC, at length. */
import { assert, it } from "@effect/vitest"
import { compare } from "../services/platform/Outbound/CompareReaders.ts"
import { named as names } from "../services/platform/Outbound/Disagreements.ts"

it("100,000 generated answers are read alike, but for the named differences", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const { faults, named, taken } = await compare(100_000, seed)
  console.log([`seed ${seed}, ${taken} taken`, ...[...named].sort().map(([what, n]) => `${n} ${what}`)].join("\n"))
  assert.deepStrictEqual(faults.slice(0, 5), [], `seed ${seed}`)
  for (const { kinds, name, rare } of names) {
    if (rare || kinds.includes("closed")) continue
    assert.isTrue([...named.keys()].some((seen) => seen.endsWith(name)), `nothing differs by ${name}`)
  }
})
