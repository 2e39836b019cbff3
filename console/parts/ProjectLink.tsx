/** A project by its name, which leads to its page, beside the id that commands take. */
import type { JSX } from "preact"

export const ProjectLink = ({ id, name }: { readonly id: string; readonly name: string | null }): JSX.Element => (
  <>
    <a href={`/console/projects/${id}`}>{name ?? id}</a>
    {name === null ? null : (
      <div class="note">
        <code>{id}</code>
      </div>
    )}
  </>
)
