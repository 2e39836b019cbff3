/** Rejected messages for operators: pages of them, waiting once more, and the end of one. */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../database/Database.ts"
import { patienceMillis } from "./BusIntake.ts"

export type OpenRejectState = "rejected" | "waiting"

export interface RejectRow {
  readonly id: string
  readonly stream: string
  readonly stream_seq: number
  readonly subject: string
  readonly reason: string
  readonly detail: string | null
  /** The first bytes of what is kept. */
  readonly raw: Uint8Array
  readonly bytes: number
  readonly account_id: AccountId | null
  readonly state: OpenRejectState | "resolved"
  readonly received_at: Date
  readonly expires_at: Date | null
}

/** Only a message that once waited for its account can be taken up again: the intake reads no other from its row. */
export const retryable = ({ account_id, state }: Pick<RejectRow, "account_id" | "state">): boolean =>
  state === "rejected" && account_id !== null

/** Bytes of a message that are shown. */
const shown = 2_048

export class RejectUpkeep extends Context.Service<RejectUpkeep, {
  /** Rejects in this state, newest first, behind `afterId`. */
  readonly list: (
    state: OpenRejectState,
    limit: number,
    afterId: string | undefined,
  ) => Effect.Effect<
    { readonly rejects: ReadonlyArray<RejectRow>; readonly nextAfterId: string | null },
    SqlError.SqlError
  >
  /** Locks a reject to the end of the transaction; null where there is none. */
  readonly lock: (id: string) => Effect.Effect<RejectRow | null, SqlError.SqlError>
  /** Lets a locked reject wait for its account once more. */
  readonly retry: (id: string) => Effect.Effect<RejectRow, SqlError.SqlError>
  /** Ends a locked reject: it does not wait any more. */
  readonly discard: (id: string) => Effect.Effect<RejectRow, SqlError.SqlError>
}>()("bailiwick/services/platform/messaging/RejectUpkeep") {
  static readonly layer = Layer.effect(
    RejectUpkeep,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const columns = sql`id::text as id, stream, stream_seq::float8 as stream_seq, subject, reason, detail,
        substring(payload from 1 for ${shown}) as raw, octet_length(payload) as bytes, account_id, state, received_at,
        expires_at`

      const list: RejectUpkeep["Service"]["list"] = Effect.fn("RejectUpkeep.list")(function* (state, limit, afterId) {
        const after = afterId === undefined
          ? sql`true`
          : sql`(r.received_at, r.id) < (select received_at, id from intake_rejects where id = ${afterId}::uuid)`
        // A literal: only so can a plan for any parameters use the index of these states.
        const found = yield* sql<RejectRow>`
          select ${columns} from intake_rejects r where r.state = ${sql.literal(`'${state}'`)} and ${after}
          order by r.received_at desc, r.id desc limit ${limit + 1}`
        const rejects = found.slice(0, limit)
        return { rejects, nextAfterId: found.length > limit ? rejects.at(-1)!.id : null }
      })

      const lock: RejectUpkeep["Service"]["lock"] = Effect.fn("RejectUpkeep.lock")(function* (id) {
        const [row] = yield* sql<RejectRow>`
          select ${columns} from intake_rejects where id = ${id}::uuid for no key update`
        return row ?? null
      })

      const retry: RejectUpkeep["Service"]["retry"] = Effect.fn("RejectUpkeep.retry")(function* (id) {
        const until = new Date((yield* Clock.currentTimeMillis) + patienceMillis)
        const [row] = yield* sql<RejectRow>`
          update intake_rejects set state = 'waiting', expires_at = ${until} where id = ${id}::uuid returning ${columns}`
        return row!
      })

      const discard: RejectUpkeep["Service"]["discard"] = Effect.fn("RejectUpkeep.discard")(function* (id) {
        const [row] = yield* sql<RejectRow>`
          update intake_rejects set state = 'resolved', expires_at = null where id = ${id}::uuid returning ${columns}`
        return row!
      })

      return RejectUpkeep.of({ list, lock, retry, discard })
    }),
  )
}
