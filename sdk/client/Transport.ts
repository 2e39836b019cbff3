/** Sends requests, and repeats those that may be repeated. */
import { Problem, problemOf } from "./ClientProblem.ts"
import { keyedPaths } from "./KeyedPaths.ts"

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

/** The options of one call. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** The key of a write: the same for every try of one intention. By default one is made for each call. */
  readonly idempotencyKey?: string | undefined
}

/** How a client reaches the API. */
export interface ClientOptions {
  /** The origin of the installation; in a browser, by default, the page's own. */
  readonly url?: string
  /** An API key or an access token, or a function that gives the current one; without it a browser sends its cookie. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>)
  /** How often a request is repeated at most; 3 by default. */
  readonly retries?: number
  /** The Fetch of another library. */
  readonly fetch?: typeof globalThis.fetch
}

export interface AnyRequest extends CallOptions {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: unknown
}

/** Sends one request once, and reads a successful answer; fails with `Problem`, or as its signal says. */
export type Send = <Answer>(
  method: Method,
  path: string,
  request: AnyRequest,
  read: (response: Response) => Promise<Answer>,
) => Promise<Answer>

/** A longer pause is the caller's decision. */
const longestSeconds = 60

/** Waits; fails at once with the signal's reason when it is aborted. */
export const pause = (millis: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise<void>((done, fail) => {
    const over = () => {
      clearTimeout(timer)
      fail(signal!.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", over)
      done()
    }, millis)
    if (signal?.aborted) over()
    signal?.addEventListener("abort", over)
  })

/** Full jitter on an exponential bound of half a second to eight. What Retry-After asks for comes before it. */
export const pauseOf = (tries: number, retryAfter = 0): number =>
  retryAfter * 1000 + Math.random() * Math.min(500 * 2 ** tries, 8000)

/** Whether the same request may be answered otherwise later. */
export const passes = ({ retryAfter, status }: Problem): boolean =>
  (retryAfter ?? 0) <= longestSeconds &&
  ([0, 429, 502, 503, 504].includes(status) || status === 409 && retryAfter !== undefined)

/** Retry-After in seconds; its other form, a date, is not what this API sends. */
const retryAfterOf = ({ headers }: Response) => {
  const said = headers.get("retry-after") ?? ""
  return /^\d+$/.test(said) ? Number(said) : undefined
}

const refused = async (response: Response) => {
  const { status } = response
  const body = await response.json().catch(() => null) ?? {}
  const code = typeof body.code === "string" ? body.code : status === 422 ? "validation_error" : "unexpected_answer"
  return problemOf(code, status, body, retryAfterOf(response))
}

const addressOf = (url: string, path: string, { params, query }: AnyRequest) => {
  const asked = new URLSearchParams(
    Object.entries(query ?? {}).filter(([, value]) => value !== undefined) as Array<[string, string]>,
  ).toString()
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    const value = params?.[name] ?? ""
    // Such a segment would be another path.
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`${name} is "${value}"`)
    return encodeURIComponent(value)
  })
  return url.replace(/\/$/, "") + filled + (asked && `?${asked}`)
}

export const senderOf =
  ({ fetch = globalThis.fetch, token, url = "" }: ClientOptions): Send => async (method, path, request, read) => {
    const { body, headers, signal } = request
    const address = addressOf(url, path, request)
    const own = typeof token === "function" ? await token() : token
    const all: Record<string, string | undefined> = {
      authorization: own && `Bearer ${own}`,
      "content-type": body === undefined ? undefined : "application/json",
      ...headers,
    }
    const sent = Object.entries(all).filter(([, value]) => value !== undefined) as Array<[string, string]>
    const init = {
      method,
      headers: sent,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
    }
    try {
      const response = await fetch(address, init)
      if (!response.ok) throw await refused(response)
      return await read(response)
    } catch (cause) {
      if (signal?.aborted || cause instanceof Problem) throw cause
      throw problemOf("unreachable", 0, { detail: "The server does not answer" }, undefined, cause)
    }
  }

/** The answer of a call: JSON, bytes as a Blob, text, or nothing. */
const answerOf = (response: Response): Promise<unknown> => {
  const type = response.headers.get("content-type") ?? ""
  return /octet/.test(type)
    ? response.blob()
    : response.text().then((text) => /\bjson/.test(type) ? JSON.parse(text) : text || undefined)
}

/**
 * Calls an operation. A GET, and a POST that keeps a receipt under its Idempotency-Key, are repeated while waiting may
 * help. Another write is not: it may have been carried out although its answer was lost.
 */
export const callOf =
  (send: Send, { retries = 3 }: ClientOptions) =>
  async (method: Method, path: string, request: AnyRequest = {}): Promise<unknown> => {
    const isKeyed = method === "POST" && keyedPaths.test(path.slice(4).replace(/\/(\{\w+\})?/g, "_"))
    const key = request.idempotencyKey ?? (isKeyed ? crypto.randomUUID() : undefined)
    const headers = { "idempotency-key": key, ...request.headers }
    for (let tries = 0;; tries++) {
      try {
        return await send(method, path, { ...request, headers }, answerOf)
      } catch (error) {
        const problem = error as Problem
        if (tries >= retries || method !== "GET" && !isKeyed || !passes(problem)) throw error
        await pause(pauseOf(tries, problem.retryAfter), request.signal)
      }
    }
  }
