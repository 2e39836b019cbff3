/**
 * Notices for people: a request or a review of the person was decided or has expired, a review waits for a
 * signature of the person, or few of the person's recovery codes are left. A notice of a decision is added in the unit of work that decides. A notice is told once, by mail
 * (services/decisions/NoticeMails.ts gathers a person's notices into one).
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessReviewId, AuthenticatorId, PersonId, RequestId, ServiceGrantId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { prune } from "../platform/database/Prune.ts"
import { type Kind, write } from "../platform/database/UnitOfWork.ts"

/** The outcome of a request, for its author; `approved` if the request continues after its approval. */
export type RequestOutcome =
  | "approved"
  | "declined"
  | "expired"
  | "revoked"
  | "superseded"
  | "accepted"
  | "launched"
  | "linked"

/** The outcome of a proposed review of an Access, for its proposer. */
export type ReviewOutcome = "approved" | "revoked" | "expired"

/** A review that waits for the person's signature; `closing` where it is about to expire. */
export type SignatureNotice = "signature.waiting" | "signature.closing"

/** The outcome of a service grant, for its proposer. */
export type GrantOutcome = "approved" | "revoked"

/** A set of recovery codes is used up: few are left, or none. */
export type CodesNotice = "codes.few" | "codes.none"

export type NoticeKind =
  | `request.${RequestOutcome}`
  | `review.${ReviewOutcome}`
  | `grant.${GrantOutcome}`
  | CodesNotice
  | SignatureNotice

export interface NewNotice {
  readonly personId: PersonId
  readonly kind: NoticeKind
  readonly subjectId: RequestId | AccessReviewId | ServiceGrantId | AuthenticatorId
  /** When it is due; at once by default. One that is due later is told only where it is true by then. */
  readonly dueAt?: Date
}

const noticeRows = (sql: PgClient.PgClient): Kind<object> => ({
  name: "person_notices",
  parts: (rows) => [{
    name: "new_person_notices",
    statement: sql`
      insert into person_notices (person_id, kind, subject_id, created_at, due_at)
      select person_id, kind, subject_id, created_at, due_at
      from json_to_recordset(${JSON.stringify(rows)}::json)
        r(person_id text, kind text, subject_id uuid, created_at timestamptz, due_at timestamptz)
      on conflict do nothing`,
  }],
})

/** Adds notices in the current unit of work; one that exists stays as it is. */
export const addNotices = (
  sql: PgClient.PgClient,
  ...notices: ReadonlyArray<NewNotice>
): Effect.Effect<void, SqlError.SqlError> =>
  Effect.flatMap(Clock.currentTimeMillis, (millis) => {
    const now = new Date(millis)
    return write(
      sql,
      noticeRows(sql),
      notices.map(({ dueAt = now, kind, personId, subjectId }) => ({
        person_id: personId,
        kind,
        subject_id: subjectId,
        created_at: now,
        due_at: dueAt,
      })),
    )
  })

/** How long a told notice is kept, so that it is not told again: longer than a review is valid. */
const keptMillis = 400 * 86_400_000

/** Deletes notices that were told long ago. Any number of processes may run it. */
export const pruneNotices = Effect.gen(function* () {
  const { sql } = yield* Database
  const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
  const where = sql`due_at is null and created_at < ${before}`
  return yield* prune(sql, { table: "person_notices", where, order: "created_at", batch: 10_000 })
})
