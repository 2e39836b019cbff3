/** The object of audit records as an operator names it, as records have it. */
import { Effect } from "effect"
import { Database } from "../platform/database/Database.ts"

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The name in `domain:alder.example`, or in the name alone; undefined where an id is named. */
export const domainIn = (subject: string): string | undefined => /^(?:domain:)?([^:]+\.[^:]+)$/.exec(subject)?.[1]

/**
 * `domain:alder.example`, or the name alone, as `domain:ID`: the newest domain of this name, which others may have had
 * before; null where there is none. A UUID in lower case, as records have it.
 */
export const auditSubject = Effect.fnUntraced(function* (subject: string) {
  const name = domainIn(subject)
  if (name === undefined) return subject.replace(uuid, (id) => id.toLowerCase())
  const { wide } = yield* Database
  const [found] = yield* wide<{ id: string }>`
    select id::text as id from domains where lower(name collate "C") = ${name.toLowerCase()}
    order by removed, id desc limit 1`
  return found === undefined ? null : `domain:${found.id}`
})
