/** Handlers of a project's lifecycle, and the layer of the contract's `Consuming`. */
import { Context, Effect, Layer } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder, type HttpApiEndpoint } from "effect/http-api"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { Consumer, Consuming, Follows, LifecycleApi, LifecycleKeysApi } from "../../../schemas/api/LifecycleApi.ts"
import { InvalidToken } from "../../../schemas/problems/IdentityProblems.ts"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import type { AccessTokens } from "../../../services/people/AccessTokens.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { actsAs } from "../edge/RequestActor.ts"
import { type Rates, spending } from "../auth/Limits.ts"

const Api = HttpApi.make("bailiwick").add(LifecycleApi)
const KeysApi = HttpApi.make("bailiwick").add(LifecycleKeysApi)

const bearer = /^bearer +(\S+)$/i

/** `tokens` verifies access tokens for the audience of lifecycle consumers; only services are admitted. */
export const consuming = (tokens: AccessTokens["Service"], rates: Rates) =>
  Layer.effect(
    Consuming,
    Effect.gen(function* () {
      const spend = spending(yield* RateLimits, rates)
      return Consuming.of({
        lifecycle: Effect.fnUntraced(function* <E, R>(
          next: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
          { endpoint }: { readonly endpoint: HttpApiEndpoint.Top },
        ) {
          const request = yield* HttpServerRequest.HttpServerRequest
          const presented = bearer.exec(request.headers["authorization"] ?? "")?.[1]
          if (presented === undefined) return yield* new InvalidToken()
          const { clientId, issuer, via } = yield* tokens.verify(presented)
          if (via !== "service") return yield* new InvalidToken()
          const principal = `service:${issuer} ${clientId}`
          yield* actsAs(principal)
          yield* spend(principal, request, Context.get(endpoint.annotations, Follows))
          return yield* Effect.provideService(next, Consumer, { issuer, clientId })
        }),
      })
    }),
  )

const asking = (projectId: ProjectId) =>
  Effect.map(Consumer, ({ clientId, issuer }) => ({ issuer, clientId, projectId }))

const lifecycleGroup = HttpApiBuilder.group(
  Api,
  "lifecycle",
  Effect.fn(function* (handlers) {
    const consumption = yield* CursorApi
    return handlers.handleAll({
      lifecycleEvents: Effect.fnUntraced(function* ({ params, query }) {
        const page = yield* consumption.events({
          ...(yield* asking(params.project_id)),
          after: query.after,
          limit: Number(query.limit),
          waitMillis: Number(query.wait) * 1_000,
        }).pipe(Effect.catchTag("SqlError", Effect.die))
        return HttpServerResponse.jsonUnsafe(page)
      }),
      lifecycleSnapshot: Effect.fnUntraced(function* ({ params }) {
        return yield* consumption.snapshot(yield* asking(params.project_id)).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      lifecycleSnapshotPart: Effect.fnUntraced(function* ({ params }) {
        const { digest, project_id } = params
        return yield* consumption.part({ ...(yield* asking(project_id)), digest }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      acknowledgeLifecycle: Effect.fnUntraced(function* ({ params, payload }) {
        return yield* consumption.acknowledge({ ...payload, ...(yield* asking(params.project_id)) }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
    })
  }),
)

const keysGroup = HttpApiBuilder.group(
  KeysApi,
  "lifecycle-keys",
  Effect.fn(function* (handlers) {
    const keys = yield* SigningKeys
    return handlers.handleAll({
      lifecycleKeys: () =>
        Effect.map(
          Effect.orDie(Effect.andThen(keys.ensure, keys.jwks)),
          (jwks) => HttpServerResponse.jsonUnsafe(jwks, { headers: { "cache-control": "public, max-age=60" } }),
        ),
    })
  }),
)

export const lifecycle = Layer.merge(lifecycleGroup, keysGroup)
