/**
 * Publishes events at a steady rate and receives their webhooks, in one process so that one clock measures both. An
 * order is a line of JSON on standard input; its latencies, from just before the publication to the end of the request,
 * come back sorted, with the milliseconds from the first publication to the last arrival.
 */
import "../../../src/process/HideAsyncHooks.ts"
import { connect } from "@nats-io/transport-node"
import { createServer } from "node:http"
import process from "node:process"
import { createInterface } from "node:readline"
import { eventOf, type Hook, subjectOf } from "../../harness/Fixture.ts"
import { listenBelow, say } from "../ChildProtocol.ts"

interface Order {
  readonly natsUrl: string
  readonly hooks: ReadonlyArray<Hook>
  /** The number of the first event, new in each order. */
  readonly from: number
  readonly count: number
  /** Events a second. */
  readonly rate: number
}

let publishedAt = new Map<string, number>()
let latencies: Array<number> = []
let complete = () => {}

const arrived = (text: string) => {
  const at = performance.now()
  const { email_id } = JSON.parse(text)
  const since = publishedAt.get(email_id)
  if (since === undefined) return
  publishedAt.delete(email_id)
  latencies.push(at - since)
  if (publishedAt.size === 0) complete()
}

const server = () =>
  createServer((request, response) => {
    let text = ""
    request.setEncoding("utf8").on("data", (chunk) => text += chunk).once("end", () => {
      arrived(text)
      response.writeHead(200, { "content-type": "text/plain", "content-length": "2" })
      response.end("ok")
    })
  })

const play = async ({ count, from, hooks, natsUrl, rate }: Order) => {
  const url = new URL(natsUrl)
  const nc = await connect({ servers: url.host, user: url.username, pass: url.password })
  const events = Array.from({ length: count }, (_, n) => eventOf(hooks, from + n))
  const messages = events.map((event) => ({
    id: event.email_id,
    subject: subjectOf(event.event),
    data: JSON.stringify(event),
  }))
  latencies = []
  publishedAt = new Map()
  const done = new Promise<void>((resolve) => complete = () => latencies.length === count ? resolve() : undefined)
  const acks: Array<Promise<unknown>> = []
  const start = performance.now()
  let sent = 0
  await new Promise<void>((resolve) => {
    const tick = setInterval(() => {
      const due = Math.min(count, Math.floor((performance.now() - start) * rate / 1000) + 1)
      for (; sent < due; sent++) {
        const { data, id, subject } = messages[sent]!
        publishedAt.set(id, performance.now())
        acks.push(nc.request(subject, data, { timeout: 10_000 }))
      }
      if (sent < count) return
      clearInterval(tick)
      resolve()
    }, 1)
  })
  await Promise.all(acks)
  await done
  const millis = performance.now() - start
  await nc.close()
  say("played", { millis, latencies: latencies.sort((a, b) => a - b).map((ms) => Number(ms.toFixed(2))) })
}

const ports = await Promise.all(Array.from({ length: 4 }, () => listenBelow(server())))
createInterface({ input: process.stdin }).on("line", (line) => void play(JSON.parse(line)))
  .on("close", () => process.exit(0))
say("ready", { ports })
