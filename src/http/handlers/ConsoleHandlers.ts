/** Handlers of `/v1/console`: the console's session, and links for frames. */
import { Clock, Effect, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { apiVersion } from "../../../schemas/api/Api.ts"
import { ConsoleApi } from "../../../schemas/api/ConsoleApi.ts"
import { Principal } from "../../../schemas/api/CredentialsApi.ts"
import type { ConsoleSession as View } from "../../../schemas/identity/ConsoleSession.ts"
import { EmbedLink } from "../../../schemas/mail/EmbedLink.ts"
import { CsrfRejected, Forbidden, NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { type ConsoleSession, ConsoleSessions } from "../../../services/console/ConsoleSessions.ts"
import { EmbedLinks } from "../../../services/console/EmbedLinks.ts"
import { ConsoleVisitors, stranger, type Visitor } from "../../../services/console/ConsoleVisitors.ts"
import { OpenIdClient } from "../../../services/console/OpenIdClient.ts"
import type { BrandShape } from "../../../services/platform/Brand.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { readInstallation } from "../../../services/platform/database/Installation.ts"
import { consoleCookie } from "../auth/ConsoleAuth.ts"
import { passesCsrf } from "../auth/Csrf.ts"
import { embedPath } from "../console/ConsoleShell.ts"
import { withoutSession, withSession } from "../console/ConsoleCookies.ts"
import { logoPath } from "../pages/BrandedPages.ts"
import { Clients } from "../edge/Clients.ts"
import { actsAs } from "../edge/RequestActor.ts"
import { keyedAround } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(ConsoleApi)

export interface ConsoleOptions {
  /** The origin under which browsers reach this program. */
  readonly publicUrl: URL
  readonly mode: "off" | "read" | "on"
  readonly transfers: boolean
  readonly brand: BrandShape
  /** Whether pages of other origins may frame an account's webhooks. */
  readonly embeds: boolean
  /** The domain that passkeys are made for. */
  readonly passkeyDomain: string
}

const withoutUrl = (link: EmbedLink): EmbedLink => ({ ...link, url: null })

const iso = (millis: number) => new Date(millis).toISOString()

const sessionView = (
  { authTime, endsAt, id, idleEndsAt, issuer }: Pick<
    ConsoleSession,
    "authTime" | "endsAt" | "id" | "idleEndsAt" | "issuer"
  >,
): View["session"] => ({
  id,
  issuer,
  authenticated_at: authTime === null ? null : iso(authTime * 1_000),
  idle_ends_at: iso(idleEndsAt),
  ends_at: iso(endsAt),
})

const actorOf = ({ account, person }: Pick<View, "account" | "person">) =>
  person !== null ? `person:${person.person_id}` : account === null ? null : `account:${account.id}`

export const consoleHandlers = ({ brand, embeds, mode, passkeyDomain, publicUrl, transfers }: ConsoleOptions) =>
  HttpApiBuilder.group(
    Api,
    "console",
    Effect.fn(function* (handlers) {
      const { sql } = yield* Database
      const { addressOf } = yield* Clients
      const sessions = yield* ConsoleSessions
      const visitors = yield* ConsoleVisitors
      const client = yield* OpenIdClient
      const { name } = consoleCookie(publicUrl)
      const links = yield* EmbedLinks
      const issuers = client.issuers.map(({ issuer, name }) => ({
        issuer,
        name,
        sign_in_url: new URL(`/console/sign-in?${new URLSearchParams({ issuer })}`, publicUrl).href,
      }))

      const viewOf = Effect.fnUntraced(function* (session: View["session"], visitor: Visitor) {
        const { state } = yield* Effect.orDie(readInstallation(sql))
        if (mode === "off") return yield* new NotFound({ detail: "This installation has no console" })
        return {
          session,
          ...visitor,
          issuers,
          mode: visitor.auditor ? "read" : mode,
          brand: { name: brand.name, logo_url: brand.logo === null ? null : logoPath },
          features: { transfers, passkey_domain: passkeyDomain },
          installation: { state },
          version: apiVersion,
        } satisfies View
      })

      const embedding = Effect.suspend(() =>
        embeds
          ? Effect.void
          : Effect.fail(new NotFound({ detail: "No page may frame this installation: EMBED_ORIGINS" }))
      )

      const visitorOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
        const session = yield* sessions.find(request.cookies[name] ?? "")
        if (session === null) return { session, visitor: stranger }
        const origin = { userAgent: request.headers["user-agent"] ?? null, address: addressOf(request) }
        const visitor = yield* visitors.of(session, origin)
        return actorOf(visitor) === null ? { session: null, visitor } : { session, visitor }
      })

      return handlers.handleAll({
        consoleSession: Effect.fnUntraced(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          const { session, visitor } = yield* visitorOf(request)
          const actor = actorOf(visitor)
          if (actor !== null) yield* actsAs(actor)
          const view = yield* viewOf(session === null ? null : sessionView(session), visitor)
          const answer = HttpServerResponse.jsonUnsafe(view)
          const cookie = request.cookies[name]
          if (cookie === undefined) return answer
          // The cookie of an ended session would keep any other cookie of the mail API from counting (ConsoleAuth).
          if (session === null) return withoutSession(answer, publicUrl)
          return withSession(answer, publicUrl, cookie, session.idleEndsAt - (yield* Clock.currentTimeMillis))
        }),
        createEmbedLink: Effect.fnUntraced(function* ({ payload }) {
          yield* embedding
          const { accountId, keyId } = yield* Principal
          if (keyId === null) return yield* new Forbidden({ detail: "An embed link is made by an API key" })
          const how = { principal: `account:${accountId}`, payload, status: 201, success: EmbedLink }
          const link = Effect.map(links.create({ accountId, keyId }, payload.expires_in), ({ expiresAt, token }) => ({
            url: new URL(`${embedPath}#${Redacted.value(token)}`, publicUrl).href,
            expires_at: iso(expiresAt),
          }))
          return yield* keyedAround({ ...how, keep: withoutUrl }, link)
        }),
        openEmbedSession: Effect.fnUntraced(function* ({ payload }) {
          yield* embedding
          const request = yield* HttpServerRequest.HttpServerRequest
          if (!passesCsrf(request, publicUrl)) return yield* new CsrfRejected()
          const { session: { accountId, endsAt, id }, token } = yield* links.open(payload.token)
          yield* actsAs(`account:${accountId}`)
          const own = { id, issuer: publicUrl.origin, authTime: null, endsAt, idleEndsAt: endsAt }
          const visitor = yield* visitors.account(accountId)
          const session = yield* viewOf(sessionView(own), { ...stranger, account: visitor })
          return { token: Redacted.value(token), session: { ...session, issuers: [] } }
        }),
      })
    }),
  )
