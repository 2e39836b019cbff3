/** Access tokens for tests, from an issuer with a key of its own that signs for every issuer, as with DEMO. */
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AccessTokens } from "../../services/people/AccessTokens.ts"
import { CallerAuthentication } from "../../services/people/CallerAuthentication.ts"
import { SessionActivity } from "../../services/people/SessionActivity.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { RateLimits } from "../../services/platform/security/RateLimits.ts"
import { type AccessTokenRequest, EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import type { Rates } from "../../src/http/auth/Limits.ts"
import { managed } from "../../src/http/auth/ManagementAuth.ts"

const issuer = Layer.unwrap(Effect.gen(function* () {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-issuer-"))),
    (home) => Effect.sync(() => rmSync(home, { recursive: true })),
  )
  return EmbeddedIssuer.layer({ home, issuer: "https://id.example/dev/issuer" })
}))

/** `EmbeddedIssuer`, and `CallerAuthentication` that trust it alone; needs `Database`. */
export const tokens = CallerAuthentication.layer.pipe(
  Layer.provideMerge(SessionActivity.layer),
  Layer.provideMerge(Layer.unwrap(
    Effect.map(EmbeddedIssuer, ({ tokenIssuer }) => AccessTokens.layer(() => tokenIssuer)),
  )),
  Layer.provideMerge(issuer),
)

/** The layer of the contract's `Managed` over `tokens`, without limits unless they are named. */
export const managedBy = (rates: Rates = { reads: 0, writes: 0 }) =>
  managed(rates).pipe(Layer.provideMerge(RateLimits.layer), Layer.provideMerge(tokens))

export type TokenOptions = Partial<Omit<AccessTokenRequest, "subject">>

/** A person's token: of the first identity, signed in now, unless `fields` say otherwise. */
export const tokenFor = Effect.fnUntraced(function* (personId: string, options: TokenOptions = {}) {
  const { sql } = yield* Database
  const [identity] = yield* sql<{ issuer: string; subject: string }>`
    select issuer, subject from identities where person_id = ${personId} order by linked_at, issuer, subject limit 1`
  if (identity === undefined) return yield* Effect.die(new Error(`${personId} has no identity`))
  return yield* (yield* EmbeddedIssuer).mintAccessToken({ clientId: "portal", ...identity, ...options })
}, Effect.orDie)

/** A service's token. */
export const serviceTokenFor = Effect.fnUntraced(function* (clientId: string, options: TokenOptions = {}) {
  return yield* (yield* EmbeddedIssuer).mintAccessToken({ subject: clientId, clientId, ...options })
})

/** The Authorization header of a person who signed in just now. */
export const bearer = (personId: string, options: TokenOptions = {}) =>
  Effect.map(tokenFor(personId, options), (token) => ({ authorization: `Bearer ${token}` }))
