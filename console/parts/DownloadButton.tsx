/** Keeps what a page shows in a file: as the API answered it, a JSON text a line, or as CSV for a spreadsheet. */
import type { JSX } from "preact"
import { saveCsv, saveFile } from "./SaveFile.ts"

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
        saveFile(`${name}.ndjson`, "application/x-ndjson", items.map((one) => `${JSON.stringify(one)}\n`).join(""))}
    >
      {label}
    </button>
    <button
      type="button"
      disabled={items.length === 0}
      aria-label={`${label} as CSV`}
      onClick={() => saveCsv(name, items)}
    >
      as CSV
    </button>
  </>
)
