/** The least that could stand between JetStream and a receiver: sign, POST, acknowledge, and record nothing. */
import "../../../src/process/HideAsyncHooks.ts"
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { type Event, listeners, post } from "./UndiciPost.ts"
import { say, variable } from "../ChildProtocol.ts"

const url = new URL(variable("NATS_URL"))
const nc = await connect({ servers: url.host, user: url.username, pass: url.password })
const jobOf = listeners(JSON.parse(variable("HOOKS")))
const manager = await jetstreamManager(nc)
await manager.consumers.add("EVENTS", { durable_name: "peer", ack_policy: AckPolicy.Explicit, max_ack_pending: 20_000 })
const consumer = await jetstream(nc).consumers.get("EVENTS", "peer")
const messages = await consumer.consume({ max_messages: 500 })
say("forwarding", {})
for await (const message of messages) void post(jobOf(message.json<Event>())).then(() => message.ack())
