/**
 * Requests as rows, of whatever kind: added, locked, moved on. What was asked never changes; what became of it is a state
 * whose boundaries the clock decides (`stateAt`), and whose timers only write it down.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import { fence, newRow, one } from "../platform/database/FencedCommand.ts"
import type { Fence } from "../platform/database/FencedWrite.ts"
import type { IssuedToken } from "../platform/security/OneShotTokens.ts"
import type { Timer } from "../platform/database/Timers.ts"

export type RequestKind = "organization" | "website" | "access" | "enrollment" | "launch" | "link" | "membership"

export type RequestState =
  | "submitted"
  | "approved"
  | "declined"
  | "expired"
  | "superseded"
  | "held"
  | "invited"
  | "accepted"
  | "revoked"
  | "proposed"
  | "launched"
  | "pending_review"
  | "linked"

export interface RequestRow {
  readonly id: string
  readonly kind: RequestKind
  readonly state: RequestState
  readonly revision: number
  readonly author: string
  readonly institution_id: string | null
  readonly project_id: string | null
  readonly person_id: string | null
  readonly fields: Readonly<Record<string, unknown>>
  readonly reason: string
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly decided_at: Date | null
  readonly effective_at: Date | null
  readonly held_reason: string | null
  readonly result_id: string | null
  readonly event_id: string | null
  readonly job_id: string | null
  readonly mail_id: string | null
  /** Of the transaction that wrote the row last: another one for each change. Null of a row that is not read again. */
  readonly written: string | null
}

export interface NewRequest {
  readonly id: string
  readonly kind: RequestKind
  readonly state: RequestState
  readonly author: string
  readonly institutionId?: string | null
  readonly projectId?: string | null
  readonly personId?: string | null
  readonly fields: object
  readonly reason: string
  readonly expiresAt?: Date | null
  readonly eventId?: string | null
}

/** What a transition changes; what is left out stays. */
export interface RequestChange {
  readonly state?: RequestState
  readonly personId?: string
  readonly expiresAt?: Date
  readonly effectiveAt?: Date
  readonly heldReason?: string | null
  readonly resultId?: string
  readonly eventId?: string
  readonly jobId?: string
  readonly mailId?: string
  readonly token?: IssuedToken
}

const day = 86_400_000

/** How long a request waits for its reviewers, and an invitation for its recipient. */
export const reviewWindow = 14 * day
export const invitationWindow = 7 * day

/** How long the other side of a link may object, from when it was told. */
export const objectionWindow = day

const waiting: ReadonlySet<RequestState> = new Set(["submitted", "held", "invited", "pending_review"])

/** The state that the clock makes of a row. An approved link waits for its hour, not for a reviewer. */
export const stateAt = (row: Pick<RequestRow, "state" | "expires_at" | "effective_at" | "kind">, now: number) =>
  row.expires_at !== null && row.effective_at === null && row.kind !== "launch" && waiting.has(row.state) &&
    row.expires_at.getTime() <= now
    ? "expired" as const
    : row.state

export type RequestTimer = "request-expire" | "link-effective" | "launch-check"

/** Every kind of timer that requests have. */
export const requestTimers: ReadonlyArray<RequestTimer> = ["request-expire", "link-effective", "launch-check"]

// What an approved launch waits for may come from anywhere: it asks again, at first often.
const nextCheck = ({ decided_at }: RequestRow, now: number) =>
  now + Math.min(60_000, Math.max(2_000, (now - (decided_at?.getTime() ?? now)) / 4))

/** The timers of a state: one for every state that time moves on. */
export const timersOf = (row: RequestRow, now: number): ReadonlyArray<Timer & { readonly kind: RequestTimer }> => {
  if (row.kind === "launch") return row.state === "held" ? [{ kind: "launch-check", dueAt: nextCheck(row, now) }] : []
  if (!waiting.has(row.state)) return []
  if (row.effective_at !== null) return [{ kind: "link-effective", dueAt: row.effective_at.getTime() }]
  return row.expires_at === null ? [] : [{ kind: "request-expire", dueAt: row.expires_at.getTime() }]
}

const listed = `r.id::text as id, r.kind, r.state, r.revision, r.author, r.institution_id, r.project_id, r.person_id,
  r.fields, r.reason, r.created_at, r.expires_at, r.decided_at, r.effective_at, r.held_reason, r.result_id,
  r.event_id::text as event_id, r.job_id, r.mail_id::text as mail_id, r.xmin::text as written`

/**
 * SQL that joins `v`, the review of a request `r` that is open, else its newest: `review_id`, `required_roles`,
 * `review_state` and `review_author`.
 */
export const newestReview = (sql: PgClient.PgClient) =>
  sql.literal(`left join lateral (
    select v.id::text as review_id, v.required_roles, v.state as review_state, v.author as review_author
    from policy_reviews v
    where v.request_id = r.id order by v.state <> 'open', v.id desc limit 1) v on true`)

/** The row that a new request will be. */
export const requestOf = (made: NewRequest, now: Date): RequestRow => ({
  id: made.id,
  kind: made.kind,
  state: made.state,
  revision: 1,
  author: made.author,
  institution_id: made.institutionId ?? null,
  project_id: made.projectId ?? null,
  person_id: made.personId ?? null,
  fields: made.fields as RequestRow["fields"],
  reason: made.reason,
  created_at: now,
  expires_at: made.expiresAt ?? null,
  decided_at: null,
  effective_at: null,
  held_reason: null,
  result_id: null,
  event_id: made.eventId ?? null,
  job_id: null,
  mail_id: null,
  written: null,
})

