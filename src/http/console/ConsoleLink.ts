/**
 * The proof of another identity of the signed-in person, by a sign-in at its issuer. The browser begins it by
 * `/console/sign-in?link=true`; the other identity's token is shown to the service of links on the server and is kept
 * nowhere, and the console's session stays that of the person. The proof's id, which serves its maker alone, is in the
 * address of the page that the browser returns to, which asks for the link.
 */
import { Clock, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { ConsoleSessions } from "../../../services/console/ConsoleSessions.ts"
import { type Asked, type SignedIn, SignInFailed } from "../../../services/console/OpenIdClient.ts"
import { Links } from "../../../services/links/Links.ts"
import { CallerAuthentication } from "../../../services/people/CallerAuthentication.ts"
import type { Origin } from "../../../services/people/SessionActivity.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { consoleCookie } from "../auth/ConsoleAuth.ts"
import { actsAs } from "../edge/RequestActor.ts"

/** The page that asks for the link. */
const linkPath = "/console/account"

/**
 * Both sign-ins are at most this old, in seconds: the person's own, since an open console that another finds must not
 * be joined to that other's identity, and that of the other identity, which the issuer would not ask for in a browser that is signed in.
 */
const linkMaxAge = 300

const refused = (code: string) => Effect.fail(new SignInFailed({ code }))

/** The session of a person who may link an identity here; fails with the code of the page that says why not. */
export const linkingSession = Effect.fnUntraced(function* (publicUrl: URL, mode: "read" | "on") {
  const sessions = yield* ConsoleSessions
  const { cookies, headers } = yield* HttpServerRequest.HttpServerRequest
  // A page of another site must not begin it, in a browser either that does not say where a request comes from.
  if (headers["sec-fetch-site"] !== "same-origin") return yield* refused("csrf_rejected")
  const cookie = cookies[consoleCookie(publicUrl).name] ?? ""
  const session = yield* sessions.find(cookie)
  if (session === null || session.personId === null) return yield* refused("not_begun")
  if (mode === "read") return yield* refused("console_read_only")
  if (yield* sessions.audits(cookie)) return yield* refused("auditor_reads_only")
  const now = yield* Clock.currentTimeMillis
  return { ...session, recent: session.authTime !== null && now - session.authTime * 1_000 <= linkMaxAge * 1_000 }
})

/** The sign-in to begin: as the other identity, or first as the person once more, who then begins again. */
export const linkAsked = Effect.fnUntraced(
  function* (issuer: string, session: Effect.Success<ReturnType<typeof linkingSession>>) {
    const sessions = yield* ConsoleSessions
    return {
      issuer: session.recent ? issuer : session.issuer,
      returnTo: linkPath,
      acrValues: null,
      maxAge: linkMaxAge,
      linksSession: session.recent ? session.id : null,
      stepsUp: session.recent ? null : session.id,
      loginHint: session.recent ? null : yield* sessions.hint(session, session.issuer),
    } satisfies Asked
  },
)

/** Makes the proof of a completed sign-in; returns where the browser goes on. */
export const proven = Effect.fnUntraced(
  function* (publicUrl: URL, signedIn: SignedIn, origin: Origin) {
    const callers = yield* CallerAuthentication
    const links = yield* Links
    const sessions = yield* ConsoleSessions
    const { cookies } = yield* HttpServerRequest.HttpServerRequest
    // The tokens of this sign-in are dropped and not revoked: where the same person came back, some issuers end the grant
    // that the session lives by.
    const session = yield* sessions.find(cookies[consoleCookie(publicUrl).name] ?? "")
    if (session === null || session.id !== signedIn.linksSession) return yield* refused("not_begun")
    const { auditor, personId, principal } = yield* callers.recognise(
      `Bearer ${yield* sessions.accessToken(session)}`,
      origin,
    )
    yield* actsAs(principal)
    if (personId === null) return yield* refused("not_begun")
    if (auditor) return yield* refused("auditor_reads_only")
    const { proof_id } = yield* run(links.prove({ personId, token: signedIn.tokens.access }))
    const location = `${linkPath}?${new URLSearchParams({ link_proof: proof_id })}`
    return HttpServerResponse.empty({ status: 303, headers: { location, "cache-control": "no-store" } })
  },
  Effect.catchIf((error) => error instanceof HTTPValidationError, () => refused("link_rejected")),
  Effect.catchTags({
    InvalidToken: () => refused("not_begun"),
    ProofConsumed: () => refused("link_rejected"),
  }),
)
