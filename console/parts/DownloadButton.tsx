/** Keeps what a page shows in a file, as the API answered it: JSON, an item a line. */
import type { JSX } from "preact"

const save = (name: string, text: string): void => {
  const address = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }))
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
  <button
    type="button"
    disabled={items.length === 0}
    onClick={() => save(`${name}.ndjson`, items.map((one) => `${JSON.stringify(one)}\n`).join(""))}
  >
    {label}
  </button>
)
