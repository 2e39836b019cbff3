/** The statements of one attempt to send a mail; all of them are fenced by the claim. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import { backoffMillis, claimDue, type LeasedTable, release, unfinished } from "../../database/Leases.ts"

const minute = 60_000

/** How long one attempt may take, rendering included, before another process may claim the mail. */
export const leaseMillis = 3 * minute

/** The delay after a temporary failure, by the number of attempts so far: 8 attempts in 23 hours. */
const retryMillis = [1, 5, 15, 60, 180, 360, 720].map((minutes) => minutes * minute)

/**
 * A mail is given up after so many attempts that ended before it was sent, for example because it kills its process.
 */
const interruptions = 16

const repeatMillis = 10 * minute

const table: LeasedTable = { table: "mails", key: "id", keyType: "uuid" }

/** SQL of one row for each waiting mail, as `unfinished` makes it. */
export const unsent = (sql: PgClient.PgClient, most: number) =>
  unfinished(sql, table, sql`t.not_before is not null`, most)

export interface ClaimedMail {
  readonly id: string
  readonly kind: string
  readonly subject_id: string
  readonly recipient: string
  readonly args: Readonly<Record<string, string | null>>
  readonly created_at: Date
  /** `unknown`: this attempt is the repeat. */
  readonly state: "pending" | "unknown"
  readonly message_id: string | null
  readonly attempts: number
  readonly doubts: number
  readonly claim: bigint
  readonly lease_until: Date
}

/** The outcome of one attempt. Errors are for operators: they hold no address and no text of the message. */
export type MailOutcome =
  | { readonly _tag: "Sent" }
  /** Nothing to send any more. */
  | { readonly _tag: "Dropped" }
  /** The message did not leave, and may another time. */
  | { readonly _tag: "Later"; readonly error: string }
  /** The message did not leave and never will. */
  | { readonly _tag: "Refused"; readonly error: string }
  /** The message may have left. */
  | { readonly _tag: "Unknown"; readonly error: string }

export const claim = (sql: PgClient.PgClient, { ids, kinds, limit }: {
  readonly kinds: ReadonlyArray<string>
  readonly limit: number
  readonly ids?: ReadonlyArray<string>
}): Effect.Effect<ReadonlyArray<ClaimedMail>, SqlError.SqlError> =>
  kinds.length === 0 ? Effect.succeed([]) : claimDue<ClaimedMail>(sql, table, {
    leaseMillis,
    limit,
    also: ids === undefined
      ? sql`and t.kind = any(${[...kinds]}::text[])`
      : sql`and t.kind = any(${[...kinds]}::text[]) and t.id = any(${[...ids]}::uuid[])`,
  })

/** Releases mails that were claimed together, except those that are being sent, which their attempts settle. */
export const giveBack = (sql: PgClient.PgClient, [first]: ReadonlyArray<ClaimedMail>) =>
  first === undefined ? Effect.void : release(sql, table, first.claim, { also: sql`and not t.sending` })

export const startSending = (
  sql: PgClient.PgClient,
  mail: ClaimedMail,
  messageId: string,
): Effect.Effect<string | null, SqlError.SqlError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.map(
      sql<{ message_id: string }>`
        update mails set sending = true, message_id = coalesce(message_id, ${messageId}),
          lease_until = ${new Date(now + leaseMillis)}
        where id = ${mail.id}::uuid and claim = ${mail.claim} and lease_until > ${new Date(now)}
        returning message_id`,
      ([row]) => row?.message_id ?? null,
    ))

interface Next {
  readonly state: "pending" | "sent" | "failed" | "unknown" | "dropped"
  readonly afterMillis: number | null
  readonly error: string | null
}

/** The mail's next state. An `unknown` mail stays `unknown` to its end, unless a server takes its repeat. */
const next = ({ attempts, doubts, state }: ClaimedMail, outcome: MailOutcome): Next => {
  const failed = state === "unknown" ? "unknown" as const : "failed" as const
  switch (outcome._tag) {
    case "Sent":
      return { state: "sent", afterMillis: null, error: null }
    case "Dropped":
      return { state: state === "unknown" ? "unknown" : "dropped", afterMillis: null, error: null }
    case "Unknown":
      return { state: "unknown", afterMillis: doubts === 0 ? repeatMillis : null, error: outcome.error }
    case "Refused":
      return { state: failed, afterMillis: null, error: outcome.error }
    case "Later": {
      const afterMillis = retryMillis[attempts - 1] ?? null
      return { state: afterMillis === null ? failed : state, afterMillis, error: outcome.error }
    }
  }
}

/** `begunAt`: when the attempt began, in milliseconds, where that was long ago. */
export const settle = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  mail: ClaimedMail,
  outcome: MailOutcome,
  begunAt?: number,
) {
  const now = yield* Clock.currentTimeMillis
  const { afterMillis, error, state } = next(mail, outcome)
  yield* sql`
    update mails set claim = null, lease_until = null, sending = false, state = ${state},
      doubts = doubts + ${outcome._tag === "Unknown" ? 1 : 0},
      last_error = left(${error === null ? null : error.replaceAll("\0", "")}, 500),
      sent_at = ${outcome._tag === "Sent" ? new Date(now) : null},
      ended_at = ${afterMillis === null ? new Date(now) : null},
      not_before = ${afterMillis === null ? null : new Date((begunAt ?? now) + afterMillis)}
    where id = ${mail.id}::uuid and claim = ${mail.claim}`
})

/**
 * Frees mails whose lease ended. A mail that was being sent is unknown; another one is due again, later each time.
 */
export const free = (sql: PgClient.PgClient): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const over = yield* sql<ClaimedMail & { readonly sending: boolean }>`
      select * from mails where claim is not null and lease_until < ${new Date(now)} order by lease_until limit 100`
    for (const mail of over) {
      const error = "interrupted"
      const begunAt = mail.lease_until.getTime() - leaseMillis
      if (mail.sending) yield* settle(sql, mail, { _tag: "Unknown", error }, begunAt)
      else if (mail.attempts >= interruptions) yield* settle(sql, mail, { _tag: "Refused", error })
      else {
        yield* sql`
          update mails set claim = null, lease_until = null, last_error = ${error},
            not_before = ${new Date(now + backoffMillis(mail.attempts))}
          where id = ${mail.id}::uuid and claim = ${mail.claim}`
      }
    }
  })
