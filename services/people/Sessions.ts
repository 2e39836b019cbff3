/**
 * The sessions of a person. A session is learned from its tokens (SessionActivity). A revocation writes the session's
 * row, which the statement that recognises callers reads: from the commit on every process refuses its tokens. A process
 * may have noted a session that has no row yet, so ending all other sessions also writes a cut-off: sign-ins before it
 * are refused. Products know a session by its issuer's name for it.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId, SessionId } from "../../schemas/BrandedIds.ts"
import type { Caller } from "../../schemas/api/ManagementApi.ts"
import type { SessionList } from "../../schemas/identity/IdentityAccount.ts"
import { type Assurance, reaches } from "../../schemas/identity/Assurance.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Database } from "../platform/database/Database.ts"
import { type AccessToken, signInOf } from "./AccessTokens.ts"
import { keptMillis } from "./PeopleRetention.ts"
import { SessionActivity } from "./SessionActivity.ts"
import type { Happening } from "./SecurityEventFanout.ts"

interface Row {
  readonly id: SessionId
  readonly issuer: string
  readonly sid: string
  readonly client_id: string
  readonly issued_at: Date
  readonly authenticated_at: Date | null
  readonly last_seen_at: Date
  readonly expires_at: Date
  readonly aal: Assurance
  readonly amr: ReadonlyArray<string>
  readonly user_agent: string | null
  readonly ip_prefix: string | null
  readonly revoked_at: Date | null
  readonly total: number
}

type Me = Pick<Caller["Service"], "issuer" | "sid"> & { readonly personId: PersonId }

/** Methods (RFC 8176) that are a second factor, or both factors at once; any other method is a first factor. */
const strong = new Set(["otp", "hwk", "swk", "sc", "mfa", "mca", "pop", "sms", "tel"])

/** The level of one method, which is at most the level of the whole sign-in. */
const levelOf = (method: string, whole: Assurance): Assurance =>
  whole === "unknown" ? whole : strong.has(method) && reaches(whole, "aal2") ? "aal2" : "aal1"

const iso = (at: Date | null) => at === null ? null : at.toISOString()

const shown = (row: Row, me: Me, now: Date): (typeof SessionList.Type)["items"][number] => ({
  session_id: row.id,
  current: row.issuer === me.issuer && row.sid === me.sid,
  state: row.revoked_at !== null ? "revoked" : row.expires_at <= now ? "expired" : "active",
  issued_at: row.issued_at.toISOString(),
  authenticated_at: iso(row.authenticated_at),
  last_seen_at: row.last_seen_at.toISOString(),
  expires_at: row.expires_at.toISOString(),
  aal: row.aal,
  authentication_methods: row.amr.map((method) => ({
    method,
    aal: levelOf(method, row.aal),
    completed_at: iso(row.authenticated_at),
  })),
  client_id: row.client_id,
  user_agent: row.user_agent,
  ip_prefix: row.ip_prefix,
  revoked_at: iso(row.revoked_at),
})

const happened = (ended: ReadonlyArray<{ readonly sid: string }>): ReadonlyArray<Happening> =>
  ended.map(({ sid }) => ({ kind: "session-revoked", sid }))

export class Sessions extends Context.Service<Sessions, {
  /**
   * The person's sessions of the last 90 days, last seen first, at most 1,000; the present one is always among them.
   */
  readonly list: (me: Me) => Effect.Effect<typeof SessionList.Type>
  /** Fails with NotFound unless it is a session of the person. */
  readonly find: (personId: PersonId, sessionId: SessionId) => Effect.Effect<void, NotFound | SqlError.SqlError>
  /** Ends one of the person's sessions in the current transaction; nothing happened where it had ended. */
  readonly revoke: (
    personId: PersonId,
    sessionId: SessionId,
  ) => Effect.Effect<ReadonlyArray<Happening>, NotFound | SqlError.SqlError>
  /** Ends all of the person's sessions but the present one, in the current transaction. */
  readonly revokeOthers: (
    me: Me & Pick<AccessToken, "authTime">,
  ) => Effect.Effect<ReadonlyArray<Happening>, SqlError.SqlError>
}>()("bailiwick/services/people/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const sightings = yield* SessionActivity
      const namesOf = (personId: PersonId) =>
        sql`(select id from people where id = ${personId} or merged_into = ${personId})`

      const list = Effect.fn("Sessions.list")(function* (me: Me) {
        yield* sightings.settle(me.personId)
        const now = new Date(yield* Clock.currentTimeMillis)
        const rows = yield* sql<Row>`
          select s.id::text, s.issuer, s.sid, s.client_id, s.issued_at, s.authenticated_at, s.last_seen_at, s.expires_at,
            s.aal, s.amr, s.user_agent, s.ip_prefix,
            coalesce(s.revoked_at, f.before, c.before, i.sessions_before) as revoked_at, count(*) over ()::int as total
          from sessions s left join session_floors f on f.person_id = ${me.personId}
            and f.before >= coalesce(s.authenticated_at, s.issued_at)
            and (f.except_issuer, f.except_sid) is distinct from (s.issuer, s.sid)
          left join client_floors c on c.client_id = s.client_id and c.before >= coalesce(s.authenticated_at, s.issued_at)
          left join installation i on i.sessions_before >= coalesce(s.authenticated_at, s.issued_at)
          where s.person_id in ${namesOf(me.personId)} and s.client_id <> ''
            and s.last_seen_at > ${new Date(now.getTime() - keptMillis)}
          order by s.last_seen_at desc, s.id desc limit 1000`.pipe(Effect.orDie)
        return { items: rows.map((row) => shown(row, me, now)), total: rows[0]?.total ?? 0 }
      })

      const find = Effect.fnUntraced(function* (personId: PersonId, sessionId: SessionId) {
        const found = isUuid(sessionId)
          ? yield* sql`
            select from sessions where id = ${sessionId}::uuid and person_id in ${namesOf(personId)} for update`
          : []
        if (found.length === 0) return yield* new NotFound()
      })

      const revoke = Effect.fn("Sessions.revoke")(function* (personId: PersonId, sessionId: SessionId) {
        yield* find(personId, sessionId)
        const now = new Date(yield* Clock.currentTimeMillis)
        return happened(
          yield* sql<{ sid: string }>`
            update sessions set revoked_at = ${now} where id = ${sessionId}::uuid and revoked_at is null returning sid`,
        )
      })

      const revokeOthers = Effect.fn("Sessions.revokeOthers")(function* (me: Me & Pick<AccessToken, "authTime">) {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`
          insert into session_floors as f (person_id, before, except_issuer, except_sid)
          values (${me.personId}, ${now}, ${me.issuer}, ${signInOf(me)})
          on conflict (person_id) do update set before = greatest(f.before, excluded.before),
            except_issuer = excluded.except_issuer, except_sid = excluded.except_sid`
        // Includes sessions whose last token has expired: a refresh would renew them, and products may keep their own.
        return happened(
          yield* sql<{ sid: string }>`
            update sessions set revoked_at = ${now}
            where person_id in ${namesOf(me.personId)} and revoked_at is null
              and last_seen_at > ${new Date(now.getTime() - keptMillis)}
              and (issuer, sid) is distinct from (${me.issuer}::text, ${me.sid}::text)
            returning sid`,
        )
      })
      return Sessions.of({ list, find, revoke, revokeOthers })
    }),
  )
}
