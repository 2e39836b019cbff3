/** Names of mail accounts, for operators. */
import { useResource } from "./Resource.ts"
import { ask } from "./contract/Ask.ts"

/** The form of an account's id; the query takes no other. */
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Gives the name of each of these accounts, or null where there is none. At most 100 are asked for. */
export const useAccountNames = (ids: ReadonlyArray<string | null>): (id: string) => string | null => {
  const asked = [...new Set(ids)].filter((id): id is string => id !== null && uuid.test(id)).sort().slice(0, 100)
  const names = useResource(
    `account names ${asked.join()}`,
    (signal) =>
      asked.length === 0
        ? Promise.resolve({ items: [] })
        : ask("listAccountNames", { query: { ids: asked.join() } }, { signal }),
  )
  const known = new Map(names.value.value?.items.map(({ account_id, name }) => [account_id as string, name]))
  return (id) => known.get(id) ?? null
}
