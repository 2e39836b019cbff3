/** Which word of a provider on an account counts, in whatever order its events come. */
import { assert, it } from "@effect/vitest"
import fc from "fast-check"
import { type AccountWord, heldAfter } from "../../../services/people/PersonHolds.ts"

const words = fc.uniqueArray(
  fc.record<AccountWord>({
    kind: fc.constantFrom("disabled", "purged", "released"),
    at: fc.integer({ min: 0, max: 1_000 }),
  }),
  { minLength: 1, maxLength: 8, selector: ({ at }) => at },
)

const after = (told: ReadonlyArray<AccountWord>) =>
  told.reduce((held: AccountWord | null, word) => heldAfter(held, word), null)!

it("the newest word counts, and a purged account stays so, in whatever order and however often the words come", () => {
  fc.assert(fc.property(
    words.chain((told) =>
      fc.tuple(fc.constant(told), fc.shuffledSubarray([...told, ...told], { minLength: 2 * told.length }))
    ),
    ([told, heard]) => {
      const newest = told.toSorted((a, b) => b.at - a.at)[0]!
      const purged = told.some(({ kind }) => kind === "purged")
      assert.deepStrictEqual(after(heard), { kind: purged ? "purged" : newest.kind, at: newest.at })
    },
  ))
})
