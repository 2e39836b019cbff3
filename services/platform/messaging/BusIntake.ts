/**
 * The intake of messages about accounts, from the stream EVENTS: each is bounded and decoded, then accepted, kept until
 * its account is known, or rejected with a reason. One bad message never stops the others: a batch that PostgreSQL
 * refuses is halved down to the message that it refuses.
 */
import { Clock, Effect, Result } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../database/Database.ts"
import { type Reject, RejectedMessages } from "./RejectedMessages.ts"
import { isDataFault } from "../database/SqlErrors.ts"

/** A message of the stream EVENTS. */
export interface Incoming {
  readonly subject: string
  readonly seq: number
  readonly data: Uint8Array
}

/** A short code, and words for people that repeat no value. */
export interface IntakeFault {
  readonly reason: string
  readonly detail: string
}

export interface AccountIntake {
  /** Takes messages in; when it succeeds each of them is in PostgreSQL, accepted, waiting or rejected. */
  readonly take: (messages: ReadonlyArray<Incoming>) => Effect.Effect<void, SqlError.SqlError>
  /** Takes in messages that waited for accounts that are known now; returns whether there may be more. */
  readonly resume: Effect.Effect<boolean, SqlError.SqlError>
  /** Rejects messages that waited for seven days. */
  readonly expire: Effect.Effect<void, SqlError.SqlError>
}

interface Item<A> {
  readonly message: Incoming
  readonly value: A
  /** The id of the reject in which the message waited for its account. */
  readonly waited?: string
}

/** How long a message waits for an account that is not known yet. */
export const patienceMillis = 7 * 24 * 60 * 60_000
const batch = 500

const rejectOf = ({ data, seq, subject }: Incoming, { detail, reason }: IntakeFault): Reject => ({
  stream: "EVENTS",
  seq,
  subject,
  reason,
  detail,
  payload: data,
})

/**
 * Makes an intake of the messages whose subject is LIKE `subjects`. `accept` is idempotent, since it may get a value
 * again after any failure; it returns the indexes of values whose account is not known.
 */
export const accountIntake = Effect.fnUntraced(function* <A extends { readonly accountId: AccountId }>(options: {
  readonly subjects: string
  readonly read: (message: Incoming) => Result.Result<A, IntakeFault>
  readonly accept: (values: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<number>, SqlError.SqlError>
}) {
  const { sql } = yield* Database
  const rejects = yield* RejectedMessages

  const refuse = ({ message, waited }: Item<A>, error: SqlError.SqlError) =>
    waited === undefined
      ? rejects.add([rejectOf(message, { reason: "refused", detail: error.reason._tag })])
      : sql`update intake_rejects set state = 'rejected', reason = 'refused', detail = ${error.reason._tag},
          expires_at = null where id = ${waited}::uuid`

  const store = (items: ReadonlyArray<Item<A>>): Effect.Effect<void, SqlError.SqlError> =>
    items.length === 0 ? Effect.void : options.accept(items.map(({ value }) => value)).pipe(
      Effect.flatMap(Effect.fnUntraced(function* (unknown) {
        const until = new Date((yield* Clock.currentTimeMillis) + patienceMillis)
        const fault = { reason: "unknown_account", detail: "waits for its account" }
        yield* rejects.add(unknown.map((i) => {
          const { message, value: { accountId } } = items[i]!
          return { ...rejectOf(message, fault), waiting: { accountId, until } }
        }))
      })),
      Effect.catchTag("SqlError", (error) => {
        if (!isDataFault(error)) return Effect.fail(error)
        const half = items.length >> 1
        return half === 0
          ? Effect.asVoid(refuse(items[0]!, error))
          : Effect.andThen(store(items.slice(0, half)), store(items.slice(half)))
      }),
    )

  const take = Effect.fn("AccountIntake.take")(function* (messages: ReadonlyArray<Incoming>) {
    const good: Array<Item<A>> = []
    const bad: Array<Reject> = []
    for (const message of messages) {
      const value = options.read(message)
      if (Result.isSuccess(value)) good.push({ message, value: value.success })
      else bad.push(rejectOf(message, value.failure))
    }
    yield* rejects.add(bad)
    yield* store(good)
  })

  // Killed between the two statements: the next call begins again, and `accept` knows the values.
  const resume = Effect.gen(function* () {
    const rows = yield* sql<{ id: string; subject: string; stream_seq: bigint; payload: Uint8Array }>`
      select r.id, r.subject, r.stream_seq, r.payload from intake_rejects r
      where r.state = 'waiting' and r.subject like ${options.subjects} and exists (
        select from accounts a where a.id = r.account_id::uuid and not a.removed)
      order by r.id limit ${batch}`
    if (rows.length === 0) return false
    yield* store(rows.flatMap(({ id, payload, stream_seq, subject }) => {
      const message = { subject, seq: Number(stream_seq), data: payload }
      const value = options.read(message)
      return Result.isSuccess(value) ? [{ message, value: value.success, waited: id }] : []
    }))
    yield* sql`update intake_rejects set state = 'resolved', expires_at = null
      where id = any(${rows.map((row) => row.id)}::uuid[]) and state = 'waiting'`
    return rows.length === batch
  })

  // In batches: many messages may expire at the same time, and `resume` waits for this.
  const expire = Effect.gen(function* () {
    const now = new Date(yield* Clock.currentTimeMillis)
    let found = batch
    while (found === batch) {
      const rows = yield* sql`
        update intake_rejects set state = 'rejected', expires_at = null where id in (
          select id from intake_rejects
          where state = 'waiting' and subject like ${options.subjects} and expires_at <= ${now}
          order by expires_at limit ${batch} for update skip locked
        ) returning 1`
      found = rows.length
    }
  })

  return { take, resume, expire } satisfies AccountIntake
})
