/**
 * The reviews that a person approved or declined, newest first, whatever became of them, and whichever roles the person
 * holds now.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import type { PolicyReviews } from "../../../schemas/identity/PolicyReview.ts"
import { idIn } from "../../platform/database/IdIn.ts"
import { listedColumns, listedOf, type ListedRow } from "./ListedReviews.ts"

export interface OwnPage {
  readonly personId: PersonId
  /** Only those that are open: what the person signed waits for another signature. */
  readonly open: boolean
  /** The last of the page before. */
  readonly afterId: string | null
  readonly limit: number
  /** The reviews to choose from; all by default. */
  readonly only?: ReadonlyArray<string>
}

export const ownDecisions = (sql: PgClient.PgClient) =>
  Effect.fn("PolicyDecisions.decidedBy")(function* (
    { afterId, limit, only, open, personId }: OwnPage,
  ): Effect.fn.Return<PolicyReviews, SqlError.SqlError> {
    const before = sql`(${afterId}::uuid is null or decided.id < ${afterId}::uuid)
      ${only === undefined ? sql`` : sql`and ${idIn(sql, "decided.id", "uuid", only)}`}`
    const rows = yield* sql<ListedRow>`
      with name as (select id from people where id = ${personId} or merged_into = ${personId})
      select ${listedColumns(sql)}
      from (
        select own.id from name cross join lateral (
          select decided.id from (
            select a.review_id as id from policy_approvals a where a.person_id = name.id) decided
          where ${before} and ${
      open
        ? sql`exists (
            select from policy_reviews o where o.id = decided.id and o.state = 'open')`
        : sql`true`
    }
          order by decided.id desc limit ${limit}
        ) own
        union
        select own.id from name cross join lateral (
          select decided.id from policy_reviews decided
          where decided.declined_by = name.id and ${before} and ${open ? sql`false` : sql`true`}
          order by decided.id desc limit ${limit}
        ) own
        order by id desc limit ${limit}
      ) page join policy_reviews v on v.id = page.id join requests r on r.id = v.request_id
      order by v.id desc`
    return { items: rows.map(listedOf) }
  })
