/**
 * `/console/sign-in`, `/console/callback` and `/console/sign-out`: the browser's way to a session of the console and
 * back (services/console/ConsoleSessions.ts). No answer of these paths holds a token; the cookies are out of scripts'
 * reach. Nothing is redirected to but the configured issuers, and pages of the console.
 */
import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CsrfRejected, MalformedRequest } from "../../../schemas/problems/HttpProblems.ts"
import { ConsoleSessions } from "../../../services/console/ConsoleSessions.ts"
import { OpenIdClient, signInMillis } from "../../../services/console/OpenIdClient.ts"
import { consoleCookie } from "../auth/ConsoleAuth.ts"
import { passesCsrf } from "../auth/Csrf.ts"
import { readText } from "../edge/Body.ts"
import { Clients } from "../edge/Clients.ts"
import { accepted, actsAs } from "../edge/RequestActor.ts"
import { respond } from "../edge/ErrorMapping.ts"
import { style } from "../pages/TransferStyle.ts"
import { CallerAuthentication } from "../../../services/people/CallerAuthentication.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Links } from "../../../services/links/Links.ts"
import { linkAsked, linkingSession, proven } from "./ConsoleLink.ts"
import { pendingCookie, withoutPending, withoutSession, withPending, withSession } from "./ConsoleCookies.ts"
import { consoleStylePath, signInFailed } from "./ConsolePage.ts"

const seeOther = (location: string) =>
  HttpServerResponse.empty({ status: 303, headers: { location, "cache-control": "no-store" } })

const longestPath = 1_024

/** Pages outside of the console that ask for a sign-in (src/http/pages/RequestPages.ts). */
const askingPages = /^\/(?:enrollments\/resume|link-requests\/[0-9a-f-]{36})$/

/** The path of ours to return to; the console's first page for anything else. */
export const returnPath = (asked: string | null, publicUrl: URL): string => {
  const first = "/console/"
  if (asked === null || asked.length > longestPath) return first
  const url = URL.parse(asked, publicUrl)
  if (url === null || url.origin !== publicUrl.origin) return first
  if (!url.pathname.startsWith(first) && !askingPages.test(url.pathname)) return first
  // Neither would show a page.
  if (/^\/console\/(sign-in|callback|sign-out)(\/|$)/.test(url.pathname)) return first
  return url.pathname + url.search
}

const Query = Schema.Struct({
  issuer: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(512))),
  acr_values: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/), Schema.isMaxLength(256)),
  ),
  max_age: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{1,8}$/))),
  /** Proves another identity of the signed-in person (ConsoleLink.ts). */
  link: Schema.optionalKey(Schema.Literal("true")),
})
const decodeQuery = Schema.decodeUnknownOption(Query)

/** The live session of the browser that signs in once more for it, and its holder's name at the issuer, where known. */
const steppingUp = Effect.fnUntraced(function* (publicUrl: URL, issuer: string) {
  const sessions = yield* ConsoleSessions
  const { cookies } = yield* HttpServerRequest.HttpServerRequest
  const session = yield* sessions.watch(cookies[consoleCookie(publicUrl).name] ?? "")
  return session === null ? notSteppingUp : { stepsUp: session.id, loginHint: yield* sessions.hint(session, issuer) }
})
const notSteppingUp = { stepsUp: null, loginHint: null }

const signIn = (publicUrl: URL, mode: "read" | "on") =>
  Effect.gen(function* () {
    const client = yield* OpenIdClient
    const { url } = yield* HttpServerRequest.HttpServerRequest
    const { searchParams } = new URL(url, publicUrl)
    const returnTo = returnPath(searchParams.get("return"), publicUrl)
    const query = decodeQuery(Object.fromEntries(searchParams))
    if (Option.isNone(query)) return yield* signInFailed("not_begun")
    const { acr_values, link, max_age } = query.value
    const [only, ...others] = client.issuers
    const issuer = query.value.issuer ?? (others.length === 0 ? only?.issuer : undefined)
    // The console's first page offers the issuers.
    if (issuer === undefined) return seeOther(`/console/?${new URLSearchParams({ return: returnTo })}`)
    const { cookie, location } = yield* client.begin(
      link === undefined
        ? {
          issuer,
          returnTo,
          acrValues: acr_values ?? null,
          maxAge: max_age === undefined ? null : Number(max_age),
          linksSession: null,
          ...(acr_values === undefined && max_age === undefined ? notSteppingUp : yield* steppingUp(publicUrl, issuer)),
        }
        : yield* linkAsked(issuer, yield* linkingSession(publicUrl, mode)),
    )
    return withPending(seeOther(location.href), publicUrl, Redacted.value(cookie), signInMillis)
  }).pipe(
    Effect.catchTags({
      SignInFailed: ({ code }) => signInFailed(code),
      DependencyUnavailable: () => signInFailed("dependency_unavailable"),
    }),
  )

