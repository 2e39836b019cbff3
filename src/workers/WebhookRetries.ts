/**
 * Retries deliveries: a scan announces due deliveries on the stream DELIVERIES, and any Dispatcher that fetches an
 * announcement claims as many as it has room for. It claims the rest later, in small batches and after first tries;
 * whatever is still due is announced again 30 s later.
 */
import { Effect, Layer, Result, Schema } from "effect"
import { Announcement } from "../../schemas/bus/Announcement.ts"
import { Subject } from "../../schemas/bus/Subject.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Bus, type BusMessage } from "../../services/platform/messaging/Bus.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { VersionFence } from "../../services/platform/database/VersionFence.ts"
import { faultPoint } from "../../services/platform/Failpoints.ts"
import { Deliveries } from "../../services/webhooks/Deliveries.ts"
import { dueTopic, scanEveryMillis } from "../../services/webhooks/Deliveries/DeliveryClaims.ts"
import { loop } from "./Loop.ts"

/** Avoids a busy loop while another process's scan has locked the due queue state. */
const leastSleepMillis = 10

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Announcement))

const read = (message: BusMessage) => {
  const decoded = decode(message.text)
  if (Result.isFailure(decoded)) return []
  const { account_id, delivery_ids, webhook_id } = decoded.success
  return [{ webhookId: webhook_id, accountId: account_id, deliveryIds: delivery_ids }]
}

export const WebhookRetries = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const bus = yield* Bus
    const wakeUps = yield* WakeUps
    const clocks = yield* ClockHealth
    const fence = yield* VersionFence
    const deliveries = yield* Deliveries

    const mayClaim = Effect.gen(function* () {
      return (yield* clocks.read).healthy && (yield* fence.refusal) === null
    })
    yield* Effect.forkScoped(deliveries.claiming(mayClaim))
    yield* bus.consume({
      stream: "DELIVERIES",
      durable: "dispatcher",
      ackWaitMillis: 30_000,
      maxAckPending: 2_000,
      batch: 20,
      concurrency: 1,
      handler: Effect.fnUntraced(function* (messages) {
        yield* deliveries.dispatch(messages.flatMap(read))
        for (const message of messages) message.ack()
        yield* faultPoint("dispatch.acknowledged")
      }),
    })

    // Deliveries whose announcement fails are claimed here, so that retries do not depend on the broker.
    const scan = Effect.gen(function* () {
      if (!(yield* clocks.read).healthy) return false
      const due = yield* deliveries.scan
      if (due.length === 0) return false
      yield* faultPoint("scan.committed")
      if ((yield* bus.status) !== "ok") return yield* Effect.as(deliveries.dispatch(due), false)
      const outcomes = yield* bus.publishAll(due.map(({ accountId, deliveryIds, webhookId }) => ({
        subject: `webhooks.v1.retry.${Subject.token(webhookId)}`,
        data: JSON.stringify({ webhook_id: webhookId, account_id: accountId, delivery_ids: deliveryIds }),
      })))
      yield* faultPoint("scan.announced")
      yield* deliveries.dispatch(due.filter((_, i) => Result.isFailure(outcomes[i]!)))
      return false
    })
    const waiter = yield* wakeUps.waiter(dueTopic)
    const wait = Effect.fnUntraced(function* (max: number) {
      const { healthy } = yield* clocks.read
      const millis = healthy ? yield* deliveries.untilDue(max).pipe(Effect.catch(() => Effect.succeed(max))) : max
      yield* waiter.wait(Math.max(leastSleepMillis, millis))
    })
    yield* loop("due deliveries", { wait }, scanEveryMillis, scan)
  })),
}
