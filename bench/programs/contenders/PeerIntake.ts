/** The peers' intake: events from JetStream in batches of up to 500, acknowledged once their jobs are committed. */
import "../../../src/process/HideAsyncHooks.ts"
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { type Event, type Job, listeners } from "./UndiciPost.ts"
import { variable } from "../ChildProtocol.ts"

/** Calls `store` with the jobs of each batch until `events` have come. */
export const takeIn = async (events: number, store: (jobs: ReadonlyArray<Job>) => Promise<unknown>) => {
  const url = new URL(variable("NATS_URL"))
  const nc = await connect({ servers: url.host, user: url.username, pass: url.password })
  const jobOf = listeners(JSON.parse(variable("HOOKS")))
  const manager = await jetstreamManager(nc)
  await manager.consumers.add("EVENTS", {
    durable_name: "peer",
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 20_000,
  })
  const consumer = await jetstream(nc).consumers.get("EVENTS", "peer")
  for (let taken = 0; taken < events;) {
    const batch = []
    for await (const message of await consumer.fetch({ max_messages: 500, expires: 1_000 })) batch.push(message)
    if (batch.length === 0) continue
    await store(batch.map((message) => jobOf(message.json<Event>())))
    for (const message of batch) message.ack()
    taken += batch.length
  }
  await nc.flush()
}
