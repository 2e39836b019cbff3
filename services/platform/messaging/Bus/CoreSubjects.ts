/** Messages without a stream: only subscribers of that moment get them. */
import { Effect } from "effect"
import type { BusConnection } from "./BusConnection.ts"

/**
 * Publishes without an ack. The client throws where a message is larger than its broker takes; a caller's loop must not
 * end for that.
 */
export const publishCore = ({ live }: BusConnection, subject: string, data: string): Effect.Effect<void> =>
  Effect.try(() => {
    const nc = live()
    if (nc !== null && !nc.isClosed()) nc.publish(subject, data)
  }).pipe(Effect.catch((error) => Effect.logDebug(`${subject}: not published`, error)))

/** Calls `listener` for each message until the scope ends, over every connection that is made meanwhile. */
export const subscribeCore = (
  connection: BusConnection,
  subject: string,
  listener: (data: string, subject: string) => void,
) =>
  Effect.gen(function* () {
    const nc = yield* connection.get
    const sub = nc.subscribe(subject, {
      callback: (error, msg) => void (error ?? listener(msg.string(), msg.subject)),
    })
    yield* Effect.promise(() => Promise.race([sub.closed, nc.closed()])).pipe(
      Effect.ensuring(Effect.sync(() => sub.unsubscribe())),
    )
    yield* Effect.sleep("1 second")
  }).pipe(Effect.forever, Effect.forkScoped, Effect.asVoid)
