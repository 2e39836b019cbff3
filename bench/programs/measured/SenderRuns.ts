/**
 * Senders alone: signs and POSTs deliveries from memory, by one way or another. An order is a line of JSON: which way,
 * how many in flight and in all. The answer has the time, and the CPU that this process used meanwhile.
 */
import "../../../src/process/HideAsyncHooks.ts"
import { Effect, Scope } from "effect"
import { Agent, request } from "node:http"
import process from "node:process"
import { createInterface } from "node:readline"
import * as AddressPolicy from "../../../services/platform/Outbound/AddressPolicy.ts"
import * as Connections from "../../../services/platform/Outbound/TrustedConnections.ts"
import * as Connector from "../../../services/platform/Outbound/PinnedConnector.ts"
import { HttpExchange } from "../../../services/platform/Outbound/HttpExchange.ts"
import { eventOf, type Hook } from "../../harness/Fixture.ts"
import { ownPost } from "./OwnPost.ts"
import { headersOf, type Job, listeners, post } from "../contenders/UndiciPost.ts"
import { say, variable } from "../ChildProtocol.ts"

export type Way = "own" | "undici.dispatch" | "undici.request" | "node:http"

export interface Order {
  readonly way: Way
  readonly inFlight: number
  readonly posts: number
}

const hooks: ReadonlyArray<Hook> = JSON.parse(variable("HOOKS"))
const jobOf = listeners(hooks)
const jobs = Array.from({ length: 1_000 }, (_, n) => jobOf(eventOf(hooks, n)))

const policy = AddressPolicy.make({
  allowedRanges: AddressPolicy.parseCidrs(["127.0.0.0/8"]).pipe((parsed) =>
    parsed._tag === "Success" ? parsed.success : []
  ),
  ownPorts: [],
})

/** The way in which deliveries went out before they had a sender of their own. */
const dispatch = Effect.runSync(Scope.provide(
  Effect.flatMap(
    Connector.make({
      checked: { resolve: () => Promise.reject(new Error("no names here")), policy },
      authorities: [],
      timeoutMillis: 10_000,
    }),
    Connections.make,
  ),
  Effect.runSync(Scope.make()),
))
const limits = { keepOnSuccess: 4_096, keepOnFailure: 65_536, read: 65_536 }

const dispatched = (job: Job) =>
  new Promise<void>((resolve, reject) => {
    const { origin, pathname } = new URL(job.url)
    const headers = { ...headersOf(job), "accept-encoding": "identity" }
    const exchange = new HttpExchange(
      limits,
      Date.now,
      (_, { error, status }) => status === 200 ? resolve() : reject(new Error(`answered ${status}, ${error}`)),
    )
    dispatch(origin, { origin, path: pathname, method: "POST", headers, body: job.body }, exchange)
  })

const agent = new Agent({ keepAlive: true, maxSockets: 64 })

const byNode = (job: Job) =>
  new Promise<void>((resolve, reject) => {
    const headers = { ...headersOf(job), "content-length": Buffer.byteLength(job.body) }
    request(job.url, { agent, method: "POST", headers }, (response) => {
      response.resume().on("end", resolve).on("error", reject)
    }).on("error", reject).end(job.body)
  })

const ways: Readonly<Record<Way, (job: Job) => Promise<void>>> = {
  "own": ownPost,
  "undici.dispatch": dispatched,
  "undici.request": post,
  "node:http": byNode,
}

const run = async ({ inFlight, posts, way }: Order) => {
  let next = 0
  const worker = async () => {
    while (next < posts) await ways[way](jobs[next++ % jobs.length]!)
  }
  const before = process.cpuUsage()
  const from = performance.now()
  await Promise.all(Array.from({ length: inFlight }, worker))
  const seconds = (performance.now() - from) / 1_000
  const { system, user } = process.cpuUsage(before)
  say("posted", { rate: posts / seconds, cpu: (system + user) / posts })
}

createInterface({ input: process.stdin }).on("line", (line) => void run(JSON.parse(line)))
  .on("close", () => process.exit(0))
say("ready", {})
