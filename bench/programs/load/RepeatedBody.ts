/**
 * A client in a process of its own that repeats one body over keep-alive connections, after any answer. An order is a
 * line of JSON: it ends after `count` answers or after `seconds`.
 */
import { Agent, request } from "node:http"
import process from "node:process"
import { createInterface } from "node:readline"
import { say } from "../ChildProtocol.ts"

export interface Insistence {
  readonly port: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly connections: number
  readonly count?: number
  readonly seconds?: number
}

export interface Insisted {
  readonly fault: string | null
  readonly answered: number
  /** Answers by status. */
  readonly statuses: Readonly<Record<string, number>>
  /** Bytes of the longest answer's body. */
  readonly bytes: number
  /** Milliseconds from the first byte sent to the end of the last answer. */
  readonly p50: number
}

const insist = async (order: Insistence): Promise<Insisted> => {
  const { body, connections, count = Infinity, headers, method, path, port, seconds = 600 } = order
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const until = performance.now() + seconds * 1_000
  const statuses: Record<string, number> = {}
  const latencies: Array<number> = []
  let sent = 0
  let bytes = 0
  const all = { ...headers, "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const from = performance.now()
      request({ host: "127.0.0.1", port, path, method, headers: all, agent }, (response) => {
        let length = 0
        response.on("data", (chunk: Uint8Array) => length += chunk.length).on("end", () => {
          statuses[String(response.statusCode)] = (statuses[String(response.statusCode)] ?? 0) + 1
          latencies.push(performance.now() - from)
          bytes = Math.max(bytes, length)
          resolve()
        })
      }).on("error", reject).end(body)
    })
  const line = async () => {
    while (sent < count && performance.now() < until) {
      sent++
      await one()
    }
  }
  await Promise.all(Array.from({ length: connections }, line))
  agent.destroy()
  latencies.sort((a, b) => a - b)
  return { fault: null, answered: latencies.length, statuses, bytes, p50: latencies[latencies.length >> 1] ?? 0 }
}

const failed = (error: unknown): Insisted => ({ fault: String(error), answered: 0, statuses: {}, bytes: 0, p50: 0 })

createInterface({ input: process.stdin })
  .on("line", async (line) => say("insisted", { ...await insist(JSON.parse(line)).catch(failed) }))
  .on("close", () => process.exit(0))
say("ready", {})
