/**
 * Takes email events from the bus and acknowledges them once PostgreSQL has them. While their deliveries find no room,
 * the next batch waits on the bus. The wait is short where endpoints are slow, so that they do not hold up the events
 * of others.
 */
import { Effect, Layer } from "effect"
import { accountsTopic } from "../../services/accounts/MailKinds.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../services/platform/messaging/Bus.ts"
import { faultPoint } from "../../services/platform/Failpoints.ts"
import { Deliveries } from "../../services/webhooks/Deliveries.ts"
import { EventIntake, eventSubjects } from "../../services/webhooks/EventIntake.ts"
import { loop } from "./Loop.ts"

const batch = 500
const longestPauseMillis = 50

export const EmailEventIntake = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const bus = yield* Bus
    const wakeUps = yield* WakeUps
    const intake = yield* EventIntake
    const deliveries = yield* Deliveries

    yield* bus.consume({
      stream: "EVENTS",
      durable: "mail-events",
      filter: eventSubjects,
      ackWaitMillis: 20_000,
      maxAckPending: 20_000,
      batch,
      concurrency: 1,
      handler: Effect.fnUntraced(function* (messages) {
        yield* deliveries.whileFull(longestPauseMillis)
        yield* intake.take(messages)
        for (const message of messages) message.ack()
        yield* faultPoint("intake.acknowledged")
      }),
    })
    const waiter = yield* wakeUps.waiter(accountsTopic)
    yield* loop("waiting events", waiter, 10_000, Effect.andThen(intake.expire, intake.resume))
  })),
}
