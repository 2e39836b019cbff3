/** Proposed reviews of Access and proposed service grants: who is told of them, and which have expired. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { heldIn } from "../people/Roles.ts"
import { idIn } from "../platform/database/IdIn.ts"
import { expiredAt } from "./AccessReviews/ReviewExpiry.ts"

/** Selects the reviews that expired without an approval. */
export const expiredReviews = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  ids: ReadonlyArray<string>,
  now: Date,
): Effect.fn.Return<ReadonlySet<string>, SqlError.SqlError> {
  if (ids.length === 0) return new Set()
  const rows = yield* sql<{ id: string }>`
    select id::text as id from access_reviews
    where ${idIn(sql, "id", "uuid", ids)} and state in ('proposed', 'lapsed') and approved_at is null
      and ${expiredAt(sql, now)}`
  return new Set(rows.map(({ id }) => id))
})

/**
 * Selects the reviews that the person could approve now, by the rules of an approval: the person's standing and
 * independence.
 */
export const reviewsWaitingFor = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  personId: PersonId,
  ids: ReadonlyArray<string>,
  now: Date,
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError> {
  const rows = yield* sql<{ id: string }>`
    select v.id::text as id from access_reviews v
    where ${idIn(sql, "v.id", "uuid", ids)} and v.state = 'proposed' and not (${expiredAt(sql, now)})
      and exists (
        select from (${heldIn(sql, personId, sql`v.institution_id`, now)}) h
        where h.role = 'administrator' and h.effective)
      and counts_as_two(${personId}, v.proposed_by, null, ${now})
      and exists (
        select from access a
        where a.id = v.access_id and a.institution_id = v.institution_id and a.state = 'active' and not a.removed
          and a.access_version = v.access_version)`
  return rows.map(({ id }) => id)
})

/**
 * Selects the proposed service grants that the person could approve now, by the rules of an approval: the person's
 * standing and independence, and a project that the grant fits.
 */
export const grantsWaitingFor = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  personId: PersonId,
  ids: ReadonlyArray<string>,
  now: Date,
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError> {
  const rows = yield* sql<{ id: string }>`
    select g.id::text as id from service_grants g
    join projects o on o.id = g.project_id and not o.removed and o.state <> 'withdrawn'
      and o.environment = g.environment
    where ${idIn(sql, "g.id", "uuid", ids)} and g.state = 'proposed' and coalesce(g.expires_at > ${now}, true)
      and exists (
        select from (${heldIn(sql, personId, sql`o.institution_id`, now)}) h
        where h.role = 'administrator' and h.effective)
      and counts_as_two(${personId}, g.proposed_by, g.project_id, ${now})`
  return rows.map(({ id }) => id)
})
