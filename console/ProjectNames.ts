/** Names of an institution's projects. */
import { useResource } from "./Resource.ts"
import { ask } from "./contract/Ask.ts"
import { auditing } from "./Visitor.ts"

/**
 * The names of the institution's first hundred projects; the id of any other one. An auditor, who sees no projects, asks
 * for the names of `ids` alone.
 */
export const useProjectNames = (institution_id: string, ids: ReadonlyArray<string>): (id: string) => string => {
  const asked = auditing.value ? [...new Set(ids)].sort().slice(0, 100).join() : undefined
  const projects = useResource(
    `project names ${institution_id} ${asked}`,
    (signal): Promise<{ readonly items: ReadonlyArray<{ readonly project_id: string; readonly name: string }> }> =>
      asked === undefined
        ? ask("listProjects", { params: { institution_id }, query: { limit: "100" } }, { signal })
        : asked === ""
        ? Promise.resolve({ items: [] })
        : ask("listProjectNames", { query: { ids: asked } }, { signal }),
  )
  const known = new Map(projects.value.value?.items.map(({ name, project_id }) => [project_id, name]))
  return (id) => known.get(id) ?? id
}
