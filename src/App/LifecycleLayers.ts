/** Lifecycle messages: signed, published, and read by services. */
import { Effect, Layer } from "effect"
import { CursorApi } from "../../services/lifecycle/CursorApi.ts"
import { KeyRotation } from "../../services/lifecycle/KeyRotation.ts"
import { EventSigner } from "../../services/lifecycle/EventSigner.ts"
import { Recovery } from "../../services/recovery/Recovery.ts"
import type { Consuming } from "../../schemas/api/LifecycleApi.ts"
import { DecisionLog } from "../../services/transparency/DecisionLog.ts"
import { gaugedLog } from "../../services/transparency/LogGauges.ts"
import { Witnesses } from "../../services/transparency/Witnesses.ts"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { StreamDelivery } from "../../services/event-streams/StreamDelivery.ts"
import { StreamPush } from "../../services/event-streams/StreamPush.ts"
import { Streams } from "../../services/event-streams/Streams.ts"
import { accessTokens, configuredTokenIssuers, type TokenIssuers } from "../../services/people/AccessTokens.ts"
import type { Outbound } from "../../services/platform/Outbound.ts"
import type { RateLimits } from "../../services/platform/security/RateLimits.ts"
import type { AppConfig } from "../AppConfig.ts"
import { EmbeddedIssuer } from "../embedded/EmbeddedIssuer.ts"
import { PolicyReviews } from "../../services/requests/PolicyReviews.ts"
import { Rollouts } from "../../services/projects/Rollouts.ts"
import { consuming, lifecycle } from "../http/handlers/LifecycleHandlers.ts"
import type { Rates } from "../http/auth/Limits.ts"
import { streamPoll } from "../http/handlers/StreamPollHandlers.ts"
import { streams } from "../http/handlers/StreamsHandlers.ts"
import { logPath } from "../http/pages/LogRoutes.ts"
import { DecisionLogWorker } from "../workers/DecisionLogWorker.ts"
import { LifecycleKeys } from "../workers/LifecycleKeys.ts"
import { LifecyclePush } from "../workers/LifecyclePush.ts"
import { LifecycleSigner } from "../workers/LifecycleSigner.ts"
import { LogWitnessWorker } from "../workers/LogWitnessWorker.ts"
import { RecoveryWorker } from "../workers/RecoveryWorker.ts"

/** The audience of a consumer's tokens. */
const audience = "service-lifecycle"

const consumingBy = <R>(issuers: Effect.Effect<TokenIssuers, never, R>, rates: Rates) =>
  Layer.unwrap(issuers.pipe(
    Effect.flatMap((issuers) => accessTokens({ audience, issuers })),
    Effect.map((tokens) => consuming(tokens, rates)),
  ))

/** Authenticates consumers; with DEMO the embedded issuer's key is accepted for every issuer. */
const guard = <E, R>(
  config: AppConfig,
  issuer: Layer.Layer<EmbeddedIssuer, E, R>,
  rates: Rates,
): Layer.Layer<Consuming, E, R | Outbound | RateLimits> =>
  config.demo
    ? consumingBy(Effect.map(EmbeddedIssuer, ({ tokenIssuer }) => () => tokenIssuer), rates).pipe(Layer.provide(issuer))
    : consumingBy(configuredTokenIssuers(config.lifecycleIssuers), rates)

/** Handlers of the lifecycle's groups. `issuer` is the embedded issuer, built only with DEMO. */
export const lifecycleHandlers = <E, R>(
  config: AppConfig,
  publicUrl: URL,
  issuer: Layer.Layer<EmbeddedIssuer, E, R>,
  rates: Rates,
) =>
  Layer.mergeAll(lifecycle, streams(publicUrl), streamPoll).pipe(
    Layer.provideMerge(guard(config, issuer, rates)),
    Layer.provide(CursorApi.layer(publicUrl)),
    Layer.provide([Streams.layer(publicUrl), StreamDelivery.layer(publicUrl)]),
    Layer.provide(SigningKeys.layer),
  )

/** Reopens an installation that is held after a restore (docs/recovery.md). */
const recovery = RecoveryWorker.layer.pipe(
  Layer.provide(Recovery.layer),
  Layer.provide(Rollouts.layer),
  Layer.provide(PolicyReviews.layer),
)

/** Writes the transparency log, which names itself by the address under which it is served. */
const decisionLog = (publicUrl: URL) =>
  Layer.merge(DecisionLogWorker.layer, Layer.effectDiscard(gaugedLog)).pipe(
    Layer.provide(DecisionLog.layer(`${publicUrl.host}${logPath}`)),
  )

/** Asks the log's witnesses, where there are any. */
const logWitnesses = ({ logWitnesses }: AppConfig) =>
  logWitnesses.length === 0 ? Layer.empty : LogWitnessWorker.layer.pipe(Layer.provide(Witnesses.layer(logWitnesses)))

/** The workers of the role `lifecycle`. */
export const lifecycleWorkers = (config: AppConfig, publicUrl: URL) =>
  Layer.mergeAll(
    ...[LifecycleSigner.layer, LifecyclePush.layer, LifecycleKeys.layer],
    ...[recovery, decisionLog(publicUrl), logWitnesses(config)],
  ).pipe(
    Layer.provide(EventSigner.layer(publicUrl)),
    Layer.provide(StreamPush.layer(publicUrl)),
    Layer.provide(KeyRotation.layer({ deadlineMillis: config.keyTransitionDeadline })),
    Layer.provide(SigningKeys.layer),
  )
