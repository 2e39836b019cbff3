/**
 * A plan that leaves a partition out updates nothing, without a word; PostgreSQL 18.4 has made such plans
 * (SettleUndelivered.ts). So a settlement counts. A delivery may be gone with its day; where one that is there was left
 * out, all of it fails, is rolled back and done again.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { SqlError } from "effect/sql"
import { arrayOf } from "../Deliveries/PgArray.ts"

/** Fails where more of these deliveries exist than were `updated`; asks only where some are missing. */
export const whole = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  ids: ReadonlyArray<string>,
  updated: number,
): Effect.fn.Return<void, SqlError.SqlError> {
  if (updated === ids.length) return
  const [row] = yield* sql<{ there: number }>`
    select count(*)::int as there from deliveries where id = any(${arrayOf(ids)}::uuid[])`
  const left = row!.there - updated
  if (left <= 0) return
  const cause = new Error(`${left} deliveries were left out of their settlement`)
  return yield* new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause }) })
})
