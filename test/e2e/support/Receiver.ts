/**
 * An HTTPS server that receives webhooks: it verifies each request with the public package of Standard Webhooks and,
 * for the specification's own header, by an HMAC of its own. The test decides its answers.
 */
import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { createHmac } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Webhook } from "standardwebhooks"
import { serve } from "../../services/platform/Outbound/LoopbackServers.ts"

export interface Arrival {
  /** Of the request's URL, as the webhook has it. */
  readonly path: string
  readonly id: string
  readonly attempt: number
  readonly headers: IncomingMessage["headers"]
  readonly body: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Why it would be refused, or null. */
  readonly fault: string | null
  readonly answer: Answer
}

/** A status, or silence: the connection stays open until the sender gives up. */
export type Answer = number | "silence"

export interface Receiver {
  readonly url: (path: string) => string
  /** The signing secret of the webhook behind a path; more than one while a rotation overlaps, the newest first. */
  readonly trust: (path: string, ...secrets: ReadonlyArray<string>) => void
  readonly arrivals: ReadonlyArray<Arrival>
  readonly at: (path: string) => ReadonlyArray<Arrival>
}

const header = ({ headers }: IncomingMessage, name: string) => String(headers[name] ?? "")

/** Why a receiver that knows `secrets` would refuse this request, or null. */
export const faultOf = (
  request: Pick<IncomingMessage, "headers">,
  body: Buffer,
  secrets: ReadonlyArray<string>,
): string | null => {
  const [newest] = secrets
  if (newest === undefined) return "nobody's path"
  const said = String(request.headers["x-webhook-signature"])
  const own = createHmac("sha256", newest).update(body).digest("hex")
  if (said !== own) return `x-webhook-signature is ${said}, not ${own}`
  if (request.headers["webhook-id"] !== request.headers["x-webhook-delivery"]) return "two ids"
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
  for (const secret of secrets) {
    try {
      new Webhook(secret).verify(body, headers)
    } catch (error) {
      return `standardwebhooks: ${error}`
    }
  }
  return null
}

/**
 * `tls`: a certificate that the program trusts; `answer` is called once a request has arrived whole. `echoed` makes
 * header fields of the answer.
 */
export const receiver = Effect.fnUntraced(function* (
  tls: { readonly cert: string; readonly key: string },
  answer: (request: Omit<Arrival, "answer">) => Answer = () => 204,
  echoed: (sent: IncomingMessage["headers"]) => Readonly<Record<string, string>> = () => ({}),
) {
  const arrivals: Array<Arrival> = []
  const byPath = new Map<string, Array<Arrival>>()
  const secrets = new Map<string, ReadonlyArray<string>>()

  const take = (request: IncomingMessage, body: Buffer, response: ServerResponse) => {
    const path = request.url ?? ""
    const asked = {
      path,
      id: header(request, "webhook-id"),
      attempt: Number(header(request, "x-webhook-attempt")),
      headers: request.headers,
      body: body.toString("utf8"),
      at: Date.now(),
      fault: faultOf(request, body, secrets.get(path) ?? []),
    }
    const said = asked.fault === null ? answer(asked) : 401
    const arrival: Arrival = { ...asked, answer: said }
    arrivals.push(arrival)
    const here = byPath.get(path) ?? []
    byPath.set(path, here)
    here.push(arrival)
    if (said === "silence") return
    response.writeHead(said, { "content-type": "text/plain", ...echoed(request.headers) }).end(`answer ${said}`)
  }

  const { port } = yield* serve((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => take(request, Buffer.concat(chunks), response))
  }, { tls })

  return {
    url: (path) => `https://localhost:${port}${path}`,
    trust: (path, ...known) => void secrets.set(path, known),
    arrivals,
    at: (path) => byPath.get(path) ?? [],
  } satisfies Receiver
})
