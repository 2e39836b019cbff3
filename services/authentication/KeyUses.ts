/**
 * Writes when each API key was last used: noted in memory and written every 10 s in one statement, so that no request
 * waits for it. A use is written where it is more than 30 s newer than the row's: `last_used_at` is exact to a minute.
 * Uses that a killed process had noted are lost, which makes the time too old by at most those 10 s.
 */
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { BoundedMap } from "../platform/BoundedMap.ts"
import { Database } from "../platform/database/Database.ts"
import { counted } from "../platform/MapSizes.ts"

/** Keys that wait to be written; beyond that the use that was noted longest ago is dropped. */
const mostNoted = 50_000

export class KeyUses extends Context.Service<KeyUses, {
  /** Notes that a key was used now. Never fails, never waits. */
  readonly add: (keyId: string) => Effect.Effect<void>
  /** Writes the noted uses; on a failure they wait for the next time. Runs every 10 s and when the program ends. */
  readonly flush: Effect.Effect<void>
}>()("bailiwick/services/authentication/KeyUses") {
  static readonly layer = Layer.effect(
    KeyUses,
    Effect.gen(function* () {
      const { sql } = yield* Database
      let noted = new BoundedMap<string, number>(mostNoted)
      yield* counted("uses of keys", () => noted.size)

      const add = (keyId: string) => Effect.map(Clock.currentTimeMillis, (now) => void noted.set(keyId, now))

      const write = (uses: ReadonlyMap<string, number>) =>
        sql`
          update api_keys k set last_used_at = used.at
          from jsonb_to_recordset(${
          sql.json([...uses].sort().map(([id, at]) => ({ id, at: new Date(at).toISOString() })))
        }) as used (id uuid, at timestamptz)
          where k.id = used.id and (k.last_used_at is null or k.last_used_at < used.at - interval '30 seconds')`

      const flush = Effect.gen(function* () {
        if (noted.size === 0) return
        const uses = noted
        noted = new BoundedMap(mostNoted)
        yield* write(uses).pipe(Effect.catch((error) => {
          for (const [keyId, at] of noted) uses.set(keyId, at)
          noted = uses
          return Effect.logWarning("Uses of API keys were not written yet", error)
        }))
      }).pipe(Effect.withSpan("KeyUses.flush"))

      yield* Effect.addFinalizer(() => flush)
      yield* flush.pipe(Effect.schedule(Schedule.spaced("10 seconds")), Effect.forkScoped)
      return KeyUses.of({ add, flush })
    }),
  )
}
