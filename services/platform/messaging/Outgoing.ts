/**
 * Messages to people outside: mails, Slack messages. A message is a row, added in the transaction that decides to send
 * it. It is claimed, sent, and its outcome is recorded under the claim. A channel says which rows these are, how one
 * message is sent, and when it is tried again.
 *
 * An attempt that ends without an outcome, since its process died, is over with its lease. A channel that can tell marks
 * the row before anything leaves. Without the mark the message is due again, later each time, and is given up after 16
 * such attempts; with it the outcome is unknown.
 *
 * A message whose outcome is unknown is sent once more, ten minutes after its attempt began: so it arrives at most twice,
 * and twice only in that case. A channel without marks repeats an attempt that had no answer as it repeats a failure.
 */
import type { PgClient } from "@effect/sql-pg"
import { Cause, Clock, Deferred, Effect, Schedule } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { backoffMillis, claimDue, claimed, type LeasedTable, release, stopTime } from "../database/Leases.ts"
import { prune } from "../database/Prune.ts"
import { faultPoint } from "../Failpoints.ts"

/** An attempt is given up after so many that ended before anything left, for example because they kill their process. */
const interruptions = 16
const interrupted = "interrupted"

/** The delay between an attempt with an unknown outcome and its repeat. */
const repeatMillis = 10 * 60_000

/** Leases that ended and are looked at together. */
const expiredBatch = 100
/** Rows that one statement deletes. */
const prunedBatch = 1_000

/** The outcome of one attempt. Errors are for operators: they hold no address and no text of the message. */
export type MessageOutcome =
  | { readonly _tag: "Sent" }
  /** Nothing to send any more. */
  | { readonly _tag: "Dropped" }
  /** The message is to be tried again: it did not leave, or may be sent twice. */
  | { readonly _tag: "Later"; readonly error: string }
  /** The message did not leave and never will. */
  | { readonly _tag: "Refused"; readonly error: string }
  /** The message may have left, and is not to be sent twice without need. */
  | { readonly _tag: "Unknown"; readonly error: string }

/** A message, claimed for one attempt. */
export interface ClaimedMessage {
  readonly id: string
  /** `unknown`: this attempt is the repeat, or follows it. */
  readonly state: "pending" | "unknown"
  /** This one included. */
  readonly attempts: number
  readonly claim: bigint
  readonly lease_until: Date
  /** Where the channel marks its messages: whether something may have left, and the attempts with an unknown outcome. */
  readonly sending?: boolean
  readonly doubts?: number
}

/** The rows of a channel: a table with the key `id`, the columns of Leases.ts, `state` and `ended_at`. */
export interface MessageRows {
  readonly table: "mails" | "slack_messages"
  /** Narrows the due rows, as a condition after others over the alias `t`. */
  readonly due: Statement.Fragment
  /** Narrows the claimed rows to those of which nothing has left, in the same way. */
  readonly unsent: Statement.Fragment
  /** The value of `not_before` once no attempt will follow. */
  readonly never: Statement.Fragment
  /** Assigns, each after a comma, the columns that only this table has. */
  readonly more: (outcome: MessageOutcome["_tag"], now: Date) => Statement.Fragment
}

export interface Channel<Message extends ClaimedMessage> {
  readonly name: "mail" | "slack"
  readonly rows: MessageRows
  /** Messages that one claim takes, which are sent at once. */
  readonly batch: number
  readonly leaseMillis: number
  /** The time limit of an attempt, shorter than its lease. */
  readonly attemptMillis: number
  /** The delay after each temporary failure; the attempt after the last delay is the last. */
  readonly retryMillis: ReadonlyArray<number>
  /** How long messages are kept once they have ended. */
  readonly keptMillis: number
  /**
   * Makes a message ready, while nothing of it leaves; gives what sends it. That ends soon after `giveUp` has returned,
   * and gives null where the claim is lost, or where the message may be sent again as if this attempt had not been.
   */
  readonly prepare: (message: Message) => Effect.Effect<
    (giveUp: Effect.Effect<void>) => Effect.Effect<MessageOutcome | null, SqlError.SqlError>,
    SqlError.SqlError
  >
  /** Runs after each attempt, before its outcome is recorded. */
  readonly noted: (message: Message, outcome: MessageOutcome) => Effect.Effect<void>
}

/** The operations that the loops of a channel run. */
export interface Outgoing {
  /**
   * Claims due messages, of `ids` where they are given, runs `onClaimed` and sends them; gives whether there may be more.
   * On an interruption what has not begun is released; what has gets 4 s after `stop`.
   */
  readonly work: (options?: {
    readonly ids?: ReadonlyArray<string>
    readonly onClaimed?: Effect.Effect<void>
  }) => Effect.Effect<boolean, SqlError.SqlError>
  /** Gives attempts under way 4 s more. Before the loops are interrupted, which wait for these attempts. */
  readonly stop: Effect.Effect<void>
  /** Ends attempts whose lease is over. */
  readonly free: Effect.Effect<void, SqlError.SqlError>
  /** Deletes messages that ended long ago. */
  readonly prune: Effect.Effect<void, SqlError.SqlError>
}

interface Next {
  readonly state: "pending" | "sent" | "failed" | "unknown" | "dropped"
  /** Null: no attempt follows. */
  readonly afterMillis: number | null
  readonly error: string | null
}

