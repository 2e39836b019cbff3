/**
 * The receivers of the bench, in a process of their own: plain node:http servers that read each request and answer 200.
 * `expect N` begins a count; the line `done` follows when N different deliveries (by their `webhook-id`) have arrived,
 * and `count` is answered with the number of requests since, and of different deliveries.
 */
import { createServer } from "node:http"
import process from "node:process"
import { createInterface } from "node:readline"
import { listenBelow, now, say } from "../ChildProtocol.ts"

/** The time before this arrival is spent on starting and compiling; the rate after it is shown beside the whole. */
const warm = 5_000
/** The rate up to this share of the deliveries is the steady one; the rest is the tail. */
const most = 0.95

let expected = 0
let requests = 0
let first = 0
let warmAt = 0
let mostAt = 0
let seen = new Set<string>()

const arrived = (id: string) => {
  const at = now()
  requests++
  if (first === 0) first = at
  seen.add(id)
  if (seen.size === warm && warmAt === 0) {
    warmAt = at
    say("warm", { warm })
  }
  if (mostAt === 0 && seen.size >= most * expected) mostAt = at
  if (seen.size !== expected) return
  say("done", { first, warmAt, mostAt, last: at })
  expected = 0
}

/** Longer than a contender pauses: node:http sends on a connection that the server ends at this moment, and fails. */
const keepAliveTimeout = 120_000

const server = () =>
  createServer({ keepAliveTimeout }, (request, response) => {
    request.resume()
    request.once("end", () => {
      response.writeHead(200, { "content-type": "text/plain", "content-length": "2" })
      response.end("ok")
      arrived(String(request.headers["webhook-id"]))
    })
  })

const ports = await Promise.all(
  Array.from({ length: Number(process.env["SINK_PORTS"] ?? 4) }, () => listenBelow(server())),
)

createInterface({ input: process.stdin }).on("line", (line) => {
  if (line === "count") return say("counted", { requests, unique: seen.size })
  expected = Number(line.split(" ")[1])
  requests =
    first =
    warmAt =
    mostAt =
      0
  seen = new Set()
  say("expecting", {})
}).on("close", () => process.exit(0))
say("ready", { ports })
