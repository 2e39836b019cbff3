/** Names of people whom the visitor shares an institution with. */
import { useResource } from "./Resource.ts"
import { ask } from "./contract/Ask.ts"
import { session } from "./Visitor.ts"

/** Gives the name of each of these people, or the id where the name is not the visitor's to know. At most 100 are asked for. */
export const useNames = (ids: ReadonlyArray<string>): (id: string) => string => {
  const asked = [...new Set(ids)].sort().slice(0, 100).join(",")
  const names = useResource(
    `names ${asked}`,
    (signal) =>
      asked === "" ? Promise.resolve({ items: [] }) : ask("listPersonNames", { query: { ids: asked } }, { signal }),
  )
  const known = new Map(
    names.value.value?.items.map(({ display_name, person_id }) => [person_id as string, display_name]),
  )
  return (id) => id === session.value?.person?.person_id ? "you" : known.get(id) ?? id
}
