/** A page of what waits for an operator: a list, newest first, of one state at a time. */
import type { ComponentChildren, JSX } from "preact"
import { setQuery } from "../Location.ts"
import type { Resource } from "../Resource.ts"
import { CopyCommand } from "./CopyCommand.tsx"
import { Failure } from "./Failure.tsx"
import { SelectField } from "./Form.tsx"
import { Page } from "./Page.tsx"
import { pageAfter } from "./TextFilter.tsx"

interface Paged {
  readonly next_after_id: string | null
}

export const StatePage = <A extends Paged>({ children, command, list, older, state, states, title }: {
  readonly title: string
  /** The command that lists the same; it takes the state by `--state`. */
  readonly command: string
  readonly list: Resource<A>
  /** The state that is shown, and all of them with their words. */
  readonly state: string
  readonly states: ReadonlyArray<readonly [value: string, label: string]>
  /** The words of the link to the next page. */
  readonly older: string
  /** The table of a page. */
  readonly children: (page: A) => ComponentChildren
}): JSX.Element => {
  const page = list.value.value
  return (
    <Page title={title}>
      <div class="filters">
        <SelectField
          label="Show"
          value={state}
          options={states}
          onChange={(state) => setQuery({ state, after: undefined })}
        />
      </div>
      <Failure of={list.failure} retry={list.reload} />
      {page === undefined ? null : children(page)}
      {page?.next_after_id == null ? null : (
        <p>
          <a href={pageAfter(page.next_after_id)}>{older}</a>
        </p>
      )}
      <CopyCommand command={command} options={{ state }} />
    </Page>
  )
}
