/** Proposed reviews of Access, as their proposers are told of them. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { idIn } from "../platform/database/IdIn.ts"
import { expiredAt } from "./AccessReviews/ReviewExpiry.ts"

/** Those of these reviews that have expired without an approval. */
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
