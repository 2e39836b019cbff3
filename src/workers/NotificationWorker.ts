/**
 * Takes notifications of other publishers from the bus and acknowledges them once PostgreSQL has stored or rejected
 * them.
 */
import { Effect, Layer } from "effect"
import { notificationSubject } from "../../schemas/bus/NotificationMessage.ts"
import { accountsTopic } from "../../services/accounts/MailKinds.ts"
import { NotificationIntake } from "../../services/notifications/NotificationIntake.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../services/platform/messaging/Bus.ts"
import { loop } from "./Loop.ts"

export const NotificationIntakeWorker = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const bus = yield* Bus
    const wakeUps = yield* WakeUps
    const intake = yield* NotificationIntake

    yield* bus.consume({
      stream: "EVENTS",
      durable: "notifications",
      filter: notificationSubject,
      ackWaitMillis: 60_000,
      maxAckPending: 5_000,
      batch: 200,
      concurrency: 1,
      handler: Effect.fnUntraced(function* (messages) {
        yield* intake.take(messages)
        for (const message of messages) message.ack()
      }),
    })
    const waiter = yield* wakeUps.waiter(accountsTopic)
    yield* loop("waiting notifications", waiter, 10_000, Effect.andThen(intake.expire, intake.resume))
  })),
}
