/**
 * Who sends a request of the identity API. A person who was suspended, or a session that was revoked, by any process, is
 * refused from the next statement on: what is kept of a token between requests says whom to ask for, never whom to let in.
 */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import type { Caller } from "../../schemas/api/Management.ts"
import type { DependencyUnavailable } from "../../schemas/problems/Floor.ts"
import { InvalidToken } from "../../schemas/problems/Identity.ts"
import { Database } from "../platform/database/Database.ts"
import { type Admission, NotAdmitted } from "../platform/database/FencedCommand.ts"
import { type AccessToken, AccessTokens, signedInAt, signInOf } from "./AccessTokens.ts"
import { type Origin, Sightings } from "./Sightings.ts"

const bearer = /^bearer +(\S+)$/i

/** What the statement says that finds a person: no row is a refusal. */
export interface Found {
  readonly person_id: string
  /** The session has a row. */
  readonly known: boolean
  readonly revoked: boolean
}

type Judged = Readonly<Record<string, unknown>> & {
  readonly caller_id?: unknown
  readonly caller_known?: unknown
  readonly caller_revoked?: unknown
}

/**
 * SQL that selects `Found` for a person's token, or no row: `with who as (${who(reads, token)}) select … from who`.
 * Whoever uses it hands the row to `Callers.seen`. Who came by the token's identity and was merged into another must be
 * active as that one must: the directory may disable somebody by the one name alone.
 */
export const who = (sql: PgClient.PgClient, token: AccessToken) =>
  sql`select p.id as person_id, s.id is not null as known, s.revoked_at is not null or coalesce(
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

/** A caller who was recognised by the same token within the last minute, and is to be recognised by what comes next. */
export interface Presumed {
  readonly caller: Caller["Service"] & { readonly personId: string }
  /** Asked by the first statement of a command. */
  readonly admission: Admission
  /** Whether the admission was judged, and by it the caller is who they were presumed to be. */
  readonly isRecognised: () => boolean
}

/** Why a command was not decided: its caller is refused, or is another person by now. */
export class NotRecognised {
  readonly _tag = "NotRecognised"
}

export class Callers extends Context.Service<Callers, {
  /** The caller behind an Authorization header's value, in one statement. */
  readonly recognise: (
    authorization: string | undefined,
    origin: Origin,
  ) => Effect.Effect<Caller["Service"], InvalidToken | DependencyUnavailable>
  /**
   * The caller who was recognised by this token before; asks no database, so nothing may be done in their name before the
   * admission is judged. Null where it must be asked who they are.
   */
  readonly presume: (
    authorization: string | undefined,
    origin: Origin,
  ) => Effect.Effect<Presumed | null, InvalidToken | DependencyUnavailable>
  /** The token of an Authorization header's value; asks no database. */
  readonly present: (
    authorization: string | undefined,
  ) => Effect.Effect<AccessToken, InvalidToken | DependencyUnavailable>
  /** Takes the row of a statement that joined `who`: the person, whose session was seen. */
  readonly seen: (
    token: AccessToken,
    found: Found | undefined,
    origin: Origin,
  ) => Effect.Effect<Caller["Service"], InvalidToken>
}>()("bailiwick/services/people/Callers") {
  static readonly layer = Layer.effect(
    Callers,
    Effect.gen(function* () {
      const { reads, sql } = yield* Database
      const tokens = yield* AccessTokens
      const sightings = yield* Sightings
      const refused = Effect.fail(new InvalidToken())

      const present = (authorization: string | undefined) => {
        const token = bearer.exec(authorization ?? "")?.[1]
        return token === undefined ? refused : tokens.verify(token)
      }

      const seen = Effect.fnUntraced(function* (token: AccessToken, found: Found | undefined, origin: Origin) {
        if (found === undefined || found.revoked) return yield* refused
        yield* sightings.add(token, found.person_id, origin, found.known)
        persons.set(token, found.person_id)
        return callerOf(token, found.person_id)
      })

      // Of tokens that were verified: the same one for a minute, and then it is verified anew.
      const persons = new WeakMap<AccessToken, string>()

      const callerOf = (token: AccessToken, personId: string) => ({
        ...token,
        principal: `person:${personId}`,
        personId,
      })

      const presume = Effect.fnUntraced(function* (authorization: string | undefined, origin: Origin) {
        const token = yield* present(authorization)
        const personId = persons.get(token)
        if (personId === undefined) return null
        let recognised = false
        const judge = Effect.fnUntraced(function* ({ caller_id, caller_known, caller_revoked }: Judged) {
          if (caller_id !== personId || caller_revoked !== false) {
            persons.delete(token)
            return yield* Effect.fail(new NotAdmitted(new NotRecognised()))
          }
          yield* sightings.add(token, personId, origin, caller_known === true)
          recognised = true
        })
        return {
          caller: callerOf(token, personId),
          admission: {
            statement: sql`select person_id as caller_id, known as caller_known, revoked as caller_revoked
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
            return { ...token, principal: `service:${token.issuer} ${token.clientId}`, personId: null }
          }
          const [found] = yield* reads<Found>`${who(reads, token)}`.pipe(Effect.orDie)
          return yield* seen(token, found, origin)
        },
      )
      return Callers.of({ recognise, presume, present, seen })
    }),
  )
}
