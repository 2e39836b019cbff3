/** Keeps a whole list in a CSV file: its pages are asked for one after the other, up to a bound, and can be stopped. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useEffect, useRef } from "preact/hooks"
import type { Refused } from "../contract/Ask.ts"
import { refusalOf } from "../Resource.ts"
import { announce } from "./Announce.tsx"
import { Failure } from "./Failure.tsx"
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
}): JSX.Element => {
  const got = useSignal<number | null>(null)
  const failure = useSignal<Refused | null>(null)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])
  const stop = () => {
    running.current?.abort()
    running.current = null
    got.value = null
  }
  const run = async () => {
    const { signal } = running.current = new AbortController()
    got.value = 0
    failure.value = null
    try {
      const { items, more } = await collected(begin(), signal, (n) => void (signal.aborted || (got.value = n)))
      if (signal.aborted) return
      saveCsv(name, items)
      const rows = `${count.format(items.length)} ${items.length === 1 ? "row" : "rows"}`
      announce(
        more ? `The file has the first ${rows}. Choose filters for what is behind them.` : `The file has ${rows}.`,
      )
    } catch (cause) {
      if (signal.aborted) return
      failure.value = refusalOf(cause)
    }
    stop()
  }
  return (
    <>
      {got.value === null ? <button type="button" onClick={() => void run()}>{label}</button> : (
        <>
          <span class="note" role="status">{count.format(got.value)} rows so far</span>
          <button type="button" onClick={stop}>Stop the download</button>
        </>
      )}
      <Failure of={failure} />
    </>
  )
}
