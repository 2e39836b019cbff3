/**
 * Which installation this is, and whether it is held. While it is (a restored or promoted database, whose last decisions
 * may be lost), nothing new is activated; what takes away is never held (docs/recovery.md).
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { Held } from "../../../schemas/problems/Identity.ts"
import { type Fence, holds } from "./FencedWrite.ts"

/** Why an installation is held, or still is. */
export type HeldReason =
  /** A backup was put in place of the database. */
  | "restored"
  /** Another server, or the same one on another timeline. */
  | "failed_over"
  /** The broker cannot be asked. */
  | "event_bus_unavailable"
  /** The stream that would know what was lost is not the one that this database told. */
  | "stream_gone"
  /** Messages of the time that was lost that no key of ours verifies. */
  | "unverifiable_messages"
  /** Messages of the time that was lost are not on the streams any more: `missing` says which. */
  | "messages_missing"
  /** What came in since has not all been taken in again. */
  | "intake_behind"

/** What a stream lacks of the time that was lost: sequences, or positions in the history of a project. */
export interface MissingMessages {
  readonly stream: string
  /** With `epoch`: they are positions. */
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
  readonly streams: Readonly<Record<string, string>>
  /** How far each stream had come when this database knew it last before the hold. */
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
      select epoch, state, held_since, held_reason, lost_since, streams, told, missing, intake_rewound_at,
        tokens_renewed_at, reapplied_at, opened_at
      from installation`,
    ([row]) => row!,
  )

/** SQL of whether this is another database than the epoch's, over the one row of `installation`. */
export const isAnother = (sql: PgClient.PgClient) =>
  sql.literal(`(restored_from is not null or (server is distinct from running_on()
    and (system_identifier <> server_identifier() or timeline_id <> right(running_on(), 8)))) is true`)

/** The way back is looked at every second; it takes longer where an operator must say something. */
const retryAfterSeconds = 5

/** What whoever would activate something is told meanwhile. */
export const heldMeanwhile = () => new Held({ retry_after: retryAfterSeconds })

/** The fence of a fenced write that activates something: the installation is not held. */
export const whileOpen = (sql: PgClient.PgClient): Fence => holds(sql, sql`(select state <> 'held' from installation)`)

/**
 * SQL of whether the installation is held. Also where this is another database than the epoch's and no process has found
 * it out yet: the next one that tells something does (services/lifecycle/Epochs.ts), and that must not be who activates it.
 */
export const isHeld = (sql: PgClient.PgClient) => sql`(select state = 'held' or ${isAnother(sql)} from installation)`

/** Fails with `Held` (503) while the installation is: asked by whatever would activate something, in its transaction. */
export const mustBeOpen = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
): Effect.fn.Return<void, Held | SqlError.SqlError> {
  const [row] = yield* sql<{ held: boolean }>`select ${isHeld(sql)} as held`
  if (row!.held) return yield* heldMeanwhile()
})
