/** Names of projects, for operators. */
import { useResource } from "./Resource.ts"
import { ask } from "./contract/Ask.ts"

/** Gives the name of each of these projects, or null where there is none. At most 100 are asked for. */
export const useOperatedProjects = (ids: ReadonlyArray<string | null>): (id: string) => string | null => {
  const asked = [...new Set(ids)].filter((id): id is string => id !== null).sort().slice(0, 100).join()
  const names = useResource(
    `operated projects ${asked}`,
    (signal) =>
      asked === "" ? Promise.resolve({ items: [] }) : ask("listProjectNames", { query: { ids: asked } }, { signal }),
  )
  const known = new Map(names.value.value?.items.map(({ name, project_id }) => [project_id as string, name]))
  return (id) => known.get(id) ?? null
}
