/**
 * Clients of Server-Sent Events that only listen, in a process of their own. An order is a line of JSON; `opened` is
 * reported when all have had their first bytes, and any later end of a stream is a fault.
 */
import { connect } from "node:net"
import process from "node:process"
import { createInterface } from "node:readline"
import { say } from "../ChildProtocol.ts"

interface Order {
  readonly port: number
  readonly path: string
  /** One a stream; "" sends none. */
  readonly keys: ReadonlyArray<string>
}

const atOnce = 64

const open = ({ keys, path, port }: Order) => {
  let [next, opened, faults] = [0, 0, 0]
  let fault: string | null = null
  const failed = (what: string) => {
    fault ??= what
    faults++
    say("fault", { fault: what })
  }
  const one = (key: string) => {
    const credential = key === "" ? "" : `Authorization: Bearer ${key}\r\n`
    const socket = connect({ port, host: "127.0.0.1" })
    let head = ""
    let there = false
    socket.on(
      "connect",
      () =>
        socket.write(
          `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: text/event-stream\r\n${credential}\r\n`,
        ),
    )
    socket.on("data", (bytes) => {
      if (there) return
      head += bytes.toString("latin1")
      if (!head.includes("retry: ")) {
        if (head.includes("\r\n\r\n") && !head.startsWith("HTTP/1.1 200 ")) {
          socket.destroy(new Error(head.slice(0, 200)))
        }
        return
      }
      there = true
      opened++
      more()
      if (opened === keys.length) say("opened", { opened, faults, fault })
    })
    socket.on("error", (error) => failed(error.message))
    socket.on("end", () => failed("ended"))
  }
  const more = () => {
    while (next < keys.length && next - opened < atOnce) one(keys[next++]!)
  }
  more()
}

createInterface({ input: process.stdin }).on("line", (line) => open(JSON.parse(line))).on(
  "close",
  () => process.exit(0),
)
say("ready", {})
