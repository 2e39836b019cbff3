/**
 * Authenticates the callers of the identity API. Once any process has suspended a person or revoked a session, it is
 * refused from the next statement on: state of a token that is kept between requests names the person to check, and
 * never admits anyone.
 */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { Caller } from "../../schemas/api/ManagementApi.ts"
import type { DependencyUnavailable } from "../../schemas/problems/HttpProblems.ts"
import { InvalidToken } from "../../schemas/problems/IdentityProblems.ts"
import { Database } from "../platform/database/Database.ts"
import { type Admission, NotAdmitted } from "../platform/database/FencedCommand.ts"
import { type AccessToken, AccessTokens, signedInAt, signInOf } from "./AccessTokens.ts"
import { type Origin, SessionActivity } from "./SessionActivity.ts"

const bearer = /^bearer +(\S+)$/i

/** The row of the statement that finds a caller; no row is a refusal. */
export interface Found {
  readonly person_id: PersonId
  /** The session has a row. */
  readonly known: boolean
  readonly revoked: boolean
  readonly auditor: boolean
}

type Judged = Readonly<Record<string, unknown>> & {
  readonly caller_id?: unknown
  readonly caller_known?: unknown
  readonly caller_revoked?: unknown
  readonly caller_auditor?: unknown
}

/**
 * SQL that selects `Found` for a person's token, or no row: `with who as (${who(reads, token)}) select … from who`. The
 * caller of this function hands the row to `Callers.seen`. Where the person of the token's identity was merged into
 * another, both must be active: the directory may disable only the person that it knows by this identity.
 */
export const who = (sql: PgClient.PgClient, token: AccessToken) =>
  sql`select p.id as person_id, p.auditor, s.id is not null as known, s.revoked_at is not null or coalesce(
      f.before >= ${signedInAt(token)} and (f.except_issuer, f.except_sid) is distinct from (i.issuer, ${
    signInOf(token)
  }), false)
      or coalesce((select sessions_before from installation) >= ${signedInAt(token)}, false)
      or coalesce((select before from client_floors where client_id = ${token.clientId}) >= ${
    signedInAt(token)
  }, false) as revoked
    from identities i
    join people named on named.id = i.person_id
    join people p on p.id = coalesce(named.merged_into, named.id)
    left join sessions s on s.issuer = i.issuer and s.sid = ${token.sid}::text
    left join session_floors f on f.person_id = p.id
    where i.issuer = ${token.issuer} and i.subject = ${token.subject}
      and p.status = 'active' and not p.removed and p.merged_into is null
      and not exists (
        select from people came where came.issuer = i.issuer and came.subject = i.subject
          and came.merged_into is not null and came.status <> 'active')`

/** A caller who was recognised by the same token within the last minute; the next statement has to check it again. */
export interface Presumed {
  readonly caller: Caller["Service"] & { readonly personId: PersonId }
  /** The check that the first statement of a command makes. */
  readonly admission: Admission
  /** Whether the admission was checked and confirmed the caller. */
  readonly isRecognised: () => boolean
}

/** The command was not decided: its caller is refused, or the token now belongs to another person. */
export class NotRecognised {
  readonly _tag = "NotRecognised"
}

export class CallerAuthentication extends Context.Service<CallerAuthentication, {
  /** The caller behind an Authorization header's value, in one statement. */
  readonly recognise: (
    authorization: string | undefined,
    origin: Origin,
  ) => Effect.Effect<Caller["Service"], InvalidToken | DependencyUnavailable>
  /**
   * The caller who was recognised by this token before; asks no database, so nothing may be done for the caller before
   * the admission is checked. Null where the database must be asked first.
   */
  readonly presume: (
    authorization: string | undefined,
    origin: Origin,
  ) => Effect.Effect<Presumed | null, InvalidToken | DependencyUnavailable>
  /** The token of an Authorization header's value; asks no database. */
  readonly present: (
    authorization: string | undefined,
  ) => Effect.Effect<AccessToken, InvalidToken | DependencyUnavailable>
  /** Checks the row of a statement that joined `who`; returns the caller and notes the session's activity. */
  readonly seen: (
    token: AccessToken,
    found: Found | undefined,
    origin: Origin,
  ) => Effect.Effect<Caller["Service"], InvalidToken>
}>()("bailiwick/services/people/CallerAuthentication") {
  static readonly layer = Layer.effect(
    CallerAuthentication,
    Effect.gen(function* () {
      const { reads, sql } = yield* Database
      const tokens = yield* AccessTokens
      const sightings = yield* SessionActivity
      const refused = Effect.fail(new InvalidToken())

      const present = (authorization: string | undefined) => {
        const token = bearer.exec(authorization ?? "")?.[1]
        return token === undefined ? refused : tokens.verify(token)
      }

      const seen = Effect.fnUntraced(function* (token: AccessToken, found: Found | undefined, origin: Origin) {
        if (found === undefined || found.revoked) return yield* refused
        yield* sightings.add(token, found.person_id, origin, found.known)
        if (!found.auditor) persons.set(token, found.person_id)
        return callerOf(token, found.person_id, found.auditor)
      })

      // Without auditors, whose commands are not to begin. By the verified token object, which the token cache returns for a minute and then makes anew.
      const persons = new WeakMap<AccessToken, PersonId>()

      const callerOf = (token: AccessToken, personId: PersonId, auditor: boolean) => ({
        ...token,
        principal: `person:${personId}`,
        personId,
        auditor,
      })

      const presume = Effect.fnUntraced(function* (authorization: string | undefined, origin: Origin) {
        const token = yield* present(authorization)
        const personId = persons.get(token)
        if (personId === undefined) return null
        let recognised = false
        const judge = Effect.fnUntraced(
          function* ({ caller_auditor, caller_id, caller_known, caller_revoked }: Judged) {
            // A command of an auditor is not decided: recognised anew, the caller is refused.
            if (caller_id !== personId || caller_revoked !== false || caller_auditor !== false) {
              persons.delete(token)
              return yield* Effect.fail(new NotAdmitted(new NotRecognised()))
            }
            yield* sightings.add(token, personId, origin, caller_known === true)
            recognised = true
          },
        )
        return {
          caller: callerOf(token, personId, false),
          admission: {
            statement: sql`select person_id as caller_id, known as caller_known, revoked as caller_revoked,
              auditor as caller_auditor
              from (${who(sql, token)}) found`,
            judge,
          },
          isRecognised: () => recognised,
        } satisfies Presumed
      })

      const recognise = Effect.fnUntraced(
        function* (authorization: string | undefined, origin: Origin): Effect.fn.Return<
          Caller["Service"],
          InvalidToken | DependencyUnavailable
        > {
          const token = yield* present(authorization)
          if (token.via === "service") {
            return { ...token, principal: `service:${token.issuer} ${token.clientId}`, personId: null, auditor: false }
          }
          const [found] = yield* reads<Found>`${who(reads, token)}`.pipe(Effect.orDie)
          return yield* seen(token, found, origin)
        },
      )
      return CallerAuthentication.of({ recognise, presume, present, seen })
    }),
  )
}
