/**
 * The rows of requests of all kinds: adds, locks and changes them. The requested fields never change; the state may
 * expire by time alone (`stateAt`), and the request's timers only write that down.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionId, PersonId, ProjectId, ProviderJobId, RequestId } from "../../schemas/BrandedIds.ts"
import { fence, newRow, one } from "../platform/database/FencedCommand.ts"
import type { Fence, UnitOfWork } from "../platform/database/UnitOfWork.ts"
import type { IssuedToken } from "../platform/security/OneTimeTokens.ts"
import type { Timer } from "../platform/database/Timers.ts"
import { addNotices, type RequestOutcome } from "./PersonNotices.ts"

export type RequestKind =
  | "organization"
  | "website"
  | "access"
  | "enrollment"
  | "launch"
  | "link"
  | "membership"
  | "authenticator_reset"
  | "access_revocation"

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
  readonly id: RequestId
  readonly kind: RequestKind
  readonly state: RequestState
  readonly revision: number
  readonly author: PersonId
  readonly institution_id: InstitutionId | null
  readonly project_id: ProjectId | null
  readonly person_id: PersonId | null
  readonly fields: Readonly<Record<string, unknown>>
  readonly reason: string
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly decided_at: Date | null
  readonly effective_at: Date | null
  readonly held_reason: string | null
  readonly result_id: string | null
  readonly event_id: string | null
  readonly job_id: ProviderJobId | null
  readonly mail_id: string | null
  /** Its author ended it. */
  readonly withdrawn: boolean
  /** The row's `xmin`, which each change makes another; null for a row that was written and not read again. */
  readonly written: string | null
}

export interface NewRequest {
  readonly id: RequestId
  readonly kind: RequestKind
  readonly state: RequestState
  readonly author: PersonId
  readonly institutionId?: InstitutionId | null
  readonly projectId?: ProjectId | null
  readonly personId?: PersonId | null
  readonly fields: object
  readonly reason: string
  readonly expiresAt?: Date | null
  readonly eventId?: string | null
}

/** The changes of a transition; members that are left out stay as they are. */
export interface RequestChange {
  readonly state?: RequestState
  readonly personId?: PersonId
  readonly expiresAt?: Date
  readonly effectiveAt?: Date
  readonly heldReason?: string | null
  readonly resultId?: string
  readonly eventId?: string
  readonly jobId?: ProviderJobId
  readonly mailId?: string
  readonly token?: IssuedToken
  readonly withdrawn?: boolean
  /** The person who changes the request: an author is not told of a change of its own. */
  readonly by?: PersonId
}

const day = 86_400_000

/** How long a request waits for its reviewers, and an invitation for its recipient. */
export const reviewWindow = 14 * day
export const invitationWindow = 7 * day

/** How long the other side of a link may object, from the time of its notice. */
export const objectionWindow = day

const waiting: ReadonlySet<RequestState> = new Set(["submitted", "held", "invited", "pending_review"])

/** The state of a row at `now`. An approved link does not expire: it waits for its time, not for a reviewer. */
export const stateAt = (row: Pick<RequestRow, "state" | "expires_at" | "effective_at" | "kind">, now: number) =>
  row.expires_at !== null && row.effective_at === null && row.kind !== "launch" && waiting.has(row.state) &&
    row.expires_at.getTime() <= now
    ? "expired" as const
    : row.state

export type RequestTimer = "request-expire" | "link-effective" | "launch-check"

/** Every kind of timer that requests have. */
export const requestTimers: ReadonlyArray<RequestTimer> = ["request-expire", "link-effective", "launch-check"]

// No event tells when an approved launch may proceed, so a timer checks again, at first often.
const nextCheck = ({ decided_at }: RequestRow, now: number) =>
  now + Math.min(60_000, Math.max(2_000, (now - (decided_at?.getTime() ?? now)) / 4))

/** The timers of a row: one in every state that time changes. */
export const timersOf = (row: RequestRow, now: number): ReadonlyArray<Timer & { readonly kind: RequestTimer }> => {
  if (row.kind === "launch") return row.state === "held" ? [{ kind: "launch-check", dueAt: nextCheck(row, now) }] : []
  if (!waiting.has(row.state)) return []
  if (row.effective_at !== null) return [{ kind: "link-effective", dueAt: row.effective_at.getTime() }]
  return row.expires_at === null ? [] : [{ kind: "request-expire", dueAt: row.expires_at.getTime() }]
}

const listed = `r.id::text as id, r.kind, r.state, r.revision, r.author, r.institution_id, r.project_id, r.person_id,
  r.fields, r.reason, r.created_at, r.expires_at, r.decided_at, r.effective_at, r.held_reason, r.result_id,
  r.event_id::text as event_id, r.job_id, r.mail_id::text as mail_id, r.withdrawn, r.xmin::text as written`

