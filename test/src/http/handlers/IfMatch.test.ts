import { assert, it } from "@effect/vitest"
import { seenTags } from "../../../../src/http/handlers/IfMatch.ts"

const seen = `"sha256:${"a".repeat(64)}"`
const tag = seen.slice(1, -1)

it("If-Match accepts strong tags of a well-formed list, and nothing else", () => {
  const rows: ReadonlyArray<readonly [string | undefined, ReadonlyArray<string> | undefined]> = [
    [undefined, undefined],
    ["*", undefined],
    [` ${seen} `, [tag]],
    [`"x",${seen} ,, "a,b", ""`, ["x", tag, "a,b", ""]],
    [`W/${seen}`, []],
    [`W/"x", ${seen}, W/"y"`, [tag]],
    ...[
      "",
      tag,
      `w/${seen}`,
      `'${tag}'`,
      `"${seen}"`,
      `${seen} x`,
      `${seen}, x`,
      `${seen} "y"`,
      `*, ${seen}`,
      `"${tag}`,
    ]
      .map((sent) => [sent, []] as const),
  ]
  for (const [sent, expected] of rows) assert.deepStrictEqual(seenTags(sent), expected, sent)
})
