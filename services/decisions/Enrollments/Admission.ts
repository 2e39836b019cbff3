/**
 * Admits a person by an invitation. In an institution without an administrator the first admitted person becomes one;
 * of two concurrent admissions only one is the first, since each writes the institution's row at the version that it
 * loaded.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { barredBy, memberships, seatsIn, seatsOf } from "../../people/Memberships.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, one, type Question, unchanged } from "../../platform/database/FencedCommand.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"
import { type RequestRow, requestRows } from "../../requests/RequestRows.ts"
import { recording } from "./Records.ts"

/** The loaded state on which an admission is decided. */
export interface AdmissionState {
  readonly institution: string
  readonly seats: string
  readonly administrated: boolean
}

/** The person to admit, and the approvers. */
export interface Admitted {
  /** A person who is not merged into another. */
  readonly personId: PersonId
  readonly approvedBy: ReadonlyArray<PersonId>
  /** The admission undoes ends of memberships before this time. */
  readonly signedAt: Date
}

interface Institution {
  readonly status: string
  readonly written: string
}

const institutionOf = (sql: PgClient.PgClient, institutionId: Statement.Fragment): Question => ({
  rows: sql`select status, xmin::text as written from institutions where id = ${institutionId} and not removed`,
  lock: sql`for share`,
})

/** SQL of the columns of an `AdmissionState`; both are SQL of an id. */
export const admissionColumns = (
  sql: PgClient.PgClient,
  institutionId: Statement.Fragment,
  personId: Statement.Fragment,
) =>
  sql`${answerTo(sql, institutionOf(sql, institutionId))} as institution,
    ${answerTo(sql, seatsOf(sql, institutionId, personId))} as seats,
    exists (
      select from institution_memberships
      where institution_id = ${institutionId} and role = 'administrator' and state <> 'ended' and not removed
    ) as administrated`

const decide = Effect.fnUntraced(function* (loaded: AdmissionState, signedAt: Date) {
  const [institution] = JSON.parse(loaded.institution) as ReadonlyArray<Institution>
  if (institution?.status !== "active") {
    return yield* new InvalidState({ state: institution?.status ?? "removed", allowed: ["active"] })
  }
  // A suspension, or an end of a role after the invitation, must not be undone by the older invitation.
  const seats = seatsIn(loaded.seats)
  const barred = barredBy(seats, signedAt)
  if (barred !== null) return yield* new InvalidState({ state: barred, allowed: ["invited", "active"] })
  return {
    seats,
    written: institution.written,
    role: loaded.administrated ? "member" as const : "administrator" as const,
  }
})

export const admission = Effect.gen(function* () {
  const { sql } = yield* Database
  const recorded = yield* recording
  const { change } = requestRows(sql)
  const { seatAmong } = memberships(sql, yield* Outbox)

  /** Gives the person a membership, if that is allowed; the caller has fenced the person's row. */
  const seat = Effect.fnUntraced(
    function* (row: RequestRow, loaded: AdmissionState, { approvedBy, personId, signedAt }: Admitted) {
      const institutionId = row.institution_id!
      const { role, seats, written } = yield* decide(loaded, signedAt)
      const first = one((earlier) =>
        sql`update institutions set updated_at = updated_at
        where id = ${institutionId} and xmin = ${written}::xid and ${earlier} returning 1`
      )
      yield* fence(
        sql,
        role === "administrator"
          ? first
          : unchanged(sql, institutionOf(sql, sql`${institutionId}`), loaded.institution),
        unchanged(sql, seatsOf(sql, sql`${institutionId}`, sql`${personId}`), loaded.seats),
      )
      const to = { institutionId, personId, role, state: "active", madeBy: row.author, approvedBy } as const
      return { role, resultId: yield* seatAmong(to, seats) }
    },
  )

  /** Records the admitted person on the invitation, and `by` in the audit. */
  const accept = Effect.fnUntraced(function* (row: RequestRow, personId: PersonId, resultId: string, by: PersonId) {
    const accepted = yield* change(row, { state: "accepted", personId, resultId })
    yield* recorded(accepted, "accepted", by, { person: personId })
    return accepted
  })

  return { seat, accept }
})
