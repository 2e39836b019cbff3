/**
 * Hostile receivers, each tried once through the whole program: the record is true, no part of an answer is kept beyond
 * its bound, and a well-behaved receiver gets its delivery beside them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Buffer } from "node:buffer"
import type { IncomingMessage, ServerResponse } from "node:http"
import { gzipSync } from "node:zlib"
import { makeAuthority } from "../services/platform/Outbound/Certificates.ts"
import { serve, serveTcp } from "../services/platform/Outbound/LoopbackServers.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { until } from "./support/Until.ts"
import { fixture } from "./support/ProgramFixture.ts"

const hundredMegabytes = 100 * 1024 * 1024
const chunk = Buffer.alloc(64 * 1024, "x")

/** Writes for as long as the other side reads. */
const flood = (response: ServerResponse, status: number, bytes: number) => {
  let left = bytes
  response.writeHead(status, { "content-length": String(bytes) })
  const more = () => {
    while (left > 0 && !response.destroyed) {
      left -= chunk.length
      if (!response.write(chunk)) return
    }
    response.end()
  }
  response.on("drain", more)
  more()
}

const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))

interface Record {
  readonly status: "delivered" | "retrying"
  readonly response_status: number | null
  readonly error: string | null
  /** The most characters of an answer that are kept. */
  readonly kept: number
}

const failed = (response_status: number | null, error: string | null = null, kept = 64 * 1024): Record => ({
  status: "retrying",
  response_status,
  error,
  kept,
})
const delivered: Record = { status: "delivered", response_status: 200, error: null, kept: 4 * 1024 }

type Behaviour = readonly [(request: IncomingMessage, response: ServerResponse) => void, Record]

const answers = (status: number, headers = {}): Behaviour => [
  (_, response) => void response.writeHead(status, headers).end("no"),
  failed(status),
]

const behaviours = (elsewhere: string) => ({
  "/well": [(_, response) => void response.writeHead(200).end("ok"), delivered],
  "/no-headers": [() => {}, failed(null, "timeout", 0)],
  "/drip": [(_, response) => {
    response.writeHead(200)
    const drip = setInterval(() => response.write("."), 50)
    response.on("close", () => clearInterval(drip))
  }, failed(200, "timeout")],
  "/flood-200": [(_, response) => flood(response, 200, hundredMegabytes), delivered],
  "/flood-500": [(_, response) => flood(response, 500, hundredMegabytes), failed(500)],
  "/bomb-200": [(_, response) => void response.writeHead(200, { "content-encoding": "gzip" }).end(bomb), delivered],
  "/bomb-500": [
    (_, response) => void response.writeHead(500, { "content-encoding": "gzip" }).end(bomb),
    failed(500),
  ],
  "/reset": [(request) => void request.socket.resetAndDestroy(), failed(null, "reset", 0)],
  "/cut-in-body": [(_, response) => {
    response.writeHead(200, { "content-length": "1000" })
    response.write("half", () => response.socket?.destroy())
  }, failed(200, "body")],
  "/half-closed": [(request) => void request.socket.end(), failed(null, "reset", 0)],
  "/redirect": [
    (_, response) => void response.writeHead(307, { location: elsewhere }).end("there"),
    failed(307),
  ],
  "/redirect-private": answers(302, { location: "http://169.254.169.254/latest/meta-data/" }),
  "/nul": [(_, response) => void response.writeHead(500).end("a\0b\ud800"), failed(500)],
  "/gone": answers(410),
  "/slow-down": answers(429, { "retry-after": "0" }),
  "/busy": answers(503, { "retry-after": "0" }),
} satisfies { readonly [path: string]: Behaviour })

describe("hostile receivers", () => {
  it.live(
    "get one attempt, whose record has the true outcome and at most the bounded part of the body",
    () =>
      Effect.gen(function* () {
        const around = yield* fixture({
          WEBHOOKS_TIMEOUT: "5 seconds",
          WEBHOOKS_RETRY_DELAYS: Array(8).fill("1 hour").join(","),
        })
        const { api, id } = yield* around.account()
        const elsewhere = yield* serve((_, response) => void response.writeHead(200).end())
        const known: { readonly [path: string]: Behaviour } = behaviours(`http://127.0.0.1:${elsewhere.port}/`)
        const server = yield* serve((request, response) => {
          request.resume()
          request.on("end", () => known[request.url!]![0](request, response))
        })
        const stranger = yield* serve((_, response) => void response.writeHead(200).end(), {
          tls: makeAuthority("Nobody").issue("localhost"),
        })
        const impostor = yield* serve((_, response) => void response.writeHead(200).end(), {
          tls: around.tls,
        })
        const noise = yield* serveTcp((socket) => void socket.end("\x01\x02 this is not HTTP\r\n\r\n"))
        const closed = yield* Effect.scoped(serve(() => {}))

        const expected = new Map<string, Record>([
          ...Object.entries(known).map(([path, [, record]]) =>
            [`http://127.0.0.1:${server.port}${path}`, record] as const
          ),
          [`https://localhost:${stranger.port}/untrusted`, failed(null, "tls", 0)],
          [`https://127.0.0.1:${impostor.port}/another-name`, failed(null, "tls", 0)],
          [`http://127.0.0.1:${noise.port}/noise`, failed(null, "protocol", 0)],
          [`http://127.0.0.1:${closed.port}/nobody`, failed(null, "connect", 0)],
        ])
        const hooks = new Map<string, string>()
        for (const url of expected.keys()) {
          const { json, status, text } = yield* api.post("/v1/webhooks/", { url, events: ["email.sent"] })
          assert.strictEqual(status, 201, text)
          hooks.set(url, json.id)
        }
        const began = Date.now()
        yield* around.feed.events([mailEvent(id, "1", "email.sent")])

        for (const [url, { kept, ...record }] of expected) {
          const list = api.get(`/v1/webhooks/${hooks.get(url)}/deliveries`)
          const [row] = (yield* until(url, list, ({ json }) => {
            return json.items.length === 1 && json.items[0].status !== "pending"
          })).json.items
          const full = (yield* api.get(`/v1/webhook-deliveries/${row.id}`)).json
          const { error, response_status, status } = full
          assert.deepStrictEqual({ status, response_status, error }, record, url)
          assert.strictEqual(full.attempt, 1, url)
          assert.strictEqual(full.endpoint_url, url)
          assert.deepStrictEqual(
            full.attempts.map((a: typeof full) => [a.cycle, a.attempt, a.response_status, a.error]),
            [[1, 1, response_status, error]],
            url,
          )
          assert.isAtMost(full.attempts[0].duration_ms, 10_000, url)
          assert.isAtMost((full.response_body ?? "").length, kept, url)
          if (status === "retrying") assert.isAtLeast(Date.parse(full.next_retry_at), began + 3_600_000, url)
        }
        assert.strictEqual(elsewhere.requests.length, 0, "a redirect was followed")
        assert.strictEqual(server.requests.length, Object.keys(known).length)
      }).pipe(Effect.scoped),
    240_000,
  )
})
