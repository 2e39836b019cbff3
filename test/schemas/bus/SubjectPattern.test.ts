import { assert, describe, it } from "@effect/vitest"
import { covers, isPattern, overlaps } from "../../../schemas/bus/SubjectPattern.ts"

describe("subject patterns", () => {
  it("are accepted only if they can be subscribed to", () => {
    for (const good of ["a", "a.*.b", "a.>", ">", "*", "webhooks.v1.dead.*", "a.~x_-"]) {
      assert.isTrue(isPattern(good), good)
    }
    for (const bad of ["", "a..b", ".a", "a.", "a.>.b", "a b", "a.b*", "a\n", "a.\u202e"]) {
      assert.isFalse(isPattern(bad), bad)
    }
  })

  it("match the subjects that they cover", () => {
    const covered = [["a.*", "a.b"], ["a.>", "a.b.c"], ["a.>", "a.*"], [">", "a"], [">", ">"], ["*.b", "*.b"]] as const
    const not = [["a.*", "a.b.c"], ["a.>", "a"], ["a.*", "a.>"], ["a.b", "a.*"], ["a.*", "b.c"], ["*", ">"]] as const
    for (const [pattern, inner] of covered) assert.isTrue(covers(pattern, inner), `${pattern} ${inner}`)
    for (const [pattern, inner] of not) assert.isFalse(covers(pattern, inner), `${pattern} ${inner}`)
  })

  it("overlap where one subject matches both", () => {
    const both = [["a.*", "*.b"], ["a.>", "a.b.c"], [">", "a"], ["a.*", "a.>"], [
      "intake.v1.mail-events.*",
      "intake.>",
    ]] as const
    const none = [["a.*", "b.*"], ["a.*", "a"], ["a.b", "a.b.c"], ["a.>", "a"]] as const
    for (const [a, b] of both) assert.isTrue(overlaps(a, b) && overlaps(b, a), `${a} ${b}`)
    for (const [a, b] of none) assert.isFalse(overlaps(a, b) || overlaps(b, a), `${a} ${b}`)
  })
})