/** The outcome of an attempt. An `unknown` message stays `unknown` to its end, unless its repeat is sent. */
const nextOf = (
  retryMillis: ReadonlyArray<number>,
  { attempts, doubts, state }: ClaimedMessage,
  outcome: MessageOutcome,
): Next => {
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

/** Records an outcome under the message's claim. `begunAt`: when the attempt began, where that was long ago. */
const record = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  rows: MessageRows,
  message: ClaimedMessage,
  outcome: MessageOutcome["_tag"],
  { afterMillis, error, state }: Next,
  begunAt?: number,
) {
  const now = yield* Clock.currentTimeMillis
  yield* sql`
    update ${sql(rows.table)} set claim = null, lease_until = null, state = ${state},
      last_error = left(${error === null ? null : error.replaceAll("\0", "")}, 500),
      ended_at = ${afterMillis === null ? new Date(now) : null},
      not_before = ${afterMillis === null ? rows.never : sql`${new Date((begunAt ?? now) + afterMillis)}`}
      ${rows.more(outcome, new Date(now))}
    where id = ${message.id}::uuid and claim = ${message.claim}`
})

/** Sends claimed messages: prepares, sends, records. */
const attempting = <Message extends ClaimedMessage>(
  sql: PgClient.PgClient,
  { name, noted, prepare, retryMillis, rows }: Channel<Message>,
  giveUp: Effect.Effect<void>,
) =>
(message: Message): Effect.Effect<void> =>
  // Uninterruptible once something may leave, so that the outcome is recorded; `giveUp` bounds it when the process stops.
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const send = yield* restore(prepare(message))
      const outcome = yield* send(giveUp)
      if (outcome === null) return
      yield* faultPoint(`${name}.answered`)
      yield* noted(message, outcome)
      yield* record(sql, rows, message, outcome._tag, nextOf(retryMillis, message, outcome)).pipe(
        Effect.retry({ times: 5, schedule: Schedule.spaced("200 millis") }),
      )
      yield* faultPoint(`${name}.settled`)
    })
  ).pipe(
    // The lease ends by itself, and the mark tells the next attempt that the message may have left. The cause is not
    // logged: it may contain the message's text.
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.logWarning(`${name} ${message.id}: the outcome of its attempt was not recorded`)
    ),
  )

/** Ends attempts whose lease is over. */
const freeing = <Message extends ClaimedMessage>(
  sql: PgClient.PgClient,
  { leaseMillis, retryMillis, rows }: Channel<Message>,
) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const over = yield* sql<Message>`
      select * from ${sql(rows.table)} where claim is not null and lease_until < ${new Date(now)}
      order by lease_until limit ${expiredBatch}`
    for (const message of over) {
      const ended = (outcome: MessageOutcome, begunAt?: number) =>
        record(sql, rows, message, outcome._tag, nextOf(retryMillis, message, outcome), begunAt)
      const { attempts, lease_until, sending, state } = message
      if (sending === true) {
        yield* ended({ _tag: "Unknown", error: interrupted }, lease_until.getTime() - leaseMillis)
      } else if (attempts >= interruptions) {
        yield* ended({ _tag: "Refused", error: interrupted })
      } else {
        const afterMillis = backoffMillis(attempts)
        yield* record(sql, rows, message, "Later", { state, afterMillis, error: interrupted })
      }
    }
  })

/** Deletes messages that ended `keptMillis` ago, however many. */
const pruning = (sql: PgClient.PgClient, { table }: MessageRows, keptMillis: number) =>
  Effect.gen(function* () {
    const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
    yield* prune(sql, { table, where: sql`ended_at < ${before}`, order: "ended_at", batch: prunedBatch })
  })

/** The work on a channel's messages. Processes share it; one process has it once. */
export const outgoing = <Message extends ClaimedMessage>(
  sql: PgClient.PgClient,
  channel: Channel<Message>,
): Effect.Effect<Outgoing> =>
  Effect.sync(() => {
    const { attemptMillis, batch, keptMillis, leaseMillis, name, rows } = channel
    const table: LeasedTable = { table: rows.table, key: "id", keyType: "uuid" }
    const stopping = Deferred.makeUnsafe<void>()
    const giveUp = Effect.raceFirst(
      Effect.sleep(attemptMillis),
      Effect.andThen(Deferred.await(stopping), Effect.sleep(stopTime)),
    )
    const attempt = attempting(sql, channel, giveUp)

    const work: Outgoing["work"] = ({ ids, onClaimed = Effect.void } = {}) =>
      claimed({
        claim: claimDue<Message>(sql, table, {
          leaseMillis,
          limit: batch,
          also: ids === undefined ? rows.due : sql`${rows.due} and t.id = any(${[...ids]}::uuid[])`,
        }),
        work: Effect.fnUntraced(function* (messages) {
          yield* onClaimed
          if (messages.length > 0) yield* faultPoint(`${name}.claimed`)
          yield* Effect.forEach(messages, attempt, { concurrency: batch, discard: true })
          return messages.length === batch
        }),
        giveBack: ([first]) =>
          first === undefined ? Effect.void : release(sql, table, first.claim, { also: rows.unsent }),
      }).pipe(Effect.withSpan("Outgoing.work", { attributes: { channel: name } }))

    return {
      work,
      stop: Effect.asVoid(Deferred.succeed(stopping, undefined)),
      free: freeing(sql, channel),
      prune: pruning(sql, rows, keptMillis),
    }
  })
