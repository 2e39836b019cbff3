/**
 * A receiver without TLS: many receivers and senders share two cores here, and the tests are about deliveries, not
 * about encryption. It checks the specification's signature and keeps the requests.
 */
import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { createHmac } from "node:crypto"
import { serve } from "../../services/platform/Outbound/LoopbackServers.ts"

export interface Hit {
  readonly path: string
  /** The delivery's. */
  readonly id: string
  readonly attempt: number
  readonly body: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly answer: number
  readonly signed: boolean
}

export const target = Effect.fnUntraced(function* (answer: (hit: Omit<Hit, "answer" | "signed">) => number) {
  const hits: Array<Hit> = []
  const secrets = new Map<string, string>()
  const { port } = yield* serve((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const body = Buffer.concat(chunks)
      const path = request.url ?? ""
      const hit = {
        path,
        id: String(request.headers["webhook-id"]),
        attempt: Number(request.headers["x-webhook-attempt"]),
        body: body.toString("utf8"),
        at: Date.now(),
      }
      const signature = createHmac("sha256", secrets.get(path) ?? "").update(body).digest("hex")
      const said = answer(hit)
      hits.push({ ...hit, answer: said, signed: request.headers["x-webhook-signature"] === signature })
      response.writeHead(said).end()
    })
  })
  return {
    url: (path: string) => `http://127.0.0.1:${port}${path}`,
    trust: (path: string, secret: string) => void secrets.set(path, secret),
    hits,
    at: (path: string) => hits.filter((hit) => hit.path === path),
  }
})
