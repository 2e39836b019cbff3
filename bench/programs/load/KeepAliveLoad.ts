/**
 * A keep-alive client in a process of its own: each connection sends one fixed GET, or one fixed POST, waits for the
 * whole answer, and sends it again. An order is a line of JSON; any answer but 200 ends the process.
 */
import { connect } from "node:net"
import process from "node:process"
import { createInterface } from "node:readline"
import { say } from "../ChildProtocol.ts"

interface Order {
  readonly port: number
  readonly path: string
  /** The connections' credentials in turn. */
  readonly keys: ReadonlyArray<string>
  readonly connections: number
  readonly warmSeconds: number
  readonly seconds: number
  /** JSON that is POSTed. */
  readonly body?: string
}

const drive = ({ body, connections, keys, path, port, seconds, warmSeconds }: Order) =>
  new Promise<void>((resolve) => {
    const posted = body === undefined
      ? ""
      : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
    const requestOf = (key: string) => {
      const head = `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${key}\r\n${posted}\r\n`
      return `${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1\r\n${head}${body ?? ""}`
    }
    const from = performance.now() + warmSeconds * 1000
    const until = from + seconds * 1000
    const latencies: Array<number> = []
    let open = connections
    let answered = 0
    let fault: string | null = null
    const line = (key: string) => {
      const request = requestOf(key)
      const socket = connect({ port, host: "127.0.0.1", noDelay: true })
      let text = ""
      let sentAt = 0
      const send = () => {
        sentAt = performance.now()
        socket.write(request)
      }
      socket.setEncoding("latin1").on("connect", send).on("data", (chunk) => {
        text += chunk
        const head = text.indexOf("\r\n\r\n")
        if (head < 0) return
        const length = /content-length: *(\d+)/i.exec(text.slice(0, head))?.[1]
        if (length === undefined || !text.startsWith("HTTP/1.1 200 ")) {
          fault = text.slice(0, 300)
          return void socket.destroy()
        }
        if (text.length < head + 4 + Number(length)) return
        text = ""
        answered++
        const at = performance.now()
        if (at >= from && at < until) latencies.push(at - sentAt)
        if (at >= until) socket.destroy()
        else send()
      }).on("error", (error) => fault = error.message).on("close", () => {
        if (--open > 0) return
        latencies.sort((a, b) => a - b)
        const at = (share: number) => latencies[Math.floor(share * (latencies.length - 1))] ?? 0
        say("driven", { rate: latencies.length / seconds, p50: at(0.5), p99: at(0.99), answered, fault })
        resolve()
      })
    }
    for (let n = 0; n < connections; n++) line(keys[n % keys.length]!)
  })

createInterface({ input: process.stdin }).on("line", (line) => void drive(JSON.parse(line)))
  .on("close", () => process.exit(0))
say("ready", {})
