/** Names of an institution's projects. */
import { useResource } from "./Resource.ts"
import { ask } from "./contract/Ask.ts"

/** The names of the institution's first hundred projects; the id of any other one. */
export const useProjectNames = (institution_id: string): (id: string) => string => {
  const projects = useResource(
    `project names ${institution_id}`,
    (signal) => ask("listProjects", { params: { institution_id }, query: { limit: "100" } }, { signal }),
  )
  const known = new Map(projects.value.value?.items.map(({ name, project_id }) => [project_id as string, name]))
  return (id) => known.get(id) ?? id
}
