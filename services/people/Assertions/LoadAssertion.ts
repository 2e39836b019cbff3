/** What the start and the check of an assertion read, each in one statement and without locks. */
import type { PgClient } from "@effect/sql-pg"
import type { AssertionId, AuthenticatorId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { UserVerification } from "../../../schemas/identity/Assertion.ts"
import type { AuthenticatorKind } from "../../../schemas/identity/CredentialAction.ts"
import { answerTo, load, type Question } from "../../platform/database/FencedCommand.ts"
import { type RateLimit, type RateWindow, windowOf } from "../../platform/security/RateLimits.ts"

/** An authenticator with what checks it; bytes in hexadecimal. */
export interface Stored {
  readonly id: AuthenticatorId
  readonly person_id: PersonId
  readonly kind: AuthenticatorKind
  readonly credential_id: string | null
  readonly public_key: string | null
  readonly sign_count: number | null
  readonly transports: ReadonlyArray<string>
  readonly kid: string | null
  readonly secret: string | null
  readonly last_step: number | null
  /** The codes of a set that were not used yet. */
  readonly codes: ReadonlyArray<{ readonly kid: string; readonly hash: string }>
  /** `xmin`: another one after every change of the row. */
  readonly row: string
}

/**
 * The active person of an issuer's subject, by the rules of a sign-in (CallerAuthentication.ts): one row, or none. Its
 * lock keeps the person active until the commit.
 */
export const personOf = (sql: PgClient.PgClient, issuer: string, subject: string): Question => ({
  rows: sql`select p.id from identities i join people named on named.id = i.person_id
    join people p on p.id = coalesce(named.merged_into, named.id)
    where i.issuer = ${issuer} and i.subject = ${subject}
      and p.status = 'active' and not p.removed and p.merged_into is null
      and not exists (
        select from people came where came.issuer = i.issuer and came.subject = i.subject
          and came.merged_into is not null and came.status <> 'active')`,
  lock: sql`for share of i, named, p`,
})

export const personIn = (answer: string): PersonId | null =>
  (JSON.parse(answer) as ReadonlyArray<{ readonly id: PersonId }>)[0]?.id ?? null

/** SQL of the authenticators of the persons that `whose` selects, oldest first. */
const stored = (sql: PgClient.PgClient, person: Question) =>
  sql`(select coalesce(json_agg(json_build_object('id', a.id, 'person_id', a.person_id, 'kind', a.kind,
      'credential_id', a.credential_id, 'public_key', encode(a.public_key, 'hex'), 'sign_count', a.sign_count,
      'transports', a.transports, 'kid', a.kid, 'secret', encode(a.secret, 'hex'), 'last_step', a.last_step,
      'row', a.xmin::text, 'codes', (select coalesce(json_agg(json_build_object('kid', c.kid, 'hash', encode(c.hash, 'hex'))), '[]')
        from recovery_codes c where c.authenticator_id = a.id and c.used_at is null)
    ) order by a.id), '[]')
    from (${person.rows}) who join people p on p.id = who.id or p.merged_into = who.id
    join authenticators a on a.person_id = p.id)`

export interface LoadedPerson {
  readonly person: string
  readonly owned: ReadonlyArray<Stored>
}

export const loadPerson = (sql: PgClient.PgClient, issuer: string, subject: string) => {
  const person = personOf(sql, issuer, subject)
  return load<LoadedPerson>(sql, sql`select ${answerTo(sql, person)} as person, ${stored(sql, person)} as owned`)
}

export interface LoadedAssertion extends LoadedPerson {
  /** Null: there is no such assertion of this issuer, and nothing else is read. */
  readonly id: AssertionId | null
  readonly person_id: PersonId | null
  readonly rp_id: string
  readonly origins: ReadonlyArray<string>
  readonly user_verification: UserVerification
  readonly challenge: Uint8Array | null
  readonly state: "pending" | "passed" | "failed"
  readonly version: number
  readonly refused: number
  readonly expires_at: Date
  readonly lock_version: number | null
  readonly failed: number | null
  readonly locked_until: Date | null
  readonly taken: RateWindow
}

/** What names an assertion for its issuer, and the subject as it was read once. */
export interface Named {
  readonly subject: string
  readonly subject_key: Uint8Array
}

export const loadNamed = (sql: PgClient.PgClient, id: AssertionId, issuer: string) =>
  sql<Named>`
    select subject, subject_key from authenticator_assertions where id = ${id}::uuid and issuer = ${issuer}`

export interface AskedCheck {
  readonly id: AssertionId
  readonly issuer: string
  readonly kind: string
  readonly named: Named
  readonly limit: RateLimit
  readonly now: number
}

export const loadAssertion = (sql: PgClient.PgClient, { id, issuer, kind, limit, named, now }: AskedCheck) => {
  const person = personOf(sql, issuer, named.subject)
  return load<LoadedAssertion>(
    sql,
    sql`select a.id::text as id, a.person_id, a.rp_id, a.origins, a.user_verification, a.challenge, a.state, a.version,
        a.refused, a.expires_at, l.version as lock_version, l.failed, l.locked_until,
        ${answerTo(sql, person)} as person, ${stored(sql, person)} as owned, ${windowOf(sql, limit, now)} as taken
      from authenticator_assertions a
      left join authenticator_lockouts l on l.subject_key = a.subject_key and l.kind = ${kind}
      where a.id = ${id}::uuid and a.issuer = ${issuer}`,
  )
}
