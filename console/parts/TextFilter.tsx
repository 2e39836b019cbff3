/** A filter by a text that stands in the address; it counts when the field is left or Enter is pressed. */
import type { JSX } from "preact"
import { useId } from "preact/hooks"
import { here, setQuery } from "../Location.ts"

export const TextFilter = ({ label, name, placeholder }: {
  readonly label: string
  /** The filter's name in the address and in the API. */
  readonly name: string
  readonly placeholder?: string
}): JSX.Element => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="search"
        autocomplete="off"
        placeholder={placeholder ?? ""}
        value={here.value.searchParams.get(name) ?? ""}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim(), after: undefined })}
      />
    </div>
  )
}

/** A filter's value in the address; undefined where it has none. */
export const filterOf = (name: string): string | undefined => here.value.searchParams.get(name) || undefined

/** The address of the next page of a list. `name`: where it stands in the address, on a page with several lists. */
export const pageAfter = (after: string, name = "after"): string => {
  const url = new URL(here.value)
  url.searchParams.set(name, after)
  return url.pathname + url.search
}
