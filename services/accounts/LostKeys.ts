/** Revokes API keys again, during recovery, that were revoked in the lost time. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { ApiKeyId } from "../../schemas/BrandedIds.ts"

/** Revokes a key; returns whether it was there and active. */
export const endKey = Effect.fnUntraced(function* (sql: PgClient.PgClient, id: ApiKeyId) {
  const now = new Date(yield* Clock.currentTimeMillis)
  const ended = yield* sql`
    update api_keys set is_active = false, revoked_at = ${now} where id = ${id}::uuid and is_active returning 1`
  return ended.length > 0
})