/** The user agent and the address of the request, as sessions show them. */
const originOf = Effect.gen(function* () {
  const { addressOf } = yield* Clients
  const request = yield* HttpServerRequest.HttpServerRequest
  return { userAgent: request.headers["user-agent"] ?? null, address: addressOf(request) }
})

const callback = (publicUrl: URL) =>
  Effect.gen(function* () {
    const client = yield* OpenIdClient
    const sessions = yield* ConsoleSessions
    const { cookies, url } = yield* HttpServerRequest.HttpServerRequest
    const signedIn = yield* client.complete(
      new URL(url, publicUrl).searchParams,
      cookies[pendingCookie(publicUrl).name],
    )
    if (signedIn.linksSession !== null) {
      const answer = yield* proven(publicUrl, signedIn, yield* originOf)
      yield* accepted
      return answer
    }
    const { cookie, idle } = yield* sessions.open(signedIn, yield* originOf, cookies[consoleCookie(publicUrl).name])
    yield* accepted
    return withSession(seeOther(signedIn.returnTo), publicUrl, Redacted.value(cookie), idle)
  }).pipe(
    Effect.catchTags({
      SignInFailed: ({ code }) => signInFailed(code),
      DependencyUnavailable: () => signInFailed("dependency_unavailable"),
    }),
    Effect.map((response) => withoutPending(response, publicUrl)),
  )

const Leaving = Schema.fromJsonString(Schema.Struct({ everywhere: Schema.optionalKey(Schema.Boolean) }))
const decodeLeaving = Schema.decodeUnknownOption(Leaving)

/**
 * Ends the session, and with `{"everywhere": true}` all of its holder's in other browsers. Answers with the address to
 * go to, and not with a redirect: the issuer's own sign-out is on another origin, which neither a fetch nor a form of
 * our pages may follow.
 */
const signOut = (publicUrl: URL) =>
  Effect.gen(function* () {
    const sessions = yield* ConsoleSessions
    const request = yield* HttpServerRequest.HttpServerRequest
    if (!passesCsrf(request, publicUrl)) return yield* respond(new CsrfRejected())
    const text = yield* readText(request)
    const leaving = decodeLeaving(text === "" ? "{}" : text)
    if (Option.isNone(leaving)) return yield* respond(new MalformedRequest({ detail: "everywhere is a boolean" }))
    const session = yield* sessions.find(request.cookies[consoleCookie(publicUrl).name] ?? "")
    if (session !== null) {
      yield* actsAs(session.personId === null ? `account:${session.accountId}` : `person:${session.personId}`)
    }
    const location = session === null ? null : yield* sessions.close(session, leaving.value.everywhere ?? false)
    const answer = HttpServerResponse.jsonUnsafe({ location: location?.href ?? "/console/" })
    return withoutSession(answer, publicUrl)
  })

/** The routes. `publicUrl` is the origin under which browsers reach this program. */
export const layer = (publicUrl: URL, mode: "read" | "on") =>
  Layer.unwrap(Effect.gen(function* () {
    const callers = yield* CallerAuthentication
    const client = yield* OpenIdClient
    const database = yield* Database
    const links = yield* Links
    const sessions = yield* ConsoleSessions
    const clients = yield* Clients
    const by = <A, E, R>(handler: Effect.Effect<A, E, R>) =>
      handler.pipe(
        Effect.provideService(OpenIdClient, client),
        Effect.provideService(ConsoleSessions, sessions),
        Effect.provideService(Clients, clients),
        Effect.provideService(CallerAuthentication, callers),
        Effect.provideService(Database, database),
        Effect.provideService(Links, links),
      )
    const css = Effect.sync(() => HttpServerResponse.text(style, { contentType: "text/css; charset=utf-8" }))
    return Layer.mergeAll(
      HttpRouter.add("GET", "/console/sign-in", by(signIn(publicUrl, mode))),
      HttpRouter.add("GET", "/console/callback", by(callback(publicUrl))),
      HttpRouter.add("POST", "/console/sign-out", by(signOut(publicUrl))),
      HttpRouter.add("GET", consoleStylePath, css),
    )
  }))
