/**
 * The filters of a list, which stand in the address. On a phone they are behind a button, so that the list itself is on the
 * first screen; the button says how many of them are set.
 */
import { useSignal } from "@preact/signals"
import type { ComponentChildren, JSX } from "preact"
import { useId } from "preact/hooks"
import { setQuery } from "../Location.ts"
import { filterOf } from "./TextFilter.tsx"

/** How many of these filters are set. */
const setOf = (names: ReadonlyArray<string>): number => names.filter((name) => filterOf(name) !== undefined).length

/** The text of an empty list: `nothing` where no filter is set, since a filter may hide items. */
export const emptyList = (names: ReadonlyArray<string>, nothing: ComponentChildren): ComponentChildren =>
  setOf([...names, "after"]) === 0 ? nothing : "Nothing fits. Clear the filters to see everything."

export const Filters = ({ children, names }: {
  /** The names of the filters in the address. */
  readonly names: ReadonlyArray<string>
  /** Their fields. */
  readonly children: ComponentChildren
}): JSX.Element => {
  const id = useId()
  const open = useSignal(false)
  const set = setOf(names)
  const clear = () => setQuery(Object.fromEntries([...names, "after"].map((name) => [name, undefined])))
  return (
    <>
      <button
        type="button"
        class="filter-button"
        aria-expanded={open.value}
        aria-controls={id}
        onClick={() => void (open.value = !open.value)}
      >
        {set === 0 ? "Filters" : `Filters, ${set} set`}
      </button>
      <div class={open.value ? "filters" : "filters folded"} id={id}>
        {children}
        {set === 0 ? null : <button type="button" onClick={clear}>Clear the filters</button>}
      </div>
    </>
  )
}
