/** What a downloaded list holds, read as a spreadsheet reads it. */
import { assert, describe, it } from "@effect/vitest"
import { csvOf } from "../../../../console/parts/Csv.ts"

/** The cells of a file by RFC 4180. */
const cellsOf = (csv: string): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<Array<string>> = []
  let row: Array<string> = []
  for (const [, plain, quoted, end] of csv.matchAll(/(?:([^",\r\n]*)|"((?:[^"]|"")*)")(,|\r\n)/g)) {
    row.push(quoted === undefined ? plain! : quoted.replaceAll('""', '"'))
    if (end === ",") continue
    rows.push(row)
    row = []
  }
  return rows
}

describe("a list as CSV", () => {
  it("has a column for each field of any row, and an empty cell where a row lacks it", () => {
    const csv = csvOf([{ id: 1, of: { name: "a", on: true } }, { id: -2, more: null }, { list: [1, "x"] }])
    assert.deepStrictEqual(cellsOf(csv), [
      ["id", "of.name", "of.on", "more", "list"],
      ["1", "a", "true", "", ""],
      ["-2", "", "", "", ""],
      ["", "", "", "", '[1,"x"]'],
    ])
    assert.strictEqual(csvOf([]), "\r\n")
  })

  it("gives every text back as it was, whatever stands in it", () => {
    const texts = ['say "so"', "a,b", "a;b", "a\tb", "one\ntwo", "one\r\ntwo", '"', '""', ",", " ", "ümläut", "x'y"]
    const csv = csvOf(texts.map((text) => ({ text })))
    assert.deepStrictEqual(cellsOf(csv).slice(1).map(([text]) => text), texts)
    // A spreadsheet that ends cells at semicolons or tabs begins no new one within a text.
    for (const text of ["a;b", "a\tb"]) assert.include(csv, `"${text}"`)
  })

  it("makes no formula of a text or of a field's name; numbers stay numbers", () => {
    const signs = ["=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n"]
    const attacks = signs.map((sign) => `${sign}HYPERLINK("https://evil.example")`)
    const csv = csvOf(attacks.map((text) => ({ text })))
    assert.deepStrictEqual(cellsOf(csv).slice(1).map(([text]) => text), attacks.map((text) => `'${text}`))
    assert.deepStrictEqual(cellsOf(csvOf([{ "=1+1": 1 }]))[0], ["'=1+1"])
    // A cell that begins after a separator within the text would begin a formula in such a spreadsheet.
    assert.include(csvOf([{ text: "a;=1+1" }]), '"a;=1+1"')
    assert.deepStrictEqual(cellsOf(csvOf([{ n: -1 }]))[1], ["-1"])
  })
})
