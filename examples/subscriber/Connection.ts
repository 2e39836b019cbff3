/** The broker, the stream and the durable consumer that the environment names. */
import { connect } from "@nats-io/transport-node"
import process from "node:process"

const { NATS_PASSWORD, NATS_TOKEN, NATS_URL = "nats://127.0.0.1:4222" } = process.env

export const { CONSUMER = "transfers", STREAM = "TRANSFERS" } = process.env

// A token or a user may stand in the address, as a running program's `runtime.json` has it; the library ignores it there.
const { host, password, username } = new URL(NATS_URL.includes("://") ? NATS_URL : `nats://${NATS_URL}`)
const token = NATS_TOKEN ?? (password === "" && username !== "" ? username : undefined)
// As `cli nats permissions` makes them, a user has the name of its consumer.
const user = process.env["NATS_USER"] ?? (password === "" ? CONSUMER : decodeURIComponent(username))
const pass = NATS_PASSWORD ?? decodeURIComponent(password)

export const connected = () =>
  connect({
    servers: host,
    ...(token === undefined ? { user, pass } : { token: decodeURIComponent(token) }),
    inboxPrefix: `_INBOX_${user}`,
    maxReconnectAttempts: -1,
  })
