/** A mail account by its name, beside the id that filters and commands take. */
import type { JSX } from "preact"

export const AccountLabel = ({ id, name }: { readonly id: string; readonly name: string | null }): JSX.Element =>
  name === null ? <code>{id}</code> : (
    <>
      {name}
      <div class="note">
        <code>{id}</code>
      </div>
    </>
  )
