/** Filters a list by the end of a span, which the page's address names: newer items are left out. */
import type { JSX } from "preact"
import { useId } from "preact/hooks"
import { setQuery } from "../Location.ts"
import { filterOf } from "./TextFilter.tsx"

/** The time of the filter, as the API takes it; undefined where there is none, or a link names no time. */
export const untilOf = (): string | undefined => {
  const at = Date.parse(filterOf("until") ?? "")
  return Number.isNaN(at) ? undefined : new Date(at).toISOString()
}

/** A time as its field has it: without a zone, in the visitor's own. */
const fieldOf = (at: string): string => {
  const time = new Date(at)
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

export const UntilFilter = (): JSX.Element => {
  const id = useId()
  const until = untilOf()
  return (
    <div class="field">
      <label for={id}>Until</label>
      <input
        id={id}
        type="datetime-local"
        value={until === undefined ? "" : fieldOf(until)}
        onChange={({ currentTarget: { value } }) =>
          setQuery({ until: value === "" ? undefined : new Date(value).toISOString(), after: undefined })}
      />
    </div>
  )
}
