/**
 * Who sends a request of the identity API. Nothing is kept between requests: a person who was suspended, or a session
 * that was revoked, by any process, is refused from the next statement on.
 */
import { Context, Effect, Layer } from "effect"
import type { Caller } from "../../schemas/api/Management.ts"
import type { DependencyUnavailable } from "../../schemas/problems/Floor.ts"
import { InvalidToken } from "../../schemas/problems/Identity.ts"
import { Database } from "../platform/Database.ts"
import { type AccessToken, AccessTokens } from "./AccessTokens.ts"
import { type Origin, Sightings } from "./Sightings.ts"

const bearer = /^bearer +(\S+)$/i

/** What a floor under sessions is compared with: when they signed in, or had the token where that is not said. */
const signedInAt = ({ authTime, issuedAt }: AccessToken) => new Date((authTime ?? issuedAt) * 1_000)

export class Callers extends Context.Service<Callers, {
  /** The caller behind an Authorization header's value, in one statement. */
  readonly recognise: (
    authorization: string | undefined,
    origin: Origin,
  ) => Effect.Effect<Caller["Service"], InvalidToken | DependencyUnavailable>
}>()("bailiwick/services/people/Callers") {
  static readonly layer = Layer.effect(
    Callers,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const tokens = yield* AccessTokens
      const sightings = yield* Sightings
      const refused = Effect.fail(new InvalidToken())

      const person = Effect.fnUntraced(function* (token: AccessToken, origin: Origin) {
        const [row] = yield* reads<{ person_id: string; known: boolean; revoked: boolean }>`
          select p.id as person_id, s.id is not null as known, s.revoked_at is not null or coalesce(
            f.before >= ${
          signedInAt(token)
        } and (f.except_issuer, f.except_sid) is distinct from (i.issuer, ${token.sid}::text),
            false) as revoked
          from identities i
          join people named on named.id = i.person_id
          join people p on p.id = coalesce(named.merged_into, named.id)
          left join sessions s on s.issuer = i.issuer and s.sid = ${token.sid}::text
          left join session_floors f on f.person_id = p.id
          where i.issuer = ${token.issuer} and i.subject = ${token.subject}
            and p.status = 'active' and not p.removed and p.merged_into is null`.pipe(Effect.orDie)
        if (row === undefined || row.revoked) return yield* refused
        yield* sightings.add(token, row.person_id, origin, row.known)
        return { ...token, principal: `person:${row.person_id}`, personId: row.person_id }
      })

      const recognise = Effect.fn("Callers.recognise")(
        function* (authorization: string | undefined, origin: Origin): Effect.fn.Return<
          Caller["Service"],
          InvalidToken | DependencyUnavailable
        > {
          const presented = bearer.exec(authorization ?? "")?.[1]
          if (presented === undefined) return yield* refused
          const token = yield* tokens.verify(presented)
          if (token.via === "person") return yield* person(token, origin)
          return { ...token, principal: `service:${token.issuer} ${token.clientId}`, personId: null }
        },
      )
      return Callers.of({ recognise })
    }),
  )
}
