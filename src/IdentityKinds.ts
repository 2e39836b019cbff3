/**
 * All identity kinds of the directory, in the order in which their rows may be locked: people, institutions, memberships,
 * projects, Access. A person who arrives brings to life what waited: Access and ownerships that named it before.
 */
import { Effect } from "effect"
import type { AccessId } from "../schemas/BrandedIds.ts"
import { accessKinds } from "../services/access/AccessKinds.ts"
import { AccessVersions } from "../services/access/AccessVersions.ts"
import type { Kind } from "../services/directory/Directory.ts"
import { EventLog } from "../services/lifecycle/EventLog.ts"
import { Database } from "../services/platform/database/Database.ts"
import { owners } from "../services/projects/Owners.ts"
import { projectKinds } from "../services/projects/ProjectKinds.ts"
import { peopleKinds } from "../services/people/PeopleKinds.ts"

/** Registers with `Directory.layer`. */
export const identityKinds = Effect.gen(function* () {
  const { sql } = yield* Database
  const versions = yield* AccessVersions
  const { appendMissing } = owners(sql, yield* EventLog)
  const [person, ...others] = yield* peopleKinds

  const arrive = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    yield* appendMissing("person_id", ids)
    const waiting = yield* sql<{ id: AccessId }>`
      select a.id from access a
      where a.person_id = any(${[...ids]}::text[]) and not a.removed and not exists (
        select from access_versions v
        where v.access_id = a.id and v.access_version = a.access_version and v.person_id = a.person_id)
      order by a.id collate "C" for update`
    for (const { id } of waiting) yield* versions.settle(id)
  })

  const kinds: ReadonlyArray<Kind> = [
    { ...person!, after: arrive },
    ...others,
    ...(yield* projectKinds),
    ...(yield* accessKinds),
  ]
  return kinds
})
