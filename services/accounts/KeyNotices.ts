/** What an account hears when one of its keys is made or ends: a notification of the category `alerts`. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"

export interface KeyChange {
  readonly accountId: string
  readonly keyId: string
  readonly name: string
  readonly now: Date
}

interface KeyNotices {
  /** In the transaction that made the key. */
  readonly created: (change: KeyChange) => Effect.Effect<void, SqlError.SqlError>
  /** In the transaction that ended the key. */
  readonly revoked: (change: KeyChange) => Effect.Effect<void, SqlError.SqlError>
}

export const keyNotices: Effect.Effect<KeyNotices> = Effect.succeed({
  created: () => Effect.void,
  revoked: () => Effect.void,
})
