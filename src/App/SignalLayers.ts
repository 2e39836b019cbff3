/** Security events of identity providers, pushed and polled. */
import { Layer } from "effect"
import { gaugedPolls } from "../../services/signals/SignalGauges.ts"
import { SignalPolling } from "../../services/signals/SignalPolling.ts"
import { SignalReceiver } from "../../services/signals/SignalReceiver.ts"
import type { AppConfig } from "../AppConfig.ts"
import * as SignalRoutes from "../http/pages/SignalRoutes.ts"
import { SignalPoller } from "../workers/SignalPoller.ts"

/** The route of pushes, where a transmitter may push. */
export const signalRoutes = ({ signalTransmitters: transmitters }: AppConfig) =>
  transmitters.some(({ pushToken }) => pushToken !== null)
    ? SignalRoutes.layer(transmitters).pipe(Layer.provide(SignalReceiver.layer(transmitters)))
    : Layer.empty

/** The worker of polls, where a transmitter is polled. */
export const signalPolls = ({ signalTransmitters: transmitters }: AppConfig) =>
  transmitters.some(({ poll }) => poll !== null)
    ? Layer.merge(
      Layer.effectDiscard(gaugedPolls(transmitters.flatMap(({ issuer, poll }) => poll === null ? [] : [issuer]))),
      SignalPoller.layer.pipe(
        Layer.provide(SignalPolling.layer(transmitters)),
        Layer.provide(SignalReceiver.layer(transmitters)),
      ),
    )
    : Layer.empty
