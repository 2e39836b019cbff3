/** Keeps a whole list in a CSV file: its pages are asked for one after the other, up to a bound. */
import type { JSX } from "preact"
import { LongDownload } from "./LongDownload.tsx"
import { saveCsv } from "./SaveFile.ts"

/** Rows of a file: a spreadsheet opens it, and the page holds them until it is whole. */
const most = 10_000
/** Pages with a filter may be empty and still lead on. */
const mostPages = 500

/** Items of one request for a file. */
export const exportSize = 100

type PageOf = (after_id: string | undefined, signal: AbortSignal) => Promise<{
  readonly items: ReadonlyArray<unknown>
  readonly next_after_id: string | null
}>

const count = new Intl.NumberFormat("en")

/** All pages; `more` where the bound came before the list's end. */
const collected = async (pageOf: PageOf, signal: AbortSignal, tell: (n: number) => void) => {
  const items: Array<unknown> = []
  let after: string | undefined
  for (let pages = 0; pages < mostPages && items.length < most; pages++) {
    const page = await pageOf(after, signal)
    items.push(...page.items)
    tell(items.length)
    if (page.next_after_id === null) return { items, more: false }
    after = page.next_after_id
  }
  return { items: items.slice(0, most), more: true }
}

export const ExportButton = ({ begin, label, name }: {
  readonly label: string
  /** The file's name, without its ending. */
  readonly name: string
  /** Called when the button is pressed: the filters of that moment are those of the whole file. */
  readonly begin: () => PageOf
}): JSX.Element => (
  <LongDownload
    label={label}
    of="rows"
    gather={async (signal, tell) => {
      const { items, more } = await collected(begin(), signal, tell)
      return () => {
        saveCsv(name, items)
        const rows = `${count.format(items.length)} ${items.length === 1 ? "row" : "rows"}`
        return more
          ? `The file has the first ${rows}. Choose filters for what is behind them.`
          : `The file has ${rows}.`
      }
    }}
  />
)
