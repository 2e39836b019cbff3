/**
 * Writes noted sessions, all in one statement. New sessions are written while their persons are locked: a person may
 * have ended all other sessions meanwhile.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { isIP } from "node:net"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { Jobs } from "../platform/messaging/Jobs.ts"
import type { AccessToken } from "./AccessTokens.ts"
import { tellLater } from "./SecurityEventFanout.ts"

/** The origin of a request, as the connection and trusted proxies tell it. */
export interface Origin {
  readonly userAgent: string | null
  readonly address: string | null
}

/** A session by its newest token, not written yet. */
export interface Noted {
  readonly token: AccessToken
  readonly personId: PersonId
  readonly origin: Origin
  readonly at: number
  readonly known: boolean
  /** The earliest sign-in of the session's tokens. */
  readonly since: Date
}

/** A row is written where the noted time is newer by so much: `last_seen_at` is exact to a minute. */
const coarse = "30 seconds"

/** The network of an address, which tells a place and not a person: /24, and /48 for IPv6. */
export const prefixOf = (address: string | null): string | null => {
  const plain = address?.replace(/^::ffff:(?=\d+\.)/i, "").split("%", 1)[0] ?? ""
  if (isIP(plain) === 4) return `${plain.split(".").slice(0, 3).join(".")}.0/24`
  if (isIP(plain) !== 6) return null
  const [head = "", tail] = plain.toLowerCase().split("::")
  const groups = head === "" ? [] : head.split(":")
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length)
  const all = [...groups, ...Array.from({ length: missing }, () => "0"), ...(tail ? tail.split(":") : [])]
  return `${all.slice(0, 3).map((group) => parseInt(group, 16).toString(16)).join(":")}::/48`
}

const timeOf = (seconds: number | null) => seconds === null ? null : new Date(seconds * 1_000).toISOString()

/** Writes the sessions under these ids; a session that has a row keeps its id. */
const put = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  seen: ReadonlyArray<Noted>,
  ids: ReadonlyArray<string>,
) {
  const rows = seen.map(({ at, origin, personId, token }, i) => ({
    id: ids[i]!,
    issuer: token.issuer,
    sid: token.sid,
    person_id: personId,
    client_id: token.clientId,
    issued_at: timeOf(token.issuedAt),
    authenticated_at: timeOf(token.authTime),
    last_seen_at: new Date(at).toISOString(),
    expires_at: timeOf(token.expiresAt),
    acr: token.acr,
    aal: token.aal,
    amr: token.amr,
    user_agent: origin.userAgent,
    ip_prefix: prefixOf(origin.address),
  }))
  yield* sql`
    insert into sessions as s (id, issuer, sid, person_id, client_id, issued_at, authenticated_at, last_seen_at,
      expires_at, acr, aal, amr, user_agent, ip_prefix)
    select id, issuer, sid, person_id, client_id, issued_at, authenticated_at, last_seen_at,
      expires_at, acr, aal, array(select jsonb_array_elements_text(amr)), user_agent, ip_prefix
    from jsonb_to_recordset(${sql.json(rows)}) as seen (id uuid, issuer text, sid text, person_id text,
      client_id text, issued_at timestamptz, authenticated_at timestamptz, last_seen_at timestamptz,
      expires_at timestamptz, acr text, aal text, amr jsonb, user_agent text, ip_prefix text)
    order by issuer, sid
    on conflict (issuer, sid) do update set
      (authenticated_at, acr, aal, amr) = (
        select latest.* from (values
          (s.authenticated_at, s.acr, s.aal, s.amr),
          (excluded.authenticated_at, excluded.acr, excluded.aal, excluded.amr)
        ) latest (authenticated_at, acr, aal, amr) order by authenticated_at desc nulls last limit 1
      ),
      last_seen_at = greatest(s.last_seen_at, excluded.last_seen_at),
      expires_at = greatest(s.expires_at, excluded.expires_at),
      user_agent = excluded.user_agent, ip_prefix = excluded.ip_prefix
    where s.revoked_at is null and (s.last_seen_at < excluded.last_seen_at - ${coarse}::interval
      or s.expires_at < excluded.expires_at
      or coalesce(s.authenticated_at < excluded.authenticated_at, excluded.authenticated_at is not null))`
})

export const writingSessions = Effect.gen(function* () {
  const { sql } = yield* Database
  const tell = tellLater(yield* Jobs)

  /**
   * Ends those new rows that the person has ended meanwhile. Rows that another process wrote first are not matched.
   */
  const endLate = Effect.fnUntraced(function* (rows: ReadonlyArray<{ readonly id: string; readonly since: Date }>) {
    const ended = yield* sql<{ person_id: PersonId; sid: string }>`
      update sessions s set revoked_at = f.before
      from jsonb_to_recordset(${sql.json(rows)}) as late (id uuid, since timestamptz), people p, session_floors f
      where s.id = late.id and p.id = s.person_id and f.person_id = coalesce(p.merged_into, p.id)
        and f.before >= late.since and (f.except_issuer, f.except_sid) is distinct from (s.issuer, s.sid)
      returning f.person_id, s.sid`
    for (const [personId, theirs] of Map.groupBy(ended, ({ person_id: id }) => id)) {
      yield* tell(personId, theirs.map(({ sid }) => ({ kind: "session-revoked", sid })))
    }
  })

  return Effect.fnUntraced(function* (noted: ReadonlyMap<string, Noted>) {
    const seen = [...noted.values()]
    const ids = yield* (yield* Ids).batch(seen.length)
    const fresh = seen.flatMap(({ known, since }, i) => known ? [] : [{ id: ids[i]!, since }])
    if (fresh.length === 0) return yield* put(sql, seen, ids)
    const people = [...new Set(seen.filter(({ known }) => !known).map(({ personId }) => personId))]
    yield* Effect.gen(function* () {
      yield* sql`
        select from people where id = any(array(
          select unnest(${people}::text[])
          union select merged_into from people where id = any(${people}::text[]) and merged_into is not null))
        order by id collate "C" for share`
      yield* put(sql, seen, ids)
      yield* endLate(fresh)
    }).pipe(sql.withTransaction)
  })
})
