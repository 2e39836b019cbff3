/** Handler of `/v1/console/session`. */
import { Clock, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { apiVersion } from "../../../schemas/api/Api.ts"
import { ConsoleApi } from "../../../schemas/api/ConsoleApi.ts"
import type { ConsoleSession as View } from "../../../schemas/identity/ConsoleSession.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { type ConsoleSession, ConsoleSessions } from "../../../services/console/ConsoleSessions.ts"
import { ConsoleVisitors, stranger } from "../../../services/console/ConsoleVisitors.ts"
import { OpenIdClient } from "../../../services/console/OpenIdClient.ts"
import type { BrandShape } from "../../../services/platform/Brand.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { readInstallation } from "../../../services/platform/database/Installation.ts"
import { consoleCookie } from "../auth/ConsoleAuth.ts"
import { withoutSession, withSession } from "../console/ConsoleCookies.ts"
import { logoPath } from "../pages/BrandedPages.ts"
import { Clients } from "../edge/Clients.ts"
import { actsAs } from "../edge/RequestActor.ts"

const Api = HttpApi.make("bailiwick").add(ConsoleApi)

export interface ConsoleOptions {
  /** The origin under which browsers reach this program. */
  readonly publicUrl: URL
  readonly mode: "off" | "read" | "on"
  readonly transfers: boolean
  readonly brand: BrandShape
}

const iso = (millis: number) => new Date(millis).toISOString()

const sessionView = ({ authTime, endsAt, id, idleEndsAt, issuer }: ConsoleSession): View["session"] => ({
  id,
  issuer,
  authenticated_at: authTime === null ? null : iso(authTime * 1_000),
  idle_ends_at: iso(idleEndsAt),
  ends_at: iso(endsAt),
})

const actorOf = ({ account, person }: Pick<View, "account" | "person">) =>
  person !== null ? `person:${person.person_id}` : account === null ? null : `account:${account.id}`

export const consoleHandlers = ({ brand, mode, publicUrl, transfers }: ConsoleOptions) =>
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
      const issuers = client.issuers.map(({ issuer, name }) => ({
        issuer,
        name,
        sign_in_url: new URL(`/console/sign-in?${new URLSearchParams({ issuer })}`, publicUrl).href,
      }))

      const visitorOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
        const session = yield* sessions.find(request.cookies[name] ?? "")
        if (session === null) return { session, visitor: stranger }
        const origin = { userAgent: request.headers["user-agent"] ?? null, address: addressOf(request) }
        const visitor = yield* visitors.of(session, origin)
        return actorOf(visitor) === null ? { session: null, visitor } : { session, visitor }
      })

      return handlers.handleAll({
        consoleSession: Effect.fnUntraced(function* () {
          if (mode === "off") return yield* new NotFound({ detail: "This installation has no console" })
          const request = yield* HttpServerRequest.HttpServerRequest
          const { session, visitor } = yield* visitorOf(request)
          const actor = actorOf(visitor)
          if (actor !== null) yield* actsAs(actor)
          const { state } = yield* Effect.orDie(readInstallation(sql))
          const view: View = {
            session: session === null ? null : sessionView(session),
            ...visitor,
            issuers,
            mode,
            brand: { name: brand.name, logo_url: brand.logo === null ? null : logoPath },
            features: { transfers },
            installation: { state },
            version: apiVersion,
          }
          const answer = HttpServerResponse.jsonUnsafe(view)
          const cookie = request.cookies[name]
          if (cookie === undefined) return answer
          // The cookie of an ended session would keep any other cookie of the mail API from counting (ConsoleAuth).
          if (session === null) return withoutSession(answer, publicUrl)
          return withSession(answer, publicUrl, cookie, session.idleEndsAt - (yield* Clock.currentTimeMillis))
        }),
      })
    }),
  )
