import { assert, it } from "@effect/vitest"
import { Redacted } from "effect"
import { newSecret, stepOf, uriOf } from "../../../services/people/Authenticators/Totp.ts"

/** RFC 6238, appendix B: "12345678901234567890" by SHA-1; of the eight digits an app of six shows the last. */
const seed = Redacted.make("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
const vectors = [
  [59, "94287082"],
  [1_111_111_109, "07081804"],
  [1_111_111_111, "14050471"],
  [1_234_567_890, "89005924"],
  [2_000_000_000, "69279037"],
  [20_000_000_000, "65353130"],
] as const

for (const [seconds, code] of vectors) {
  it(`RFC 6238, appendix B, ${seconds} s`, () => {
    const step = Math.floor(seconds / 30)
    const at = (off: number) => stepOf(seed, code.slice(2), (step + off) * 30_000)
    // A code is accepted in its own step and in the neighbouring ones, and is recorded under its own step.
    assert.deepStrictEqual([-1, 0, 1].map(at), [step, step, step])
    assert.deepStrictEqual([-2, 2].map(at), [null, null])
    assert.strictEqual(stepOf(seed, code.slice(2), seconds * 1_000), step)
  })
}

it("a seed is 160 random bits, and its otpauth address names its algorithm and digits", () => {
  const [one, two] = [Redacted.value(newSecret()), Redacted.value(newSecret())]
  assert.match(one, /^[A-Z2-7]{32}$/)
  assert.notStrictEqual(one, two)
  const uri = new URL(uriOf(Redacted.make(one), "ada@fern.example"))
  assert.deepStrictEqual(Object.fromEntries(uri.searchParams), {
    issuer: "Bailiwick",
    secret: one,
    algorithm: "SHA1",
    digits: "6",
    period: "30",
  })
})
