/**
 * A sample subscriber: follows a stream on the broker by a durable consumer, and prints each message once. See
 * docs/subscribing.md.
 */
import { jetstream } from "@nats-io/jetstream"
import process from "node:process"
import { connected, CONSUMER, STREAM } from "./Connection.ts"

const nc = await connected()

// An operator has made the consumer: it keeps the subscriber's place, also while the subscriber is away.
const consumer = await jetstream(nc).consumers.get(STREAM, CONSUMER)
const messages = await consumer.consume()
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void messages.close())

console.log(`following ${STREAM}`)
const seen = new Set<string>()
for await (const message of messages) {
  // The same for every copy of a message. `get` gives an empty text where a header is missing.
  const id = message.headers?.get("Bailiwick-Id") || message.headers?.get("Nats-Msg-Id") || String(message.seq)
  // A product keeps this in a table with a unique key, in the transaction that does its work.
  if (!seen.has(id)) console.log(message.subject, message.string())
  seen.add(id)
  // After the work: what was not acknowledged comes again.
  message.ack()
}
await nc.drain()
