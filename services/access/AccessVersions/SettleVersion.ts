/** Compares the row of an Access with its last version, and writes the version and the events that are missing. */
import { Clock, Effect } from "effect"
import type { AccessId } from "../../../schemas/BrandedIds.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { type Person, persons, standingOf } from "../../people/PersonAudience.ts"
import { Database } from "../../platform/database/Database.ts"
import { eventsOfVersion, kindOf } from "./VersionEvents.ts"
import { type Grant, type Last, type Makers, moved, same, versionColumns, versionOf } from "./VersionRows.ts"

const ofFeed: Makers = { madeBy: null, approvedBy: [] }

export const settling = Effect.gen(function* () {
  const { sql } = yield* Database
  const eventLog = yield* EventLog
  const people = persons(sql)
  const versionNames = sql.literal(Object.keys(versionColumns).join(", "))
  const versionTypes = sql.literal(
    Object.entries(versionColumns).map(([name, type]) => `${name} ${type}`).join(", "),
  )

  /**
   * The event for the person's status that a newly granted Access needs: disabled or purged, since new Access must
   * not let in a person who may not sign in; enabled where the project's state still says disabled, since the
   * project did not hear of the person meanwhile (after 90 days without Access).
   */
  const statusEventFor = Effect.fnUntraced(function* (last: Last | null, next: Grant, person: Person) {
    if (kindOf(last, next) !== "access-granted") return null
    const statusEvent = standingOf(person)
    if (statusEvent !== null) return statusEvent
    return (yield* eventLog.toldDisabled(next.projectId, person)) ? "account-enabled" : null
  })

  const write = Effect.fnUntraced(function* (
    accessId: AccessId,
    last: Last | null,
    next: Grant,
    person: Person,
    makers: Makers,
    now: number,
  ) {
    const accessVersion = (last?.accessVersion ?? 0) + 1
    const statusEvent = yield* statusEventFor(last, next, person)
    const [eventId] = yield* eventLog.append(
      ...eventsOfVersion(accessId, last, next, person, makers, statusEvent),
    )
    const row = versionOf(accessId, accessVersion, next, makers, eventId!, now)
    yield* sql`
      with version as (
        insert into access_versions (${versionNames})
        select ${versionNames} from jsonb_to_record(${sql.json(row)}) r(${versionTypes})
      )
      -- A signed revocation of the version before says nothing of this one.
      update access set access_version = ${accessVersion},
        ends_at = case when ends_version is null or ends_at is null then ends_at else ends_before end,
        ends_version = null, ends_before = null
      where id = ${accessId}`
    return { ...next, accessVersion, eventId: eventId!, digest: row.digest }
  })

  return Effect.fn("AccessVersions.settle")(function* (accessId: AccessId, makers: Makers = ofFeed) {
    const [found] = yield* sql<Grant & { readonly removed: boolean; readonly last: Last | null }>`
      select a.institution_id as "institutionId", a.project_id as "projectId", a.person_id as "personId", a.role,
        case when a.removed then 'revoked' else a.state end as state, a.removed,
        case when v.access_id is not null then jsonb_build_object('institutionId', v.institution_id,
          'projectId', v.project_id, 'personId', v.person_id, 'role', v.role, 'state', v.state,
          'accessVersion', v.access_version, 'eventId', v.event_id, 'digest', v.digest) end as last
      from access a
      left join access_versions v on v.access_id = a.id and v.access_version = a.access_version
      where a.id = ${accessId} and a.institution_id is not null`
    if (found === undefined) return null
    const { last, removed, ...next } = found
    if (last === null ? removed : same(last, next)) return last
    const named = new Map(
      (yield* people.lock([next.personId, ...(last === null ? [] : [last.personId])])).map((p) => [p.id, p]),
    )
    // One time for both versions: by it countsFor (AccessEndRows.ts) tells a move from a revocation with a grant after it.
    const now = yield* Clock.currentTimeMillis
    const ended = last !== null && last.state === "active" && moved(last, next)
      ? yield* write(accessId, last, { ...last, state: "revoked" }, named.get(last.personId)!, makers, now)
      : last
    const person = named.get(next.personId)
    return person === undefined ? ended : yield* write(accessId, ended, next, person, makers, now)
  })
})
