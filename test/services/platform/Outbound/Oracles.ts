/** Gives the same response to three parsers, ours, undici's and node:http's, over an in-memory wire. */
import { Buffer } from "node:buffer"
import { Agent, request } from "node:http"
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import { Client } from "undici"
import { type ExchangeOutcome, HttpExchange } from "../../../../services/platform/Outbound/HttpExchange.ts"
import { HttpConnection } from "../../../../services/platform/Outbound/HttpConnection.ts"
import { Origin, WaitingRequest } from "../../../../services/platform/Outbound/Origin.ts"
import type { Script } from "./GeneratedAnswers.ts"

/** A parser's result for a response; `waits`: undecided. */
export interface Verdict {
  readonly status: number | null
  readonly error: "reset" | "protocol" | "body" | "waits" | null
  readonly body: string
  /** The connection would carry another request. */
  readonly kept: boolean
}

export type Reader = (script: Script) => Promise<Verdict>

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** The receiver's end of the wire: it plays its script once a request has arrived. */
class Wire extends Duplex {
  readonly #script: Script
  #played = false
  played: Promise<void>
  #done: () => void

  constructor(script: Script) {
    super({ autoDestroy: true, allowHalfOpen: false })
    this.#script = script
    const { promise, resolve } = Promise.withResolvers<void>()
    this.played = promise
    this.#done = resolve
  }

  // Members that the parsers need of a socket and a stream does not have.
  setKeepAlive = () => this
  setNoDelay = () => this
  setTimeout = () => this
  ref = () => this
  unref = () => this

  override _read(): void {}

  override _write(_chunk: Buffer, _encoding: string, callback: () => void): void {
    callback()
    if (this.#played) return
    this.#played = true
    void this.#play()
  }

  async #play(): Promise<void> {
    await turn()
    for (const part of this.#script.parts) {
      if (this.destroyed) break
      this.push(part)
      await turn()
    }
    if (!this.destroyed && this.#script.ending === "ends") this.push(null)
    if (!this.destroyed && this.#script.ending === "resets") {
      this.destroy(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", syscall: "read" }))
    }
    for (let n = 0; n < 6; n++) await turn()
    this.#done()
  }
}

const limits = { keepOnSuccess: 10_000, keepOnFailure: 10_000, read: 100_000 }

const verdictOf = (outcome: ExchangeOutcome | null, kept: boolean): Verdict => ({
  status: outcome?.status ?? null,
  error: outcome === null ? "waits" : outcome.error as Verdict["error"],
  body: Buffer.from(outcome?.body ?? []).toString("latin1"),
  kept,
})

export const ours: Reader = async (script) => {
  const wire = new Wire(script)
  let outcome: ExchangeOutcome | null = null
  let released = false
  const origin = new Origin("http://h.test")
  const owner = { released: () => released = true, closed: () => released = false }
  const connection = new HttpConnection(origin, 0, wire as unknown as Socket, owner)
  const exchange = new HttpExchange(limits, () => 0, (_, ended) => outcome = ended)
  connection.send(new WaitingRequest(origin, "POST", exchange, 0))
  await wire.played
  const offered = connection.offeredMillis
  const verdict = verdictOf(outcome, released && (offered === null || offered > 2_000))
  connection.close()
  return verdict
}

export const undici: Reader = async (script) => {
  const wire = new Wire(script)
  let outcome: ExchangeOutcome | null = null
  const client = new Client("http://h.test", {
    connect: (_, callback) => queueMicrotask(() => callback(null, wire as unknown as Socket)),
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 16_384,
  })
  const exchange = new HttpExchange(limits, () => 0, (_, ended) => outcome = ended)
  client.dispatch({ path: "/", method: "POST", body: "x" }, exchange)
  await wire.played
  const verdict = verdictOf(outcome, outcome !== null && !wire.destroyed && !wire.readableEnded)
  void client.destroy().catch(() => {})
  return verdict
}

export const nodeHttp: Reader = async (script) => {
  const wire = new Wire(script)
  const agent = new Agent({ keepAlive: true })
  agent.createConnection = () => wire
  const found = { status: null as number | null, error: "waits" as Verdict["error"], body: "" }
  let over = false
  const end = (error: Verdict["error"]) => {
    if (!over) found.error = error
    over = true
  }
  const asked = request(
    { agent, method: "POST", path: "/", host: "h.test" },
    (response) => {
      found.status = response.statusCode ?? null
      response.on("data", (chunk: Buffer) => found.body += chunk.toString("latin1"))
      response.on("end", () => end(response.complete ? null : "body"))
      response.on("error", () => end("body"))
      response.on("aborted", () => end("body"))
    },
  )
  asked.on(
    "error",
    (error: NodeJS.ErrnoException) =>
      end(found.status !== null ? "body" : error.code?.startsWith("HPE_") ? "protocol" : "reset"),
  )
  asked.on("upgrade", () => end("reset"))
  asked.end("x")
  await wire.played
  const verdict = { ...found, kept: found.error === null && !wire.destroyed && !wire.readableEnded }
  asked.destroy()
  agent.destroy()
  wire.destroy()
  return verdict
}
