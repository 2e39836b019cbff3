/** For the operator, once: makes the durable consumer that main.ts reads. It keeps all that the stream has. */
import { AckPolicy, DeliverPolicy, jetstreamManager } from "@nats-io/jetstream"
import { connected, CONSUMER, STREAM } from "./Connection.ts"

const nc = await connected()
await (await jetstreamManager(nc)).consumers.add(STREAM, {
  durable_name: CONSUMER,
  ack_policy: AckPolicy.Explicit,
  deliver_policy: DeliverPolicy.All,
})
console.log(`the consumer ${CONSUMER} of ${STREAM} is there`)
await nc.drain()
