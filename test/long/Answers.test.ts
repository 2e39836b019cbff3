/** Our parser of responses against undici, node:http and a plain parser of the RFC, with many responses. */
import { assert, it } from "@effect/vitest"
import { compare } from "../services/platform/Outbound/CompareReaders.ts"
import { named as names } from "../services/platform/Outbound/Disagreements.ts"

it("100,000 generated responses are read by the RFC; undici and node:http differ only in named ways", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const { faults, named, accepted } = await compare(100_000, seed)
  const counts = [...named].sort().map(([what, n]) => `${n} ${what}`)
  console.log([`seed ${seed}, ${accepted} accepted`, ...counts].join("\n"))
  assert.deepStrictEqual(faults.slice(0, 5), [], `seed ${seed}`)
  for (const { kinds, name, rare } of names) {
    if (rare || kinds.includes("closed")) continue
    assert.isTrue([...named.keys()].some((seen) => seen.endsWith(name)), `nothing differs by ${name}`)
  }
})
