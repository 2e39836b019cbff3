/**
 * Letting a person in by an invitation. The first who is let in where nobody administrates becomes an administrator, and
 * of two at once only one is the first: each writes the row of the institution, at the version that was loaded.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { InvalidState } from "../../../schemas/problems/Identity.ts"
import { barredBy, memberships, seatsIn, seatsOf } from "../../people/Memberships.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, one, type Question, unchanged } from "../../platform/database/FencedCommand.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"
import { type RequestRow, requestRows } from "../../requests/RequestRows.ts"
import { recording } from "./Records.ts"

/** What an admission is decided on. */
export interface Place {
  readonly institution: string
  readonly seats: string
  readonly administrated: boolean
}

/** Who is let in, and by whom. */
export interface Admitted {
  /** Not merged into another. */
  readonly personId: string
  readonly approvedBy: ReadonlyArray<string>
  /** An end of a membership before that is undone. */
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

/** SQL of the columns of a `Place`; both are SQL of an id. */
export const placeOf = (sql: PgClient.PgClient, institutionId: Statement.Fragment, personId: Statement.Fragment) =>
  sql`${answerTo(sql, institutionOf(sql, institutionId))} as institution,
    ${answerTo(sql, seatsOf(sql, institutionId, personId))} as seats,
    exists (
      select from institution_memberships
      where institution_id = ${institutionId} and role = 'administrator' and state <> 'ended' and not removed
    ) as administrated`

const decide = Effect.fnUntraced(function* (place: Place, signedAt: Date) {
  const [institution] = JSON.parse(place.institution) as ReadonlyArray<Institution>
  if (institution?.status !== "active") {
    return yield* new InvalidState({ state: institution?.status ?? "removed", allowed: ["active"] })
  }
  // Whoever suspended a member, or ended a role of theirs, did not mean that an older invitation undoes it.
  const seats = seatsIn(place.seats)
  const barred = barredBy(seats, signedAt)
  if (barred !== null) return yield* new InvalidState({ state: barred, allowed: ["invited", "active"] })
  return {
    seats,
    written: institution.written,
    role: place.administrated ? "member" as const : "administrator" as const,
  }
})

export const admission = Effect.gen(function* () {
  const { sql } = yield* Database
  const recorded = yield* recording
  const { change } = requestRows(sql)
  const { seatAmong } = memberships(sql, yield* Outbox)

  /** Seats the person, where that may be; the caller has fenced who the person is. */
  const seat = Effect.fnUntraced(
    function* (row: RequestRow, place: Place, { approvedBy, personId, signedAt }: Admitted) {
      const institutionId = row.institution_id!
      const { role, seats, written } = yield* decide(place, signedAt)
      const first = one((earlier) =>
        sql`update institutions set updated_at = updated_at
        where id = ${institutionId} and xmin = ${written}::xid and ${earlier} returning 1`
      )
      yield* fence(
        sql,
        role === "administrator" ? first : unchanged(sql, institutionOf(sql, sql`${institutionId}`), place.institution),
        unchanged(sql, seatsOf(sql, sql`${institutionId}`, sql`${personId}`), place.seats),
      )
      const to = { institutionId, personId, role, state: "active", madeBy: row.author, approvedBy } as const
      return { role, resultId: yield* seatAmong(to, seats) }
    },
  )

  /** Writes down whom the invitation let in, and who did so. */
  const accept = Effect.fnUntraced(function* (row: RequestRow, personId: string, resultId: string, by: string) {
    const accepted = yield* change(row, { state: "accepted", personId, resultId })
    yield* recorded(accepted, "accepted", by, { person: personId })
    return accepted
  })

  return { seat, accept }
})
