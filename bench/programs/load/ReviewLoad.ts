/**
 * A day's decisions of institutions at a steady rate, over keep-alive connections in a process of its own: of ten
 * writes three propose a review, two approve and one revokes one, two ask for Access and two make a person. Each has an
 * idempotency key. The time of each is fixed beforehand, and its latency counts from that moment.
 *
 * An order is a line of JSON; any answer but the documented success ends the process.
 */
import "../../../src/process/HideAsyncHooks.ts"
import { randomUUID } from "node:crypto"
import { Agent, request, type RequestOptions } from "node:http"
import process from "node:process"
import { createInterface } from "node:readline"
import * as Fixture from "../../harness/IdentityFixture.ts"
import { signer } from "./SignTokens.ts"
import { say, variable } from "../ChildProtocol.ts"

export interface Order {
  readonly port: number
  /** A second. */
  readonly rate: number
  readonly count: number
}

export interface Decided {
  readonly fault: string | null
  /** Answers a second, until the last. */
  readonly rate: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const sign = await signer(JSON.parse(variable("KEY")))
const tokens = new Map<string, Promise<string>>()
const tokenOf = (person: string) => {
  const token = tokens.get(person) ?? sign(person)
  tokens.set(person, token)
  return token
}

/** Sends a request and gives the answer's text; `fresh` asks for a connection of its own. */
const exchange = (options: RequestOptions, body: string, status: number, fresh: boolean) =>
  new Promise<string>((resolve, reject) => {
    const sent = request({ ...options, method: "POST", agent: fresh ? false : agent }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk) => text += chunk).on("end", () => {
        if (response.statusCode === status) resolve(text)
        else reject(new Error(`${options.path}: ${response.statusCode} ${text.slice(0, 300)}`))
      })
    })
    // A server may end a kept connection while a request is on its way. The idempotency key makes it safe to repeat.
    const repeats = () => !fresh && sent.reusedSocket
    sent.on("error", (error) => repeats() ? resolve(exchange(options, body, status, true)) : reject(error)).end(body)
  })

const post = async (port: number, person: string, path: string, fields: object, status: number) => {
  const body = JSON.stringify({ ...fields, reason: "as the bench has it" })
  const headers = {
    authorization: `Bearer ${await tokenOf(person)}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "idempotency-key": randomUUID(),
  }
  return await exchange({ host: "127.0.0.1", port, path, headers }, body, status, false)
}

interface Review {
  readonly id: string
  readonly n: number
}

/** Objects that wait for their next decision; a decision that comes too early waits for one. */
const queue = () => {
  const held: Array<Review> = []
  const waiting: Array<(review: Review) => void> = []
  return {
    put: (review: Review) => {
      const taker = waiting.shift()
      if (taker === undefined) held.push(review)
      else taker(review)
    },
    take: () =>
      new Promise<Review>((resolve) => {
        const review = held.shift()
        if (review === undefined) waiting.push(resolve)
        else resolve(review)
      }),
  }
}
const proposed = queue()
const approved = queue()
let accesses = 0
let askers = 0

const reviewsOf = (n: number) => `/v1/institutions/${Fixture.institutionId(n)}/access-grant-reviews`

const propose = async (port: number) => {
  const n = accesses++
  const fields = { access_id: Fixture.accessId(n), access_version: 1 }
  const { review_id } = JSON.parse(await post(port, Fixture.sponsor(n), reviewsOf(n), fields, 201))
  proposed.put({ id: review_id, n })
}
const approve = async (port: number) => {
  const { id, n } = await proposed.take()
  await post(port, Fixture.administrator(n), `${reviewsOf(n)}/${id}/approve`, {}, 200)
  approved.put({ id, n })
}
const revoke = async (port: number) => {
  const { id, n } = await approved.take()
  await post(port, Fixture.administrator(n), `${reviewsOf(n)}/${id}/revoke`, {}, 200)
}
const ask = async (port: number) => {
  const n = askers++
  const fields = { institution_id: Fixture.institutionId(n + 1), project_id: Fixture.projectId(n + 1) }
  await post(port, Fixture.user(n), "/v1/me/access-requests", fields, 201)
}
const make = async (port: number) => {
  const fields = { issuer: Fixture.issuer, subject: randomUUID() }
  await post(port, Fixture.operator(Math.floor(Math.random() * Fixture.operators)), "/v1/people", fields, 201)
}

const mix = [propose, ask, approve, make, propose, revoke, propose, ask, approve, make] as const

const decide = async ({ count, port, rate }: Order): Promise<Decided> => {
  const latencies: Array<number> = []
  const sent: Array<Promise<void>> = []
  const start = performance.now()
  const one = async (n: number) => {
    await mix[n % mix.length]!(port)
    latencies.push(performance.now() - start - n * 1_000 / rate)
  }
  await new Promise<void>((resolve) => {
    const tick = setInterval(() => {
      const due = Math.min(count, Math.floor((performance.now() - start) * rate / 1_000) + 1)
      while (sent.length < due) sent.push(one(sent.length))
      if (sent.length < count) return
      clearInterval(tick)
      resolve()
    }, 1)
  })
  await Promise.all(sent)
  const seconds = (performance.now() - start) / 1_000
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor(share * (latencies.length - 1))] ?? 0
  return { fault: null, rate: count / seconds, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

const failed = (error: unknown): Decided => ({ fault: String(error), rate: 0, p50: 0, p95: 0, p99: 0 })

createInterface({ input: process.stdin })
  .on("line", async (line) => say("decided", { ...await decide(JSON.parse(line)).catch(failed) }))
  .on("close", () => process.exit(0))
// Signing in is not part of the measurement.
for (let n = 0; n < Fixture.institutions * Fixture.seats; n++) {
  await Promise.all([tokenOf(Fixture.sponsor(n)), tokenOf(Fixture.administrator(n))])
}
say("ready", {})
