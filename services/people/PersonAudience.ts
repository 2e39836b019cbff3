/**
 * People as lifecycle events name them, and the projects that have to hear of them: those where the person has Access,
 * had it within 90 days, or is an owner. Products still know a person who was merged into another by the person's own
 * identity.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import type { PersonStatus } from "../../schemas/identity/IdentityDirectory.ts"
import type { NewLifecycleEvent } from "../lifecycle/EventLog.ts"
import { idIn } from "../platform/database/IdIn.ts"

/** A person, as a product knows it. */
export interface Person {
  readonly id: PersonId
  /** The id of the person into whom this one was merged, else its own. */
  readonly canonical: PersonId
  readonly issuer: string
  readonly subject: string
  /** Active only where the canonical person is active as well: both must be for a sign-in by this identity. */
  readonly status: PersonStatus
  readonly removed: boolean
}

export interface Audience extends Person {
  readonly projectId: ProjectId
  readonly institutionId: InstitutionId
}

/** Projects to which one transaction appends at most, and how many at a time where there are more. */
export interface FanoutLimits {
  readonly atOnce: number
  readonly chunk: number
}

/** The heads of more projects would be locked for too long by one transaction. */
export const fanoutLimits: FanoutLimits = { atOnce: 200, chunk: 100 }

/** The next part of an audience, after the project `cursor`; `last` is the last project of it where more are left. */
export const some = (audience: ReadonlyArray<Audience>, cursor: string, { atOnce, chunk }: FanoutLimits) => {
  const left = audience.filter(({ projectId }) => projectId > cursor)
    .toSorted((a, b) => a.projectId < b.projectId ? -1 : a.projectId > b.projectId ? 1 : 0)
  const projects = [...new Set(left.map(({ projectId }) => projectId))]
  const last = projects.length > atOnce ? projects[chunk - 1]! : null
  return { now: last === null ? left : left.filter(({ projectId }) => projectId <= last), last }
}

const hearsForMillis = 90 * 86_400_000

export const personOf = ({ canonical, issuer, subject }: Person): NonNullable<NewLifecycleEvent["person"]> => ({
  id: canonical,
  issuer,
  subject,
})

/** The event for a person's status; null for an active person. */
export const standingOf = ({ removed, status }: Pick<Person, "removed" | "status">) =>
  removed ? "account-purged" as const : status === "active" ? null : "account-disabled" as const

export const persons = (sql: PgClient.PgClient) => {
  const columns = sql.literal(`p.id, k.id as canonical, p.issuer, p.subject,
    case when p.status = 'active' then k.status else p.status end as status, p.removed or k.removed as removed`)
  const canonical = sql.literal("join people k on k.id = coalesce(p.merged_into, p.id)")

  /** Loads those of these people who are known, locked (`FOR SHARE`) to the end of the transaction. */
  const lock = (ids: ReadonlyArray<PersonId>): Effect.Effect<ReadonlyArray<Person>, SqlError.SqlError> =>
    sql<Person>`select ${columns} from people p ${canonical}
      where ${idIn(sql, "p.id", "text", ids)} and p.issuer is not null order by p.id collate "C" for share`

  /** Every project that has to hear of a person, once for each of the person's ids that it knows. */
  const audienceOf = (id: PersonId, nowMillis: number): Effect.Effect<ReadonlyArray<Audience>, SqlError.SqlError> =>
    sql<Audience>`
      with names as (select p.* from people p where (p.id = ${id} or p.merged_into = ${id}) and p.issuer is not null),
      heard as (
        select a.project_id, a.institution_id, a.person_id from access a join names on names.id = a.person_id
        where a.state = 'active' and not a.removed and a.access_version > 0
        union
        select v.project_id, v.institution_id, v.person_id from access_versions v join names on names.id = v.person_id
        where v.created_at > ${new Date(nowMillis - hearsForMillis)}
        union
        select o.project_id, j.institution_id, o.person_id from project_owners o join names on names.id = o.person_id
        join projects j on j.id = o.project_id
        where o.active and not o.removed and j.institution_id is not null
      )
      select distinct on (h.project_id, p.id) h.project_id as "projectId", h.institution_id as "institutionId", ${columns}
      from heard h join people p on p.id = h.person_id ${canonical}
      order by h.project_id, p.id, h.institution_id`

  return { lock, audienceOf }
}
