/** Gives the browser a text to keep as a file. */
import { csvOf } from "./Csv.ts"

export const saveFile = (name: string, type: string, text: string): void => {
  const address = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement("a")
  link.href = address
  link.download = name
  link.click()
  URL.revokeObjectURL(address)
}

/** A spreadsheet takes the file for UTF-8 by its first character. `name`: without its ending. */
export const saveCsv = (name: string, items: ReadonlyArray<unknown>): void =>
  saveFile(`${name}.csv`, "text/csv", `\ufeff${csvOf(items)}`)
