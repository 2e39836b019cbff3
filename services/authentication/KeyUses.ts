/**
 * Writes when each API key was last used, behind the requests (WriteBehind). A use is written where it is more than 30 s
 * newer than the row's: `last_used_at` is exact to a minute. Uses that a killed process had noted are lost, which makes
 * the time too old by at most ten seconds more.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { ApiKeyId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { writeBehind } from "../platform/database/WriteBehind.ts"

/** Keys that wait to be written; beyond that the use that was noted longest ago is dropped. */
const mostNoted = 50_000

export class KeyUses extends Context.Service<KeyUses, {
  /** Notes that a key was used now. Never fails, never waits. */
  readonly add: (keyId: ApiKeyId) => Effect.Effect<void>
  /** Writes the noted uses; on a failure they wait for the next time. Runs every 10 s and when the program ends. */
  readonly flush: Effect.Effect<void>
}>()("bailiwick/services/authentication/KeyUses") {
  static readonly layer = Layer.effect(
    KeyUses,
    Effect.gen(function* () {
      const { sql } = yield* Database

      const write = (uses: ReadonlyMap<string, number>) =>
        sql`
          update api_keys k set last_used_at = used.at
          from jsonb_to_recordset(${
          sql.json([...uses].sort().map(([id, at]) => ({ id, at: new Date(at).toISOString() })))
        }) as used (id uuid, at timestamptz)
          where k.id = used.id and (k.last_used_at is null or k.last_used_at < used.at - interval '30 seconds')`

      const { flush, note } = yield* writeBehind({ name: "uses of keys", most: mostNoted, write })
      const add = (keyId: ApiKeyId) => Effect.map(Clock.currentTimeMillis, (now) => note(keyId, now))
      return KeyUses.of({ add, flush })
    }),
  )
}
