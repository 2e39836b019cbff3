/**
 * People who offer domains and accept them, over keep-alive connections, in a process of its own. An order is a line of
 * JSON: at the full speed of `connections`, each with one command at a time, or at a steady rate, where a command's
 * latency counts from the moment at which it was to be sent. Any answer but 200 ends the process.
 */
import "../../../src/process/HideAsyncHooks.ts"
import { Agent, request } from "node:http"
import process from "node:process"
import { createInterface } from "node:readline"
import { domainId, emailOf, keyOf, recipientOf } from "../../harness/TransferSeed.ts"
import { say } from "../ChildProtocol.ts"

export interface Order {
  readonly ports: ReadonlyArray<number>
  /** The number of the first domain, and how many. */
  readonly from: number
  readonly count: number
  readonly connections: number
  /** Commands a second; null: full speed. */
  readonly rate: number | null
}

const agent = new Agent({ keepAlive: true, maxSockets: 256 })

const post = (port: number, path: string, key: string, body: string) =>
  new Promise<string>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    }
    const sent = request({ host: "127.0.0.1", port, path, method: "POST", headers, agent }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk) => text += chunk).on("end", () => {
        if (response.statusCode === 200) resolve(text)
        else reject(new Error(`${path}: ${response.statusCode} ${text.slice(0, 300)}`))
      })
    })
    sent.on("error", reject).end(body)
  })

const portOf = ({ ports }: Order, n: number) => ports[n % ports.length]!

const initiate = async (order: Order, n: number): Promise<string> => {
  const body = JSON.stringify({ target_email: emailOf(recipientOf(n)) })
  return JSON.parse(await post(portOf(order, n), `/v1/domains/${domainId(n)}/transfer`, keyOf(n), body)).id
}

const accept = (order: Order, n: number, id: string) =>
  post(portOf(order, n), `/v1/domain-transfers/by-id/${id}/accept`, keyOf(recipientOf(n)), "{}")

const asFastAsTheyGo = async (order: Order) => {
  const { connections, count, from } = order
  let next = from
  const latencies: Array<number> = []
  const timed = async <A>(command: Promise<A>) => {
    const at = performance.now()
    const answer = await command
    latencies.push(performance.now() - at)
    return answer
  }
  const worker = async () => {
    for (let n = next++; n < from + count; n = next++) {
      const id = await timed(initiate(order, n))
      await timed(accept(order, n, id))
    }
  }
  const start = performance.now()
  await Promise.all(Array.from({ length: connections }, worker))
  return { seconds: (performance.now() - start) / 1000, latencies }
}

/** Every domain is accepted half a second after it was offered. */
const steady = async (order: Order, rate: number) => {
  const { count, from } = order
  const latencies: Array<number> = []
  const commands: Array<Promise<unknown>> = []
  const start = performance.now()
  const due = (at: number) => new Promise<number>((resolve) => setTimeout(() => resolve(at), at - performance.now()))
  for (let i = 0; i < count; i++) {
    const at = start + i * 2_000 / rate
    commands.push((async () => {
      await due(at)
      const id = await initiate(order, from + i)
      latencies.push(performance.now() - at)
      const later = Math.max(at + 500 + 1_000 / rate, performance.now())
      await due(later)
      await accept(order, from + i, id)
      latencies.push(performance.now() - later)
    })())
  }
  await Promise.all(commands)
  return { seconds: (performance.now() - start) / 1000, latencies }
}

const drive = async (order: Order) => {
  const { latencies, seconds } = await (order.rate === null ? asFastAsTheyGo(order) : steady(order, order.rate))
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor(share * (latencies.length - 1))] ?? 0
  say("driven", { rate: latencies.length / seconds, p50: at(0.5), p99: at(0.99), fault: null })
}

createInterface({ input: process.stdin }).on("line", (line) => {
  drive(JSON.parse(line)).catch((error) => say("driven", { rate: 0, p50: 0, p99: 0, fault: String(error) }))
}).on("close", () => process.exit(0))
say("ready", {})
