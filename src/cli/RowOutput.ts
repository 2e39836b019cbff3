/** Lists and single objects, for a reader as columns, for a program as JSON (`--json`). */
import { Console, Effect } from "effect"
import { Flag } from "effect/cli"
import { printable, printableJson, shortened } from "./EscapeControls.ts"
import { jsonFlag } from "./JsonFlag.ts"

/** The flags of every list. */
export const listFlags = {
  json: jsonFlag,
  full: Flag.Boolean("full").pipe(
    Flag.withDescription("Prints every value whole; without it long ones are cut"),
    Flag.withDefault(false),
  ),
}

/** The most items of a list that has pages. */
export const limitFlag = Flag.Int("limit").pipe(
  Flag.withDescription("The most to list, newest first (default 50)"),
  Flag.filter((n) => n >= 1 && n <= 10_000, () => "a number from 1 to 10000"),
  Flag.withDefault(50),
)

interface How {
  readonly json: boolean
  readonly full: boolean
}

const cellLength = 48

const textOf = (value: unknown): string =>
  value === null || value === undefined || value === ""
    ? "-"
    : Array.isArray(value)
    ? value.map(textOf).join(",")
    : typeof value === "object"
    ? JSON.stringify(value)
    : String(value)

/** Prints rows; `columns` gives a row's values by their titles, `none` is said where there is no row. */
export const printRows = Effect.fnUntraced(function* <Row>(
  rows: ReadonlyArray<Row>,
  columns: (row: Row) => Readonly<Record<string, unknown>>,
  { full, json }: How,
  none: string,
) {
  if (json) return yield* Effect.forEach(rows, (row) => Console.log(printableJson(row)), { discard: true })
  const [first] = rows
  if (first === undefined) return yield* Console.error(none)
  const cell = (value: unknown) => full ? printable(textOf(value)) : shortened(textOf(value), cellLength)
  const table = [Object.keys(columns(first)), ...rows.map((row) => Object.values(columns(row)).map(cell))]
  const widths = table[0]!.map((_, at) => Math.max(...table.map((line) => [...line[at]!].length)))
  for (const line of table) {
    yield* Console.log(line.map((text, at) => text + " ".repeat(widths[at]! - [...text].length)).join("  ").trimEnd())
  }
})

/** Prints an object, a member a line. */
export const printOne = (one: object, json: boolean) => {
  if (json) return Console.log(printableJson(one))
  const members = Object.entries(one)
  const width = Math.max(...members.map(([name]) => name.length))
  return Effect.forEach(
    members,
    ([name, value]) => Console.log(`${name.padEnd(width)}  ${printable(textOf(value))}`),
    { discard: true },
  )
}

/** The first `limit` items of pages; no page is asked for beyond them. */
export const firstOf = async <Item>(items: AsyncIterable<Item>, limit: number): Promise<ReadonlyArray<Item>> => {
  const found: Array<Item> = []
  for await (const item of items) if (found.push(item) >= limit) break
  return found
}
