/**
 * Memberships that were decided here. The feed cannot undo them before it says the same; who made and who approved them
 * stands beside them, since by that it is judged who may count beside whom (RULES, Trust).
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import { decisionMessage, type MembershipDecided } from "../../schemas/bus/Decisions.ts"
import type { MembershipRole, MembershipState } from "../../schemas/identity/Directory.ts"
import { Ids } from "../platform/Ids.ts"
import type { Outbox } from "../platform/Outbox.ts"

export interface Seat {
  readonly institutionId: string
  readonly personId: string
  readonly role: MembershipRole
  readonly state: MembershipState
  /** Ids of people. */
  readonly madeBy: string
  readonly approvedBy: ReadonlyArray<string>
}

/**
 * A membership of a database that took another's place is suspended or ended as it was meanwhile, which nobody here did.
 * One that is not known is kept as such, lest the directory bring it back. Gives whether anything changed.
 */
export const endMembership = Effect.fnUntraced(function* (sql: PgClient.PgClient, told: MembershipDecided) {
  const { id, institution_id, person_id, role, state } = told
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

/** What is decided is told on DIRECTORY, too. */
export const memberships = (sql: PgClient.PgClient, outbox: Outbox["Service"]) => {
  /**
   * Gives the membership this state, in the current transaction; one that has it keeps its history. Gives its id. Whoever
   * was merged meanwhile is seated as the person that they turned out to be.
   */
  const seat = Effect.fnUntraced(function* (to: Seat): Effect.fn.Return<string, SqlError.SqlError> {
    const now = new Date(yield* Clock.currentTimeMillis)
    const acceptedAt = to.state === "active" ? now : null
    const [written] = yield* sql<{ id: string; person_id: string }>`
      insert into institution_memberships as t (id, institution_id, person_id, role, state, state_decided, accepted_at,
        made_by, approved_by, created_at, updated_at)
      values (${yield* (yield* Ids)
      .next}, ${to.institutionId}, canonical_person(${to.personId}), ${to.role}, ${to.state}, true,
        ${acceptedAt}, ${to.madeBy}, ${[...to.approvedBy]}::text[], ${now}, ${now})
      on conflict (institution_id, person_id, role) where not removed do update
      set state = excluded.state, state_decided = true, revision = t.revision + 1, made_by = excluded.made_by,
        approved_by = excluded.approved_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
        accepted_at = coalesce(excluded.accepted_at, t.accepted_at),
        effective_from = case when excluded.state = 'active' then null else t.effective_from end,
        expires_at = case when excluded.state = 'active' then null else t.expires_at end
      where t.state <> excluded.state or t.effective_from > ${now} or t.expires_at <= ${now}
        or (t.role = 'administrator' and t.state = 'active' and (t.accepted_at <= ${now}) is not true)
      returning id, person_id`
    if (written !== undefined) {
      const { institutionId: institution_id, role, state } = to
      yield* outbox.add(decisionMessage({
        ...{ kind: "institution_membership", ...written, institution_id, role, state },
        decided_at: now.toISOString(),
      }))
      return written.id
    }
    const [kept] = yield* sql<{ id: string }>`
      select id from institution_memberships
      where institution_id = ${to.institutionId} and person_id = canonical_person(${to.personId}) and role = ${to.role}
        and not removed`
    return kept!.id
  })

  /**
   * What of a person's memberships, in whatever role, an invitation of that time does not undo: a suspension, or an end
   * that came after it. Null where there is none. The memberships stay locked.
   */
  const barredBy = Effect.fnUntraced(
    function* (
      institutionId: string,
      personId: string,
      invitedAt: Date,
    ): Effect.fn.Return<MembershipState | null, SqlError.SqlError> {
      const held = yield* sql<{ state: MembershipState; removed: boolean; updated_at: Date }>`
        select state, removed, updated_at from institution_memberships
        where institution_id = ${institutionId} and person_id = canonical_person(${personId})
        order by id for update`
      if (held.some(({ removed, state }) => state === "suspended" && !removed)) return "suspended"
      const ended = held.some(({ removed, state, updated_at }) =>
        (removed || state === "ended") && updated_at.getTime() > invitedAt.getTime()
      )
      return ended ? "ended" : null
    },
  )

  /**
   * Whether somebody is, or may still become, an administrator of the institution. Of two that ask at once the second
   * waits for the first one's commit: only one first enrollment makes an administrator.
   */
  const hasAdministrator = Effect.fnUntraced(function* (
    institutionId: string,
  ): Effect.fn.Return<boolean, SqlError.SqlError> {
    yield* sql`select pg_advisory_xact_lock(hashtextextended(${`administrators of ${institutionId}`}, 0))`
    const found = yield* sql`
      select from institution_memberships
      where institution_id = ${institutionId} and role = 'administrator' and state <> 'ended' and not removed limit 1`
    return found.length > 0
  })

  return { seat, barredBy, hasAdministrator }
}
