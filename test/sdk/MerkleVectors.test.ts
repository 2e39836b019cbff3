/** The kit's verifier on the test vectors of transparency-dev's Go implementation, which other logs verify by. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { isContinued, isIncluded } from "../../sdk/MerkleProof.ts"

const lines = readFileSync(fileURLToPath(new URL("merkle-vectors.txt", import.meta.url)), "utf8").trim().split("\n")
  .filter((line) => !line.startsWith("#")).map((line) => line.split(" "))

const bytes = (text: string) => Buffer.from(text === "-" || text === '""' ? "" : text, "base64")

/** One vector has texts for roots, `don't care 2`; the kit takes nothing for a root but a hash. */
const hasRoots = ([kind, , , , ...roots]: ReadonlyArray<string>) =>
  roots.slice(0, kind === "inclusion" ? 1 : 2).every((root) => bytes(root).length === 32)

const isVerified = ([kind, , first, second, third, fourth, joined]: ReadonlyArray<string>) => {
  const [a, b, c, d] = [Number(first), Number(second), bytes(third!), bytes(fourth!)]
  const proof = joined === "-" ? [] : joined!.split(",").map(bytes)
  return kind === "inclusion"
    ? isIncluded({ index: a, size: b, root: c, leafHash: d, proof })
    : isContinued({ size: a, root: c }, { size: b, root: d }, proof)
}

describe("Merkle vectors", () => {
  for (const kind of ["inclusion", "consistency"]) {
    it(`of ${kind} are verified and refused as published`, () => {
      const vectors = lines.filter(([of]) => of === kind)
      assert.strictEqual(vectors.length, 98)
      assert.deepStrictEqual(
        vectors.map((vector) => `${vector[7]} ${isVerified(vector) ? "verified" : "refused"}`),
        vectors.map((vector) => `${vector[7]} ${hasRoots(vector) ? vector[1] : "refused"}`),
      )
    })
  }
})