/**
 * What a transition makes of a row. A change of state is a decision and counts as one; so does the approval of a link,
 * which sets from when on the two are one, and leaves the state as it is.
 */
const changed = (row: RequestRow, to: RequestChange, now: Date): RequestRow => {
  const state = to.state ?? row.state
  const decided = state !== row.state || to.effectiveAt !== undefined && row.effective_at === null
  return {
    ...row,
    state,
    revision: row.revision + (decided ? 1 : 0),
    decided_at: decided ? now : row.decided_at,
    person_id: to.personId ?? row.person_id,
    expires_at: to.expiresAt ?? row.expires_at,
    effective_at: to.effectiveAt ?? row.effective_at,
    held_reason: to.heldReason === undefined ? row.held_reason : to.heldReason,
    result_id: to.resultId ?? row.result_id,
    event_id: to.eventId ?? row.event_id,
    job_id: to.jobId ?? row.job_id,
    mail_id: to.mailId ?? row.mail_id,
    written: null,
  }
}

/** The fence that adds a new request: missed where an open request of the same kind stands in the way. */
export const newRequest = (sql: PgClient.PgClient) => {
  const added = newRow(sql, "requests", {
    id: "uuid",
    kind: "text",
    state: "text",
    author: "text",
    institution_id: "text",
    project_id: "text",
    person_id: "text",
    fields: "jsonb",
    reason: "text",
    created_at: "timestamptz",
    expires_at: "timestamptz",
    event_id: "uuid",
  })
  return (row: RequestRow): Fence => added({ ...row })
}

export const requestRows = (sql: PgClient.PgClient) => {
  const columns = sql.literal(listed)
  const first = Effect.map((rows: ReadonlyArray<RequestRow>) => rows[0] ?? null)

  return {
    columns,

    /** Null where an open request of the same kind stands in the way. */
    insert: Effect.fnUntraced(function* (made: NewRequest): Effect.fn.Return<RequestRow | null, SqlError.SqlError> {
      const now = new Date(yield* Clock.currentTimeMillis)
      const { author, eventId = null, expiresAt = null, fields, id, institutionId = null, kind } = made
      return yield* first(sql<RequestRow>`
        insert into requests as r (id, kind, state, author, institution_id, project_id, person_id, fields, reason,
          created_at, expires_at, event_id)
        values (${id}::uuid, ${kind}, ${made.state}, ${author}, ${institutionId}, ${made.projectId ?? null},
          ${made.personId ?? null}, ${sql.json(fields)}, ${made.reason}, ${now}, ${expiresAt}, ${eventId}::uuid)
        on conflict do nothing returning ${columns}`)
    }),

    /** Unlocked: for what is checked again under the lock. */
    byId: (id: string) => first(sql<RequestRow>`select ${columns} from requests r where r.id = ${id}::uuid`),

    lock: (id: string) => first(sql<RequestRow>`select ${columns} from requests r where r.id = ${id}::uuid for update`),

    /** Those of a project that are not decided yet, locked. */
    lockOpen: (projectId: string) =>
      sql<RequestRow>`
        select ${columns} from requests r
        where r.project_id = ${projectId} and r.state in ('submitted', 'proposed', 'held') order by r.id for update`,

    /**
     * Moves a row on, as it was loaded or locked: the fence is missed where anybody has written it since. In a fenced
     * write that is once for each row.
     */
    change: Effect.fnUntraced(function* (
      row: RequestRow,
      to: RequestChange,
    ): Effect.fn.Return<RequestRow, SqlError.SqlError> {
      const next = changed(row, to, new Date(yield* Clock.currentTimeMillis))
      const { kid = null, hash = null, nonce = null } = to.token ?? {}
      const unwritten = row.written === null ? sql`true` : sql`r.xmin = ${row.written}::xid`
      yield* fence(
        sql,
        one((earlier) =>
          sql`update requests r set state = ${next.state}, revision = ${next.revision}, decided_at = ${next.decided_at},
            person_id = ${next.person_id}, expires_at = ${next.expires_at}, effective_at = ${next.effective_at},
            held_reason = ${next.held_reason}, result_id = ${next.result_id}, event_id = ${next.event_id}::uuid,
            job_id = ${next.job_id}, mail_id = ${next.mail_id}::uuid, token_kid = coalesce(${kid}, token_kid),
            token_nonce = coalesce(${nonce}, token_nonce), token_hash = coalesce(${hash}, token_hash)
          where r.id = ${row.id}::uuid and ${unwritten} and ${earlier} returning 1`
        ),
      )
      return next
    }),

    /** Ends locked rows, each as a decision of its own. */
    end: Effect.fnUntraced(function* (
      ids: ReadonlyArray<string>,
      state: "declined" | "superseded",
    ): Effect.fn.Return<void, SqlError.SqlError> {
      if (ids.length === 0) return
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* sql`
        update requests set state = ${state}, revision = revision + 1, decided_at = ${now}
        where id = any(${[...ids]}::uuid[])`
    }),
  }
}
export type RequestRows = ReturnType<typeof requestRows>
