/** Runs changes of the signing keys and their states: one at a time, with new keys made before the lock is taken. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Vault } from "../../platform/security/Vault.ts"
import type { SigningKeys } from "../SigningKeys.ts"
import { type KeyRow, type KeyState, keyStore, lockKeys, makePair } from "./KeyGeneration.ts"

/** Makes sure that two keys follow this one; returns all that do, in order. */
export type Follow = (kid: string) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>

export const keyStateChanges = (
  sql: PgClient.PgClient,
  vault: Vault["Service"],
  ensure: SigningKeys["Service"]["ensure"],
) => {
  const { add } = keyStore(sql, vault)

  /** Announced and published keys behind the given one, in order. */
  const after = (kid: string) =>
    sql<KeyRow>`
      select n.kid, n.state, n.succession, n.changed_at from signing_keys n
      join signing_keys k on k.kid = ${kid} and n.succession > k.succession
      where n.state in ('announced', 'published') order by n.succession`

  /** Changes a key's state; a retired or compromised key loses its private key in the same statement. */
  const move = (kid: string, state: KeyState, now: Date) =>
    state === "retired" || state === "compromised"
      ? sql`
        update signing_keys set state = ${state}, changed_at = ${now}, private_key = null, vault_kid = null
        where kid = ${kid}`
      : sql`update signing_keys set state = ${state}, changed_at = ${now} where kid = ${kid}`

  /** Runs a change of keys alone, in a transaction. */
  const alone = <A, E, R>(change: Effect.Effect<A, E, R>) => sql.withTransaction(Effect.andThen(lockKeys(sql), change))

  /**
   * The same for a change that needs `least` keys that are not in use yet: missing keys are made before there is a
   * transaction or a lock. Gives the change, which the caller runs, in its transaction where it has one.
   */
  const prepared = <A, E>(least: number, change: (follow: Follow) => Effect.Effect<A, E>) =>
    Effect.gen(function* () {
      yield* ensure
      const [row] = yield* sql<{ n: number }>`
        select count(*)::int as n from signing_keys where state in ('announced', 'published')`
      const made = yield* Effect.all(Array.from({ length: Math.max(0, least - row!.n) }, () => makePair))
      return alone(Effect.suspend(() => {
        const pairs = [...made]
        return change(Effect.fnUntraced(function* (kid: string) {
          const known = (yield* after(kid)).map((key) => key.kid)
          while (known.length < 2) known.push(yield* add("announced", pairs.pop() ?? (yield* makePair)))
          return known
        }))
      }))
    })

  /** The same, run at once. */
  const changing = <A, E>(least: number, change: (follow: Follow) => Effect.Effect<A, E>) =>
    Effect.flatten(prepared(least, change))

  return { after, alone, changing, move, prepared }
}