/**
 * SQL that joins `v`, the review of a request `r` that is open, else its newest: `review_id`, `required_roles`,
 * `review_state` and `review_author`.
 */
export const newestReview = (sql: PgClient.PgClient) =>
  sql.literal(`left join lateral (
    select v.id::text as review_id, v.required_roles, v.state as review_state, v.author as review_author
    from policy_reviews v
    where v.request_id = r.id order by v.state <> 'open', v.id desc limit 1) v on true`)

/** The row of a new request. */
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
  withdrawn: false,
  written: null,
})

/**
 * The row after a transition. A change of state is a decision and raises the revision; so does the approval of a link,
 * which sets the time at which the link takes effect and leaves the state as it is.
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
    withdrawn: to.withdrawn ?? row.withdrawn,
    written: null,
  }
}

/** The outcome that a transition has for the request's author; null if the transition decides nothing. */
const outcomeOf = (row: RequestRow, next: RequestRow): RequestOutcome | null => {
  if (row.effective_at === null && next.effective_at !== null) return "approved"
  if (next.state === row.state) return null
  switch (next.state) {
    case "submitted":
    case "proposed":
    case "pending_review":
      return null
    // An invitation that was signed is mailed; a launch that was signed waits for what is missing.
    case "invited":
    case "held":
      return "approved"
    default:
      return next.state
  }
}

/** The fence that adds a new request: missed where an open request for the same exists. */
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

    /** Inserts a request; null where an open request for the same exists. */
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

    /** Reads a request without a lock: the caller checks it again under the lock. */
    byId: (id: RequestId) => first(sql<RequestRow>`select ${columns} from requests r where r.id = ${id}::uuid`),

    lock: (id: RequestId) =>
      first(sql<RequestRow>`select ${columns} from requests r where r.id = ${id}::uuid for update`),

    /** Locks the undecided requests of a project. */
    lockOpen: (projectId: ProjectId) =>
      sql<RequestRow>`
        select ${columns} from requests r
        where r.project_id = ${projectId} and r.state in ('submitted', 'proposed', 'held') order by r.id for update`,

    /**
     * Changes a row as it was loaded or locked, and tells its author the outcome: the fence is missed where the
     * row was written since. In a fenced write a row can be changed only once.
     */
    change: Effect.fnUntraced(function* (
      row: RequestRow,
      to: RequestChange,
    ): Effect.fn.Return<RequestRow, SqlError.SqlError, UnitOfWork> {
      const next = changed(row, to, new Date(yield* Clock.currentTimeMillis))
      const { kid = null, hash = null, nonce = null } = to.token ?? {}
      const unwritten = row.written === null ? sql`true` : sql`r.xmin = ${row.written}::xid`
      yield* fence(
        sql,
        one((earlier) =>
          sql`update requests r set state = ${next.state}, revision = ${next.revision}, decided_at = ${next.decided_at},
            person_id = ${next.person_id}, expires_at = ${next.expires_at}, effective_at = ${next.effective_at},
            held_reason = ${next.held_reason}, result_id = ${next.result_id}, event_id = ${next.event_id}::uuid,
            job_id = ${next.job_id}, mail_id = ${next.mail_id}::uuid,
            withdrawn = ${next.withdrawn}, token_kid = coalesce(${kid}, token_kid),
            token_nonce = coalesce(${nonce}, token_nonce), token_hash = coalesce(${hash}, token_hash)
          where r.id = ${row.id}::uuid and ${unwritten} and ${earlier} returning 1`
        ),
      )
      const outcome = outcomeOf(row, next)
      if (outcome !== null && to.by !== row.author) {
        yield* addNotices(sql, { personId: row.author, kind: `request.${outcome}`, subjectId: row.id })
      }
      return next
    }),
  }
}
export type RequestRows = ReturnType<typeof requestRows>

/** Ends locked rows; each is a decision of its own, of which its author is told unless it is the person `by`. */
export const endRequests = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  rows: ReadonlyArray<RequestRow>,
  state: "declined" | "superseded",
  by: PersonId | null,
): Effect.fn.Return<void, SqlError.SqlError> {
  if (rows.length === 0) return
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    update requests set state = ${state}, revision = revision + 1, decided_at = ${now}
    where id = any(${rows.map(({ id }) => id)}::uuid[])`
  const others = rows.filter(({ author }) => author !== by)
  yield* addNotices(
    sql,
    ...others.map(({ author, id }) => ({ personId: author, kind: `request.${state}` as const, subjectId: id })),
  )
})
