/** Mails that have not been sent, for operators: pages of them, another attempt, and the end of one. */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../database/Database.ts"
import { afterCommit } from "../database/UnitOfWork.ts"
import { WakeUps } from "../messaging/WakeUps.ts"
import { mailsTopic } from "./Mails.ts"

export type UnsentState = "pending" | "failed" | "unknown"

export interface MailRow {
  readonly id: string
  readonly kind: string
  readonly state: UnsentState | "sent" | "dropped"
  readonly recipient: string
  readonly attempts: number
  /** Whether a process has it. */
  readonly claimed: boolean
  readonly created_at: Date
  readonly not_before: Date | null
  readonly last_error: string | null
}

export class MailUpkeep extends Context.Service<MailUpkeep, {
  /** Mails in this state, newest first, behind `afterId`. */
  readonly list: (
    state: UnsentState,
    limit: number,
    afterId: string | undefined,
  ) => Effect.Effect<{ readonly mails: ReadonlyArray<MailRow>; readonly nextAfterId: string | null }, SqlError.SqlError>
  /** Locks a mail to the end of the transaction; null where there is none. */
  readonly lock: (id: string) => Effect.Effect<MailRow | null, SqlError.SqlError>
  /**
   * Makes a locked one due now, with all its attempts. One whose outcome is unknown stays so: it may arrive twice, as
   * the same message to a reader.
   */
  readonly again: (id: string) => Effect.Effect<MailRow, SqlError.SqlError>
  /** Ends a locked one: no attempt follows, and no check counts it. */
  readonly forget: (id: string) => Effect.Effect<MailRow, SqlError.SqlError>
}>()("bailiwick/services/platform/mail/MailUpkeep") {
  static readonly layer = Layer.effect(
    MailUpkeep,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const wakeUps = yield* WakeUps
      const columns = sql`id::text as id, kind, state, recipient, attempts, claim is not null as claimed, created_at,
        not_before, last_error`

      const list: MailUpkeep["Service"]["list"] = Effect.fn("MailUpkeep.list")(function* (state, limit, afterId) {
        const after = afterId === undefined ? sql`true` : sql`m.id < ${afterId}::uuid`
        // A literal: only so can a plan for any parameters use the index of these states.
        const found = yield* sql<MailRow>`
          select ${columns} from mails m where m.state = ${sql.literal(`'${state}'`)} and ${after}
          order by m.id desc limit ${limit + 1}`
        const mails = found.slice(0, limit)
        return { mails, nextAfterId: found.length > limit ? mails.at(-1)!.id : null }
      })

      const lock: MailUpkeep["Service"]["lock"] = Effect.fn("MailUpkeep.lock")(function* (id) {
        const [row] = yield* sql<MailRow>`select ${columns} from mails where id = ${id}::uuid for no key update`
        return row ?? null
      })

      const again: MailUpkeep["Service"]["again"] = Effect.fn("MailUpkeep.again")(function* (id) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const [row] = yield* sql<MailRow>`
          update mails set state = case state when 'unknown' then 'unknown' else 'pending' end, attempts = 0,
            not_before = ${now}, ended_at = null
          where id = ${id}::uuid returning ${columns}`
        yield* afterCommit(sql, wakeUps.notify(mailsTopic))
        return row!
      })

      const forget: MailUpkeep["Service"]["forget"] = Effect.fn("MailUpkeep.forget")(function* (id) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const [row] = yield* sql<MailRow>`
          update mails set state = 'dropped', not_before = null, ended_at = coalesce(ended_at, ${now})
          where id = ${id}::uuid returning ${columns}`
        return row!
      })

      return MailUpkeep.of({ list, lock, again, forget })
    }),
  )
}
