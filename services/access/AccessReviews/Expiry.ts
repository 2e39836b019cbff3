/**
 * When a review expires. That is judged when the review is read; a row changes only where a new proposal takes the place
 * of an expired one (`lapsed`), which needs no sweep to have run.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { ReviewExists } from "../../../schemas/problems/Identity.ts"
import { Audit } from "../../platform/Audit.ts"
import { Database } from "../../platform/Database.ts"
import type { ReviewRow } from "./Rows.ts"

const day = 86_400_000

/** How long a proposal, and an approval, counts. */
const proposalMillis = 7 * day
const approvalMillis = 365 * day

type Dated = Pick<ReviewRow, "proposed_at" | "approved_at">

const endOf = ({ approved_at, proposed_at }: Dated): number =>
  approved_at === null ? proposed_at.getTime() + proposalMillis : approved_at.getTime() + approvalMillis

export const isExpired = (row: Dated, now: number): boolean => endOf(row) <= now

/** SQL of `isExpired`, of the columns of a row. */
export const expiredAt = (sql: PgClient.PgClient, now: Date) =>
  sql`coalesce(approved_at > ${new Date(now.getTime() - approvalMillis)},
    proposed_at > ${new Date(now.getTime() - proposalMillis)}) is false`

/** Which review has the place of its Access version, of which there is one. */
export const places = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit

  // An approval that is made at the same moment is waited for, and keeps the place.
  const lapse = Effect.fnUntraced(function* ({ access_id, access_version, proposed_at: now }: ReviewRow) {
    const lapsed = yield* sql<{ id: string }>`
      update access_reviews set state = 'lapsed', lapsed_at = ${now}
      where access_id = ${access_id} and access_version = ${access_version} and state in ('proposed', 'approved')
        and ${expiredAt(sql, now)}
      returning id::text as id`
    for (const { id } of lapsed) {
      yield* audit.append({
        ...{ action: "access-review.expired", actor: "system", subject: `access-review:${id}`, outcome: "done" },
      })
    }
    return lapsed.length > 0
  })

  const refusal = Effect.fnUntraced(function* ({ access_id, access_version }: ReviewRow) {
    const [row] = yield* sql<Pick<ReviewRow, "id" | "state" | "proposed_at" | "approved_at">>`
      select id::text as id, state, proposed_at, approved_at from access_reviews
      where access_id = ${access_id} and access_version = ${access_version} and state in ('proposed', 'approved')`
    // It may be revoked by now.
    if (row === undefined) return new ReviewExists()
    const until = new Date(endOf(row)).toISOString()
    return new ReviewExists({
      detail:
        `Review ${row.id} of this Access version is ${row.state} until ${until}. Another one can be proposed from ` +
        "then on, or once that one is revoked.",
    })
  })

  /** Adds a review by `insert`, which gives nothing where another review has the place, in the place of an expired one. */
  const take = Effect.fnUntraced(function* (
    row: ReviewRow,
    insert: Effect.Effect<ReadonlyArray<ReviewRow>, SqlError.SqlError>,
  ) {
    const [made] = yield* insert
    if (made !== undefined) return made
    const [late] = (yield* lapse(row)) ? yield* insert : []
    return late ?? (yield* yield* refusal(row))
  })

  return { take }
})
