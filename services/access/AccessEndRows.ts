/** The end of an Access as rows: the evidence of each time that it was set, and its timer. */
import type { PgClient } from "@effect/sql-pg"
import type { AccessId, InstitutionId, PersonId, RequestId } from "../../schemas/BrandedIds.ts"
import { insertion } from "../platform/database/UnitOfWork.ts"

/** One time that the end was set. */
export interface NewEnd {
  readonly id: string
  readonly access_id: AccessId
  /** RFC 3339; null: the Access has no end any more. */
  readonly ends_at: string | null
  readonly set_at: string
  readonly made_by: PersonId
  readonly approved_by: ReadonlyArray<PersonId>
  readonly reason: string
  readonly request_id: RequestId | null
  /** The only version that it ends; null: it ends any. */
  readonly access_version: number | null
}

/** Adds rows of `access_ends` (UnitOfWork.ts). */
export const newEnds = (sql: PgClient.PgClient) =>
  insertion(sql, "access_ends", {
    id: "uuid",
    access_id: "text",
    ends_at: "timestamptz",
    set_at: "timestamptz",
    made_by: "text",
    approved_by: "text[]",
    reason: "text",
    request_id: "uuid",
    access_version: "integer",
  })

const prefix = "access:"

/** The name of an Access among the aggregates of timers: the id of another system may be the one of a request. */
export const aggregateOf = (accessId: AccessId): string => prefix + accessId
export const accessOf = (aggregateId: string): string => aggregateId.slice(prefix.length)

/**
 * SQL of when an Access ends at the version that it has. A signed revocation ends no version but the signed one, and the
 * directory may write another before the revocation is carried out.
 */
export const presentEnd = "case when coalesce(ends_version = access_version, true) then ends_at else ends_before end"

/** SQL of whether the version that an Access has is about to be revoked, as was signed. */
export const isRevoking = "coalesce(ends_version = access_version, false)"

/**
 * SQL of whether an end `n` counts for this version of its Access: what was revoked, or moved to another institution,
 * begins without an end. A move to another identity of the same person also writes a revoked version, at the time of the
 * version after it, and takes no end away.
 */
export const countsFor = (sql: PgClient.PgClient, version: string) =>
  sql`coalesce(n.access_version = ${sql.literal(version)}, true) and not exists (
    select from access_versions m
    join access_versions b on b.access_id = m.access_id and b.access_version = m.access_version - 1
    where m.access_id = n.access_id and m.access_version <= ${sql.literal(version)} and m.created_at > n.set_at
      and (b.institution_id <> m.institution_id or b.state = 'revoked' and not (
        b.created_at = m.created_at and b.project_id = m.project_id and b.person_id <> m.person_id
        and canonical_person(b.person_id) = canonical_person(m.person_id))))`

/**
 * SQL of whether an end `n` was set while its Access belonged to the institution: one that moved keeps what was decided in
 * each of its institutions for that one.
 */
export const setIn = (sql: PgClient.PgClient, institutionId: InstitutionId) =>
  sql`(select v.institution_id from access_versions v
    -- An Access that is granted with an end gets both in one transaction.
    where v.access_id = n.access_id and (v.created_at <= n.set_at or v.access_version = 1)
    order by v.access_version desc limit 1) = ${institutionId}`
