/** The way to the next page of a list, and back to its beginning. */
import type { JSX } from "preact"
import { here } from "../Location.ts"
import { filterOf, pageAfter } from "./TextFilter.tsx"

/** Items of a page of these lists. */
export const pageSize = 50

export const NextPage = ({ last, name, words }: {
  /** The id of the last item of a full page; null where the list ends here. */
  readonly last: string | null
  /** Where the page stands in the address. */
  readonly name: string
  /** The list's items, in the plural: `members`. */
  readonly words: string
}): JSX.Element | null => {
  if (last === null && filterOf(name) === undefined) return null
  const first = new URL(here.value)
  first.searchParams.delete(name)
  return (
    <p class="actions">
      {filterOf(name) === undefined ? null : <a href={first.pathname + first.search}>First {words}</a>}
      {last === null ? null : <a href={pageAfter(last, name)}>More {words}</a>}
    </p>
  )
}

/** The text of an empty page of a list: only the first one says that there is nothing. `name` as in NextPage. */
export const emptyPage = (name: string, nothing: string): string =>
  filterOf(name) === undefined ? nothing : "The list ends before this place."

/** The id after which the next page begins; null where this page is not full. */
export const lastOf = <A,>(items: ReadonlyArray<A>, idOf: (item: A) => string): string | null =>
  items.length < pageSize ? null : idOf(items.at(-1)!)
