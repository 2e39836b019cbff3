/**
 * An administrator opens a campaign over a set of the institution's active Accesses, each at the version that it has at
 * that moment. In a transaction. Order of locks: people, institution, memberships (Roles).
 */
import { Clock, Effect } from "effect"
import { type AccessId, CampaignId, type InstitutionId, type PersonId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Campaign.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { overdueIn } from "../../access/LastReview.ts"
import { needs, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { addCall } from "../../requests/SignatureCalls.ts"
import { campaignOf } from "./CampaignRows.ts"
import { deadlineOf } from "./Deadline.ts"

export interface Opening extends Wire.CampaignCreate {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
}

/** Items of one campaign at most: they are written by one statement, and read whole for their counts. */
export const mostItems = 5_000

/**
 * Accesses that one opening looks at, the revoked ones among them. Where hardly any is meant, as of those whose review is
 * overdue, it would otherwise look at all that the institution ever had.
 */
export const mostLooked = 20_000

const refused = (field: string, msg: string) =>
  HTTPValidationError.at(["body", field], "value_error", `Value error, ${msg}`)

export const opening = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const ids = yield* Ids
  const roles = yield* Roles

  /** SQL of the Accesses that an opening looks at, by an index whose entries are looked at as well. */
  const lookedAt = ({ access_ids, institutionId, project_ids }: Opening) => {
    const most = mostLooked + 1
    const inProjects = project_ids === undefined ? sql`true` : sql`project_id = any(${[...project_ids]}::text[])`
    return access_ids !== undefined
      ? sql`select * from access where id = any(${[...access_ids]}::text[]) and ${inProjects}`
      : project_ids !== undefined
      ? sql`select o.* from (select distinct unnest(${[...project_ids]}::text[]) as id) p
          cross join lateral (select * from access where project_id = p.id limit ${most}) o limit ${most}`
      : sql`select * from access where institution_id = ${institutionId} order by id limit ${most}`
  }

  /** The Accesses that are meant, and how many were looked at. */
  const inScope = (asked: Opening, now: Date) =>
    sql<{ ids: ReadonlyArray<AccessId>; looked: number }>`
      with looked as materialized (${lookedAt(asked)})
      select (select count(*)::int from looked) as looked, array(
        select a.id from looked a
        where a.institution_id = ${asked.institutionId} and a.state = 'active' and not a.removed
          and a.access_version > 0 and ${asked.overdue === true ? overdueIn(sql, now) : sql`true`}
        order by a.id limit ${mostItems + 1}) as ids`

  /** The Accesses that are meant, where these are neither none nor too many. */
  const meant = Effect.fnUntraced(function* (asked: Opening, now: Date) {
    const [found] = yield* inScope(asked, now)
    const { ids: accesses, looked } = found!
    if (accesses.length > mostItems) {
      return yield* refused("access_ids", `a campaign has ${mostItems} items at most: name projects, or Accesses`)
    }
    if (looked > mostLooked) {
      return yield* refused("project_ids", `these are more than ${mostLooked} Accesses: name projects, or Accesses`)
    }
    return accesses.length > 0 ? accesses : yield* new InvalidState({
      state: "empty",
      allowed: ["active"],
      detail: "No active Access is meant.",
    })
  })

  /** An id that names none of the institution's is told apart from no other: nothing is learned of other institutions. */
  const mustBelong = Effect.fnUntraced(function* ({ access_ids = [], institutionId, project_ids = [] }: Opening) {
    const [found] = yield* sql<{ access: ReadonlyArray<string>; projects: ReadonlyArray<string> }>`
      select array(select id from access where institution_id = ${institutionId} and state = 'active' and not removed
          and id = any(${[...access_ids]}::text[])) as access,
        array(select id from projects where institution_id = ${institutionId} and not removed
          and id = any(${[...project_ids]}::text[])) as projects`
    if (access_ids.some((id) => !found!.access.includes(id))) {
      return yield* refused("access_ids", "each has to be an active Access of the institution")
    }
    if (project_ids.some((id) => !found!.projects.includes(id))) {
      return yield* refused("project_ids", "each has to be a project of the institution")
    }
  })

  return Effect.fn("Campaigns.open")(function* (asked: Opening) {
    const { institutionId, name, personId, reason } = asked
    yield* needs(yield* roles.inInstitution(personId, institutionId), "administrator")
    const now = new Date(yield* Clock.currentTimeMillis)
    const deadline = yield* deadlineOf(asked.deadline, now.getTime(), now.getTime())
    yield* mustBelong(asked)
    const accesses = yield* meant(asked, now)
    const row = {
      id: CampaignId.make(yield* ids.next),
      institution_id: institutionId,
      name,
      reason,
      opened_by: personId,
      opened_at: now,
      deadline,
      closed_at: null,
      closed_by: null,
      close_reason: null,
    }
    yield* sql`
      insert into campaigns (id, institution_id, name, reason, opened_by, opened_at, deadline)
      values (${row.id}::uuid, ${institutionId}, ${name}, ${reason}, ${personId}, ${now}, ${deadline})`
    const items = yield* Effect.forEach(
      accesses,
      (access) => Effect.map(ids.next, (id) => ({ id, access })),
    )
    const written = yield* sql`
      insert into campaign_items (id, campaign_id, institution_id, access_id, access_version, project_id, person_id, role)
      select n.id, ${row.id}::uuid, a.institution_id, a.id, a.access_version, a.project_id,
        canonical_person(a.person_id), a.role
      from json_to_recordset(${JSON.stringify(items)}::json) n(id uuid, access text) join access a on a.id = n.access
      where a.institution_id = ${institutionId} and a.state = 'active' and not a.removed
      returning 1`
    yield* addCall(sql, { review_id: row.id, kind: "campaign" }, now)
    yield* audit.append({
      action: "campaign.opened",
      actor: `person:${personId}`,
      subject: `campaign:${row.id}`,
      outcome: "done",
      decision: true,
      details: { institution: institutionId, items: written.length, deadline: deadline.toISOString() },
    })
    const none = { confirmed: 0, proposed_for_revocation: 0, withdrawn: 0, unanswered: 0 }
    return {
      ...campaignOf(row, now.getTime()),
      items: { total: written.length, open: written.length, ...none },
    } satisfies Wire.CampaignDetail
  })
})
