/**
 * Records the activity of sessions behind the requests (WriteBehind): the first token with a `sid` makes the session's
 * row, later tokens renew its time of last use. After a kill the session's next request notes it again. A row that was
 * revoked stays revoked.
 *
 * A person may end all other sessions while one of them is noted and has no row yet. That session is written as ended,
 * with its events, as it would have been with a row: ending sessions locks the person, and so does writing new ones, so
 * either the former finds the row or the latter finds the cut-off (Sessions).
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { writeBehind } from "../platform/database/WriteBehind.ts"
import { type AccessToken, signedInAt } from "./AccessTokens.ts"
import { type Noted, type Origin, writingSessions } from "./WriteSessions.ts"

export { type Origin, prefixOf } from "./WriteSessions.ts"

const longestAgent = 256

/**
 * Sessions that wait to be written. Beyond that, for example while the database takes no writes, the session that was
 * noted longest ago is dropped; its next request notes it again.
 */
const mostNoted = 20_000

const agentOf = (agent: string | null): string | null =>
  agent === null ? null : [...agent.replace(/\p{Cc}/gu, " ").toWellFormed()].slice(0, longestAgent).join("")

/** Merges two sightings of one session; the token that was issued later counts. */
const joined = (before: Noted, next: Noted): Noted => ({
  ...next,
  token: before.token.issuedAt > next.token.issuedAt ? before.token : next.token,
  known: before.known && next.known,
  since: before.since < next.since ? before.since : next.since,
})

const keyOf = (token: AccessToken) => JSON.stringify([token.issuer, token.sid])

export class SessionActivity extends Context.Service<SessionActivity, {
  /** Notes a session's token; `known`: it has a row. Never fails, never waits. Ignores a token without a session. */
  readonly add: (token: AccessToken, personId: PersonId, origin: Origin, known: boolean) => Effect.Effect<void>
  /** Writes the noted sessions; on a failure they wait for the next time. Runs every 10 s and when the program ends. */
  readonly flush: Effect.Effect<void>
  /** Writes the noted sessions at once where one of them is this person's and has no row yet. */
  readonly settle: (personId: PersonId) => Effect.Effect<void>
}>()("bailiwick/services/people/SessionActivity") {
  static readonly layer = Layer.effect(
    SessionActivity,
    Effect.gen(function* () {
      const write = yield* writingSessions
      const { flush, flushWanted, note } = yield* writeBehind({ name: "seen sessions", most: mostNoted, joined, write })

      const add = Effect.fnUntraced(
        function* (token: AccessToken, personId: PersonId, origin: Origin, known: boolean) {
          if (token.sid === null) return
          const at = yield* Clock.currentTimeMillis
          // Truncated here, to save memory: a header is up to 8 KB, and the row takes 256 characters of it.
          const agent = { ...origin, userAgent: agentOf(origin.userAgent) }
          note(keyOf(token), { token, personId, origin: agent, at, known, since: signedInAt(token) })
        },
      )

      return SessionActivity.of({
        add,
        flush,
        settle: (personId) => flushWanted((seen) => seen.personId === personId && !seen.known),
      })
    }),
  )
}
