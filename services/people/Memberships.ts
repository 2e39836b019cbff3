/**
 * Memberships that were decided here. The directory's feed cannot undo them until it has sent the same state. Their
 * makers and approvers are stored with them, since four eyes judge independence by these.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import { decisionMessage, type MembershipDecided } from "../../schemas/bus/Decisions.ts"
import type { MembershipRole, MembershipState } from "../../schemas/identity/IdentityDirectory.ts"
import { answerTo, fence, load, newRow, one, type Question, unchanged } from "../platform/database/FencedCommand.ts"
import type { UnitOfWork } from "../platform/database/UnitOfWork.ts"
import { Ids } from "../platform/Ids.ts"
import type { Outbox } from "../platform/messaging/Outbox.ts"

export interface Seat {
  readonly institutionId: InstitutionId
  readonly personId: PersonId
  readonly role: MembershipRole
  readonly state: MembershipState
  /** Ids of people. */
  readonly madeBy: PersonId
  readonly approvedBy: ReadonlyArray<PersonId>
}

/**
 * Suspends or ends a membership during recovery, as was decided in the lost time. A membership that is not known here
 * is inserted in that state, lest the directory bring it back. Returns whether anything changed.
 */
export const endMembership = Effect.fnUntraced(function* (sql: PgClient.PgClient, decided: MembershipDecided) {
  const { id, institution_id, person_id, role, state } = decided
  if (state !== "suspended" && state !== "ended") return false
  const now = new Date(yield* Clock.currentTimeMillis)
  const [row] = yield* sql<{ changed: boolean }>`
    with known as materialized (
      select id, state from institution_memberships
      where institution_id = ${institution_id} and person_id = canonical_person(${person_id}) and role = ${role}
        and not removed for update
    ), ended as (
      update institution_memberships t
      set state = ${state}, state_decided = true, revision = t.revision + 1, updated_at = ${now}
      from known k where t.id = k.id and k.state not in ('ended', ${state}) returning 1
    ), made as (
      insert into institution_memberships (id, institution_id, person_id, role, state, state_decided, created_at,
        updated_at)
      select ${id}, ${institution_id}, canonical_person(${person_id}), ${role}, ${state}, true, ${now}, ${now}
      where not exists (select from known) on conflict do nothing returning 1
    )
    select exists (select from ended) or exists (select from made) as changed`
  return row!.changed
})

/** A membership, which may have ended or been removed; times as JSON has them. */
export interface HeldSeat {
  readonly id: string
  readonly role: MembershipRole
  readonly state: MembershipState
  readonly removed: boolean
  readonly updated_at: string
  readonly accepted_at: string | null
  readonly effective_from: string | null
  readonly expires_at: string | null
}

/** All memberships that a person ever had in an institution; both are SQL of an id. */
export const seatsOf = (
  sql: PgClient.PgClient,
  institutionId: Statement.Fragment,
  personId: Statement.Fragment,
): Question => ({
  rows: sql`select id, role, state, removed, updated_at, accepted_at, effective_from, expires_at
    from institution_memberships
    where institution_id = ${institutionId} and person_id = canonical_person(${personId}) order by id`,
  lock: sql`for update`,
})

/** The memberships of an answer to `seatsOf`. */
export const seatsIn = (answer: string) => JSON.parse(answer) as ReadonlyArray<HeldSeat>

/**
 * The state of a person's memberships, in any role, that an invitation of that time cannot undo: a suspension, or an
 * end after the invitation. Null where there is none.
 */
export const barredBy = (seats: ReadonlyArray<HeldSeat>, invitedAt: Date): MembershipState | null => {
  if (seats.some(({ removed, state }) => state === "suspended" && !removed)) return "suspended"
  const ended = seats.some(({ removed, state, updated_at }) =>
    (removed || state === "ended") && new Date(updated_at) > invitedAt
  )
  return ended ? "ended" : null
}

/** Whether the membership has the wanted state and is effective in it now. */
const isSeated = (held: HeldSeat, { role, state }: Seat, now: Date): boolean => {
  const accepted = held.accepted_at !== null && new Date(held.accepted_at) <= now
  return held.state === state &&
    (held.effective_from === null || new Date(held.effective_from) <= now) &&
    (held.expires_at === null || new Date(held.expires_at) > now) &&
    (role !== "administrator" || state !== "active" || accepted)
}

const columns = {
  id: "text",
  institution_id: "text",
  person_id: "text",
  role: "text",
  state: "text",
  state_decided: "boolean",
  accepted_at: "timestamptz",
  made_by: "text",
  approved_by: "text[]",
  created_at: "timestamptz",
  updated_at: "timestamptz",
} as const

/** The fence that sets the state of a membership, with its new makers. */
const moved = (sql: PgClient.PgClient, id: string, { approvedBy, madeBy, state }: Seat, now: Date) => {
  const active = state === "active"
  return one((earlier) =>
    sql`update institution_memberships t set state = ${state}, state_decided = true, revision = t.revision + 1,
      made_by = ${madeBy}, approved_by = ${[...approvedBy]}::text[], created_at = ${now}, updated_at = ${now},
      accepted_at = coalesce(${active ? now : null}, t.accepted_at),
      effective_from = case when ${active} then null else t.effective_from end,
      expires_at = case when ${active} then null else t.expires_at end
    where t.id = ${id} and ${earlier} returning 1`
  )
}

/** Changes memberships; each decision is also published on DIRECTORY. */
export const memberships = (sql: PgClient.PgClient, outbox: Outbox["Service"]) => {
  const added = newRow(sql, "institution_memberships", columns)

  /**
   * Sets the state of a membership and returns its id; a membership that has the state already keeps its makers and
   * times. `seats` are all memberships of the person, who must not be merged into another, in the institution; the
   * caller fences them.
   */
  const seatAmong = Effect.fnUntraced(function* (
    to: Seat,
    seats: ReadonlyArray<HeldSeat>,
  ): Effect.fn.Return<string, SqlError.SqlError, UnitOfWork> {
    const { approvedBy, institutionId: institution_id, madeBy, personId: person_id, role, state } = to
    const now = new Date(yield* Clock.currentTimeMillis)
    const at = now.toISOString()
    const held = seats.find((seat) => seat.role === role && !seat.removed)
    if (held !== undefined && isSeated(held, to, now)) return held.id
    const id = held?.id ?? (yield* (yield* Ids).next)
    yield* fence(
      sql,
      held !== undefined ? moved(sql, id, to, now) : added({
        id,
        institution_id,
        person_id,
        role,
        state,
        state_decided: true,
        made_by: madeBy,
        approved_by: approvedBy,
        accepted_at: state === "active" ? at : null,
        created_at: at,
        updated_at: at,
      }),
    )
    yield* outbox.add(decisionMessage({
      kind: "institution_membership",
      id,
      person_id,
      institution_id,
      role,
      state,
      decided_at: at,
    }))
    return id
  })

  /** The same, with memberships that it loads itself, for the person into whom `personId` may have been merged. */
  const seat = Effect.fnUntraced(function* (to: Seat): Effect.fn.Return<string, SqlError.SqlError, UnitOfWork> {
    const asked = seatsOf(sql, sql`${to.institutionId}`, sql`${to.personId}`)
    const { person, seats } = yield* load<{ person: PersonId; seats: string }>(
      sql,
      sql`select canonical_person(${to.personId}) as person, ${answerTo(sql, asked)} as seats`,
    )
    yield* fence(sql, unchanged(sql, asked, seats))
    return yield* seatAmong({ ...to, personId: person }, seatsIn(seats))
  })

  return { seat, seatAmong }
}
