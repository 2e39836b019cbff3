/**
 * Retries: a scan announces what is due on the stream DELIVERIES, and whichever Dispatcher fetches an announcement
 * claims what it has room for. What it had no room for it claims when it has, in small bites and after first tries; in
 * any case it is announced again 30 s later.
 */
import { Effect, Layer, Result, Schema } from "effect"
import { Announcement } from "../../schemas/bus/Announcement.ts"
import { Subject } from "../../schemas/bus/Subject.ts"
import { Bells } from "../../services/platform/messaging/Bells.ts"
import { Bus, type BusMessage } from "../../services/platform/messaging/Bus.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { faultPoint } from "../../services/platform/Faults.ts"
import { Deliveries, dueTopic, scanEveryMillis } from "../../services/webhooks/Deliveries.ts"
import { every, loop } from "./Loop.ts"

/** Another process's scan may hold the lane that is due. */
const leastSleepMillis = 10

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Announcement))

const read = (message: BusMessage) => {
  const decoded = decode(message.text)
  if (Result.isFailure(decoded)) return []
  const { account_id, delivery_ids, webhook_id } = decoded.success
  return [{ webhookId: webhook_id, accountId: account_id, deliveryIds: delivery_ids }]
}

export const Dispatcher = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const bus = yield* Bus
    const bells = yield* Bells
    const clocks = yield* ClockHealth
    const deliveries = yield* Deliveries

    yield* Effect.forkScoped(deliveries.settling)
    yield* Effect.forkScoped(deliveries.feeding(Effect.map(clocks.read, ({ healthy }) => healthy)))
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

    // What the broker does not take is claimed here: retries do not wait for it.
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
    const bell = yield* bells.bell(dueTopic)
    const wait = Effect.fnUntraced(function* (max: number) {
      const { healthy } = yield* clocks.read
      const millis = healthy ? yield* deliveries.untilDue(max).pipe(Effect.catch(() => Effect.succeed(max))) : max
      yield* bell.wait(Math.max(leastSleepMillis, millis))
    })
    yield* loop("due deliveries", { wait }, scanEveryMillis, scan)
    yield* every("expired claims", 5_000, deliveries.free)
  })),
}
