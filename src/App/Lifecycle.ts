/** Lifecycle messages: signed, published, and read by services. */
import { Effect, Layer } from "effect"
import { Consumption } from "../../services/lifecycle/Consumption.ts"
import { Messages } from "../../services/lifecycle/Messages.ts"
import type { Consuming } from "../../schemas/api/Lifecycle.ts"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { accessTokens, configuredTokenIssuers } from "../../services/people/AccessTokens.ts"
import type { Outbound } from "../../services/platform/Outbound.ts"
import type { AppConfig } from "../AppConfig.ts"
import { EmbeddedIssuer } from "../embedded/EmbeddedIssuer.ts"
import { consuming, lifecycle } from "../http/Lifecycle.ts"
import { LifecycleSigner } from "../workers/LifecycleSigner.ts"

/** The audience of a consumer's tokens. */
const audience = "service-lifecycle"

/** Who may consume; with DEMO the home's own key speaks for every issuer. */
const guard = <E, R>(
  config: AppConfig,
  issuer: Layer.Layer<EmbeddedIssuer, E, R>,
): Layer.Layer<Consuming, E, R | Outbound> =>
  config.demo
    ? Layer.unwrap(Effect.map(
      EmbeddedIssuer,
      ({ tokenIssuer }) => consuming(accessTokens({ audience, issuers: () => tokenIssuer })),
    )).pipe(Layer.provide(issuer))
    : Layer.unwrap(Effect.map(
      configuredTokenIssuers(config.lifecycleIssuers),
      (issuers) => consuming(accessTokens({ audience, issuers })),
    ))

/** Handlers of the lifecycle's groups; `issuer` is the embedded one, which only DEMO asks for. */
export const lifecycleHandlers = <E, R>(
  config: AppConfig,
  publicUrl: URL,
  issuer: Layer.Layer<EmbeddedIssuer, E, R>,
) =>
  lifecycle.pipe(
    Layer.provideMerge(guard(config, issuer)),
    Layer.provide(Consumption.layer(publicUrl)),
    Layer.provide(SigningKeys.layer),
  )

/** What the role `lifecycle` does. */
export const lifecycleWorkers = (publicUrl: URL) =>
  LifecycleSigner.layer.pipe(Layer.provide(Messages.layer(publicUrl)), Layer.provide(SigningKeys.layer))
