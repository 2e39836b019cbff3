/** Keeps what a page shows in a file: as the API answered it, a JSON text a line, or as CSV for a spreadsheet. */
import type { JSX } from "preact"
import { csvOf } from "./Csv.ts"

const save = (name: string, type: string, text: string): void => {
  const address = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement("a")
  link.href = address
  link.download = name
  link.click()
  URL.revokeObjectURL(address)
}

export const DownloadButton = ({ items, label, name }: {
  readonly items: ReadonlyArray<unknown>
  readonly label: string
  /** The file's name, without its ending. */
  readonly name: string
}): JSX.Element => (
  <>
    <button
      type="button"
      disabled={items.length === 0}
      onClick={() =>
        save(`${name}.ndjson`, "application/x-ndjson", items.map((one) => `${JSON.stringify(one)}\n`).join(""))}
    >
      {label}
    </button>
    <button
      type="button"
      disabled={items.length === 0}
      aria-label={`${label} as CSV`}
      // A spreadsheet takes the file for UTF-8 by its first character.
      onClick={() => save(`${name}.csv`, "text/csv", `\ufeff${csvOf(items)}`)}
    >
      as CSV
    </button>
  </>
)
