/**
 * Guards against a pruning defect of PostgreSQL 18.4: some generic plans leave a partition out, so that an UPDATE
 * misses its rows without an error (SettleUndelivered.ts). A settlement counts the updated rows: if it missed a
 * delivery that exists, it fails, is rolled back and retried. A delivery without a row is not missed: its day was
 * dropped.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { SqlError } from "effect/sql"
import { arrayOf } from "../Deliveries/PgArray.ts"

/** Fails if more of these deliveries exist than were `updated`; counts them only if the numbers differ. */
export const assertAllUpdated = Effect.fnUntraced(function* (
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
