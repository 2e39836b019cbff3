/**
 * Requests by an embedded session (services/console/EmbedLinks.ts). Its token is a bearer that the frame's script keeps in
 * memory: no browser sends it by itself, so no other page can make it act, and no frame needs a cookie of a third party.
 * It reaches webhooks, deliveries and event types alone.
 */
import { Context, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { Credential } from "../../../schemas/api/CredentialsApi.ts"
import { ConsoleReadOnly, Forbidden, InvalidCredentials } from "../../../schemas/problems/HttpProblems.ts"
import { EmbedLinks, embedTokenOf, reachesEmbedded } from "../../../services/console/EmbedLinks.ts"
import { CurrentRequest } from "../../../services/platform/observability/CurrentRequest.ts"

type Request = HttpServerRequest.HttpServerRequest

export interface EmbedAccess {
  /** Whether the request comes by an embedded session, live or not. */
  readonly covers: (authorization: string | undefined) => boolean
  /** The credential of the session's account. */
  readonly credential: (request: Request) => Effect.Effect<Credential["Service"], InvalidCredentials>
  /** Why the session may not make the request; undefined where it may. */
  readonly refusal: (request: Request) => Effect.Effect<Forbidden | ConsoleReadOnly | undefined>
}

const none: EmbedAccess = {
  covers: () => false,
  credential: () => Effect.fail(new InvalidCredentials()),
  refusal: () => Effect.succeed(undefined),
}

const safe = new Set(["GET", "HEAD"])

const access = (mode: "read" | "on") =>
  Effect.map(EmbedLinks, (links): EmbedAccess => {
    const covers = (authorization: string | undefined) => embedTokenOf(authorization) !== null
    return {
      covers,
      credential: Effect.fnUntraced(function* ({ headers }) {
        const token = embedTokenOf(headers["authorization"])
        if (token === null) return yield* new InvalidCredentials()
        const { accountId } = yield* links.find(token)
        return { via: "cookie", accountId, authTime: null }
      }),
      refusal: Effect.fnUntraced(function* ({ headers, method }) {
        if (!covers(headers["authorization"])) return undefined
        const { route } = yield* CurrentRequest
        if (!reachesEmbedded(route)) {
          return new Forbidden({ detail: "An embedded session serves webhooks, deliveries and event types alone" })
        }
        return mode === "read" && !safe.has(method) ? new ConsoleReadOnly() : undefined
      }),
    }
  })

/** Without its layer no embedded session is accepted. */
export class EmbedAuth
  extends Context.Reference<EmbedAccess>("bailiwick/http/auth/EmbedAuth", { defaultValue: () => none }) {
  static readonly layer = (mode: "read" | "on") => Layer.effect(EmbedAuth, access(mode))
}
