/**
 * Merges one person into another. Only a person without entanglements may be merged away: no membership, ownership or
 * right of an operator or auditor, and no decision. Two persons who decided the same thing are never merged; a trigger on `people`
 * holds the same rule.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { PersonId } from "../../../schemas/BrandedIds.ts"

interface Merge {
  readonly from: PersonId
  readonly into: PersonId
  readonly approvedBy: ReadonlyArray<PersonId>
  readonly now: Date
}

/**
 * SQL of whether a person has rights or decisions that a leaked token must not carry over to another person; `id` is
 * SQL.
 */
export const isEntangled = (sql: PgClient.PgClient, id: Statement.Fragment): Statement.Fragment =>
  sql`(
    with names as (select n.id from people n where n.id = ${id} or n.merged_into = ${id})
    select exists (select from people o where o.id = ${id} and (o.operator or o.auditor))
      or exists (select from institution_memberships m join names on names.id = m.person_id where not m.removed)
      or exists (select from project_owners o join names on names.id = o.person_id where o.active and not o.removed)
      or exists (select from policy_approvals a join names on names.id = a.person_id)
      or exists (select from policy_reviews v join names on names.id = v.declined_by)
      or exists (select from access_reviews r join names on names.id in (r.proposed_by, r.approved_by, r.revoked_by))
      or exists (select from service_grants g join names on names.id in (g.proposed_by, g.approved_by, g.revoked_by)))`

export const merging = (sql: PgClient.PgClient) => {
  const entangled = (id: PersonId) =>
    Effect.map(
      sql<{ entangled: boolean }>`select ${isEntangled(sql, sql`${id}`)} as entangled`,
      ([row]) => row!.entangled,
    )

  const decidedTogether = (one: PersonId, other: PersonId) =>
    Effect.map(
      sql<{ together: boolean }>`select decided_together(${one}, ${other}) as together`,
      ([row]) => row!.together,
    )

  /** Locks both rows, ids ascending; returns the ids of those that are active and not merged. */
  const lockBoth = (ids: ReadonlyArray<PersonId>) =>
    Effect.map(
      sql<{ id: PersonId }>`
        with locked as (
          select id, status, removed, merged_into from people where id = any(${[...ids]}::text[])
          order by id collate "C" for update)
        select id from locked where status = 'active' and not removed and merged_into is null`,
      (rows) => new Set(rows.map(({ id }) => id)),
    )

  /** Moves the identities of `from` to `into`, with its cut-off of ended sessions and its receipts. */
  const merge = Effect.fnUntraced(function* ({ approvedBy, from, into, now }: Merge) {
    yield* sql`
      update identities set person_id = ${into}, linked_at = ${now}, made_by = ${into},
        approved_by = ${[...approvedBy]}::text[]
      where person_id = ${from}`
    yield* sql`
      update people set merged_into = ${into}, revision = revision + 1, updated_at = ${now}
      where id = ${from} or merged_into = ${from}`
    yield* sql`
      insert into session_floors as f (person_id, before, except_issuer, except_sid)
      select ${into}, before, except_issuer, except_sid from session_floors where person_id = ${from}
      on conflict (person_id) do update
        set before = excluded.before, except_issuer = excluded.except_issuer, except_sid = excluded.except_sid
        where f.before < excluded.before`
    const [was, is] = [`person:${from}`, `person:${into}`]
    yield* sql`
      update idempotency_receipts r set principal = ${is} where r.principal = ${was} and not exists (
        select from idempotency_receipts o
        where o.principal = ${is} and o.method = r.method and o.path = r.path and o.key = r.key)`
  })

  return { entangled, decidedTogether, lockBoth, merge }
}
