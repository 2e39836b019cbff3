/**
 * Active Access whose review is due: its version was granted, approved in a review, or confirmed for the last time more
 * than 365 days ago. Judged when it is read, so no decision writes a date that could contradict the evidence.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessId, InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import type * as Wire from "../../schemas/identity/PeriodicReview.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type {
  AdministratorNotEffective,
  MembershipNotActive,
  NotCurrentSponsor,
  RoleRequired,
} from "../../schemas/problems/IdentityProblems.ts"
import { decisionsReader } from "../people/InstitutionReader.ts"
import { Database } from "../platform/database/Database.ts"
import { reviewPeriodMillis } from "./AccessReviews/ReviewExpiry.ts"
import { lastReview, overdueBefore } from "./LastReview.ts"

/**
 * Accesses of an institution that one page looks at. In an institution where hardly any review is overdue, a page would
 * otherwise read every Access: it ends early, and its cursor continues after the last Access that it looked at.
 */
const looked = 2_000

interface Row extends Omit<Wire.OverdueReview, "granted_at" | "last_review" | "due_at"> {
  readonly granted_at: Date
  readonly reviewed_at: Date
  readonly reviewed_by: PersonId | null
  readonly reviewed_how: Wire.LastReview["kind"]
}

interface Page {
  readonly limit: number
  readonly afterId: string | null
}

const viewOf = ({ granted_at, reviewed_at, reviewed_by, reviewed_how, ...row }: Row): Wire.OverdueReview => ({
  ...row,
  granted_at: granted_at.toISOString(),
  last_review: { kind: reviewed_how, at: reviewed_at.toISOString(), person_id: reviewed_by },
  due_at: new Date(reviewed_at.getTime() + reviewPeriodMillis).toISOString(),
})

export class OverdueReviews extends Context.Service<OverdueReviews, {
  /** Ascending by Access; for a Sponsor, an effective administrator, an operator or an auditor. */
  readonly list: (
    personId: PersonId,
    institutionId: InstitutionId,
    page: Page,
  ) => Effect.Effect<
    Wire.OverdueReviews,
    NotFound | AdministratorNotEffective | MembershipNotActive | NotCurrentSponsor | RoleRequired | SqlError.SqlError
  >
}>()("bailiwick/services/access/OverdueReviews") {
  static readonly layer = Layer.effect(
    OverdueReviews,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const mayRead = decisionsReader(reads)

      const list = Effect.fn("OverdueReviews.list")(
        function* (personId: PersonId, institutionId: InstitutionId, { afterId, limit }: Page) {
          yield* mayRead(personId, institutionId)
          const now = yield* Clock.currentTimeMillis
          const before = overdueBefore(new Date(now))
          const [found] = yield* reads<{ readonly end: AccessId | null; readonly rows: ReadonlyArray<Row> }>`
            with seen as materialized (
              select id, access_version, project_id, person_id, role, state from access
              where institution_id = ${institutionId} and not removed and id > ${afterId ?? ""}
              order by id limit ${looked}
            ), due as (
              select a.*, v.created_at as granted_at, last.*
              from seen a
              join access_versions v on v.access_id = a.id and v.access_version = a.access_version
              cross join lateral (
                ${lastReview(reads)}
              ) last
              where a.state = 'active' and v.created_at <= ${before} and last.reviewed_at <= ${before}
              order by a.id limit ${limit}
            )
            select case when (select count(*) from seen) = ${looked} then (select max(id) from seen) end as "end", (
              select coalesce(json_agg(json_build_object('access_id', d.id, 'access_version', d.access_version,
                'project_id', d.project_id, 'person_id', d.person_id, 'display_name', p.display_name, 'role', d.role,
                'granted_at', d.granted_at, 'reviewed_at', d.reviewed_at, 'reviewed_by', d.reviewed_by,
                'reviewed_how', d.reviewed_how) order by d.id), '[]')
              from due d left join people p on p.id = d.person_id and not p.removed) as rows`
          const rows = found!.rows.map((row): Row => ({
            ...row,
            granted_at: new Date(row.granted_at),
            reviewed_at: new Date(row.reviewed_at),
          }))
          const last = rows.length === limit ? rows.at(-1)!.access_id : found!.end
          return { as_of: new Date(now).toISOString(), items: rows.map(viewOf), next_after_id: last }
        },
      )

      return OverdueReviews.of({ list })
    }),
  )
}
