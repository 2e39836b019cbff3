/**
 * Rows as CSV (RFC 4180), for a spreadsheet: a column for each field of any row, those of inner objects by their paths. A
 * text that a spreadsheet would run as a formula begins with an apostrophe, also in the head of a column.
 */

type Cells = ReadonlyMap<string, string>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The signs that begin a formula, those of the full width of East Asian keyboards among them, and what is skipped before. */
const inert = (text: string): string => /^[=+\-@＝＋－＠\t\r\n]/.test(text) ? `'${text}` : text

const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return ""
  if (typeof value !== "string") return typeof value === "object" ? JSON.stringify(value) : String(value)
  return inert(value)
}

const cellsOf = (value: unknown, path = ""): ReadonlyArray<readonly [path: string, text: string]> =>
  isObject(value)
    ? Object.entries(value).flatMap(([name, inner]) => cellsOf(inner, path === "" ? name : `${path}.${name}`))
    : [[path, textOf(value)]]

/** Some spreadsheets end a cell at a semicolon or a tab, although the file separates cells by commas. */
const quoted = (text: string): string => /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text

export const csvOf = (items: ReadonlyArray<unknown>): string => {
  const rows: ReadonlyArray<Cells> = items.map((one) => new Map(cellsOf(one)))
  const heads = [...new Set(rows.flatMap((row) => [...row.keys()]))]
  const lines = [heads.map(inert), ...rows.map((row) => heads.map((head) => row.get(head) ?? ""))]
  return lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join("")
}
