/**
 * The state of the installation: its epoch, and whether it is held. While it is held (a restored or promoted database,
 * whose last decisions may be lost), nothing new is activated; revocations are never held (docs/recovery.md).
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { Held } from "../../../schemas/problems/IdentityProblems.ts"
import { holds } from "./FencedWrite.ts"
import type { Fence } from "./UnitOfWork.ts"

/** Why an installation is held, or still held. */
export type HeldReason =
  /** A backup was put in place of the database. */
  | "restored"
  /** The database runs on another server, or on the same server on another timeline. */
  | "failed_over"
  /** The broker does not answer. */
  | "event_bus_unavailable"
  /** A stream that would hold the lost history is not the one to which this database had published. */
  | "stream_gone"
  /** No key of this installation verifies some messages of the lost time. */
  | "unverifiable_messages"
  /** Messages of the lost time are no longer on the streams: `missing` says which. */
  | "messages_missing"
  /** The intake has not read all messages of the lost time again. */
  | "intake_behind"

/** Missing messages of the lost time: sequences of a stream, or positions in a project's history. */
export interface MissingMessages {
  readonly stream: string
  /** Set, with `epoch`, where `first` and `last` are positions. */
  readonly project_id?: string
  readonly epoch?: number
  readonly first: number
  readonly last: number
}

export interface InstallationRow {
  readonly epoch: number
  readonly state: "open" | "held"
  readonly held_since: Date | null
  readonly held_reason: HeldReason | null
  readonly lost_since: Date | null
  /** The epoch in which the installation was open last: events of earlier ones were looked at before it opened. */
  readonly lost_from_epoch: number | null
  readonly streams: Readonly<Record<string, string>>
  /** The last sequence of each stream that this database knew before the hold. */
  readonly told: Readonly<Record<string, number>>
  readonly missing: ReadonlyArray<MissingMessages>
  readonly intake_rewound_at: Date | null
  readonly tokens_renewed_at: Date | null
  readonly reapplied_at: Date | null
  readonly opened_at: Date | null
}

export const readInstallation = (sql: PgClient.PgClient): Effect.Effect<InstallationRow, SqlError.SqlError> =>
  Effect.map(
    sql<InstallationRow>`
      select epoch, state, held_since, held_reason, lost_since, lost_from_epoch, streams, told, missing,
        intake_rewound_at, tokens_renewed_at, reapplied_at, opened_at
      from installation`,
    ([row]) => row!,
  )

/**
 * Deletes the messages that were supplied for a hold, in the transaction that opens the installation: read again in a later
 * hold they would take away what was given back since. Holds that follow each other keep them.
 */
export const forgetSupplied = (sql: PgClient.PgClient) => sql`delete from supplied_messages`

/** SQL of whether this database was restored or failed over since its epoch began, over the row of `installation`. */
export const isAnother = (sql: PgClient.PgClient) =>
  sql.literal(`(restored_from is not null or (server is distinct from running_on()
    and (system_identifier <> server_identifier() or timeline_id <> right(running_on(), 8)))) is true`)

/** Recovery runs every second; it takes longer where an operator must decide. */
const retryAfterSeconds = 5

/** The problem (503) with which an activation is refused while the installation is held. */
export const heldMeanwhile = () => new Held({ retry_after: retryAfterSeconds })

/** The fence of a fenced write that activates something: the installation is not held. */
export const whileOpen = (sql: PgClient.PgClient): Fence => holds(sql, sql`(select state <> 'held' from installation)`)

/**
 * SQL of whether the installation is held. Also true where the database was restored or failed over and no process has
 * noticed yet: the next append of an event would (services/lifecycle/Epochs.ts), which may be the activation's own.
 */
export const isHeld = (sql: PgClient.PgClient) => sql`(select state = 'held' or ${isAnother(sql)} from installation)`

/** Fails with `Held` (503) while the installation is held; called in the transaction of every activation. */
export const mustBeOpen = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
): Effect.fn.Return<void, Held | SqlError.SqlError> {
  const [row] = yield* sql<{ held: boolean }>`select ${isHeld(sql)} as held`
  if (row!.held) return yield* heldMeanwhile()
})
