/**
 * A setup file of the run that `deno task examples` starts: writes each exchange of a request and its answer that the
 * servers of tests have to the folder EXCHANGES, a line of JSON each. It wraps Deno's engine before OnDeno.ts looks it
 * up, so neither tests nor the program know of it.
 */
import { appendFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"

export interface Exchange {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly status: number
  readonly answerHeaders: Readonly<Record<string, string>>
  readonly answer: string
}

const folder = process.env["EXCHANGES"]

/** The longest text of an exchange that is kept: an example is to be read. */
const longest = 12_000

/** So many exchanges of a path without its ids are kept for each worker and status. */
const enough = 40

const ids = /[0-9a-f]{8}-[0-9a-f-]{27}|[A-Za-z0-9_-]{20,}/g
const counts = new Map<string, number>()

const write = (exchange: Exchange) => {
  const key = `${exchange.method} ${exchange.path.replaceAll(ids, "*").replace(/\?.*/, "")} ${exchange.status}`
  const count = (counts.get(key) ?? 0) + 1
  counts.set(key, count)
  if (count > enough || exchange.answer.length + exchange.body.length > longest) return
  appendFileSync(join(folder!, `${process.pid}.jsonl`), `${JSON.stringify(exchange)}\n`)
}

/** So much of an answer that is no JSON is kept. */
const beginningOf = 400

/** The first events of a stream, which has no end. */
const beginning = async (body: ReadableStream<Uint8Array>): Promise<string> => {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ""
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += decoder.decode(part.value, { stream: true })
    if (/^data:.*\n\n/m.test(text)) break
  }
  reader.cancel().catch(() => {})
  return text
}

/**
 * The first line of each kind. A pack of evidence has up to a hundred items, and each test beside adds some: whole it is
 * longer than what is kept.
 */
const lineOfEachKind = (text: string): string => {
  const kinds = new Set<unknown>()
  return text.split("\n").filter((line) => {
    const kind = line === "" ? line : JSON.parse(line).line
    return !kinds.has(kind) && kinds.add(kind)
  }).join("\n")
}

const textOf = async (response: Response): Promise<string> => {
  const type = response.headers.get("content-type") ?? ""
  if (type.startsWith("text/event-stream") && response.body !== null) return beginning(response.body)
  const text = await response.text()
  if (type.startsWith("application/x-ndjson")) return lineOfEachKind(text)
  return /octet/.test(type) ? `${text.slice(0, beginningOf)}…` : text
}

type Handler = (request: Request, info: object) => Promise<Response>

const recorded = (handler: Handler): Handler => async (request, info) => {
  const { pathname, search } = new URL(request.url)
  if (!/^\/(v1|ready|health|\.well-known)/.test(pathname)) return handler(request, info)
  const sent = request.body === null ? Promise.resolve("") : request.clone().text().catch(() => "")
  const response = await handler(request, info)
  if (response.status >= 300 || response.status < 200) return response
  const copy = response.clone()
  Promise.all([sent, textOf(copy)]).then(([body, answer]) =>
    write({
      method: request.method,
      path: pathname + search,
      headers: Object.fromEntries(request.headers),
      body,
      status: response.status,
      answerHeaders: Object.fromEntries(response.headers),
      answer,
    })
  ).catch(() => {})
  return response
}

const namespace = Reflect.get(globalThis, "Deno")
if (folder !== undefined && namespace !== undefined) {
  const internal = namespace[namespace.internal]
  const serve = internal.serveHttpOnConnection
  internal.serveHttpOnConnection = (
    connection: unknown,
    signal: unknown,
    handler: Handler,
    onError: unknown,
    onListen: unknown,
  ) => serve(connection, signal, recorded(handler), onError, onListen)
}
