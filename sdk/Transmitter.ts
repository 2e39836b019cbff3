/**
 * The transmitter's HTTP API: events, snapshot, acknowledgement, keys, and a stream's poll and verification. Requests
 * are bounded in time and size and do not follow redirects.
 */
import { type Json, member } from "./Canonical.ts"
import type { Jwk } from "./Keys.ts"
import { maxPartBytes } from "./ManifestParts.ts"

/** The transmitter answered with an error status. */
export class Answered extends Error {
  override readonly name = "Answered"
  readonly status: number
  /** The problem's `code`, or null. */
  readonly code: string | null
  readonly retryAfterSeconds: number | null

  constructor(
    status: number,
    code: string | null,
    retryAfterSeconds: number | null,
  ) {
    super(`${status} ${code ?? ""}`.trimEnd())
    this.status = status
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
  }
}

export interface Page {
  readonly items: ReadonlyArray<{ readonly set: string }>
  readonly cursor: string
  readonly more: boolean
}

/** The acknowledgement in a poll of the messages before it (RFC 8936). */
export interface PollAck {
  readonly ack: ReadonlyArray<string>
  readonly setErrs: Readonly<Record<string, { readonly err: string; readonly description: string }>>
}

export interface Polled {
  readonly sets: ReadonlyArray<readonly [jti: string, set: string]>
  readonly more: boolean
}

export interface TransmitterOptions {
  readonly baseUrl: string
  readonly projectId: string
  /** Gives an access token for the audience `service-lifecycle`; called before each request, which waits up to 15 s. */
  readonly token: () => Promise<string>
  readonly signal: AbortSignal
  readonly fetch?: typeof globalThis.fetch | undefined
}

const timeoutMillis = 15_000
const maxBytes = 96 * 1024 * 1024
/** `maxBytes` holds this many messages of the maximum size. */
const pageSize = 350
const pollMillis = 30_000

const base = (text: string): URL => {
  const url = new URL(text)
  const local = ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname)
  if (url.protocol !== "https:" && !(local && url.protocol === "http:")) {
    throw new TypeError("the base URL must be https")
  }
  return url
}

const textOf = async (response: Response, most: number): Promise<string> => {
  const parts: Array<Uint8Array> = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.length
    if (size > most) throw new Error("the response is too long")
    parts.push(part)
  }
  return Buffer.concat(parts).toString("utf8")
}

const parsed = (text: string): Json | undefined => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const failed = (response: Response, text: string): Answered => {
  const code = member(parsed(text), "code")
  const after = Number(response.headers.get("retry-after") ?? Number.NaN)
  return new Answered(
    response.status,
    typeof code === "string" ? code : null,
    Number.isFinite(after) ? after : null,
  )
}

const pageOf = (text: string): Page => {
  const page = parsed(text)
  const [cursor, items, more] = [
    member(page, "cursor"),
    member(page, "items"),
    member(page, "more"),
  ]
  if (
    typeof cursor !== "string" || !Array.isArray(items) ||
    typeof more !== "boolean"
  ) throw new Error("not a page")
  return {
    cursor,
    more,
    items: items.map((item) => {
      const set = member(item, "set")
      if (typeof set !== "string") throw new Error("not a page")
      return { set }
    }),
  }
}

const polledOf = (text: string): Polled => {
  const answer = parsed(text)
  const sets = member(answer, "sets")
  if (sets === undefined || sets === null || typeof sets !== "object" || Array.isArray(sets)) {
    throw new Error("not a poll response")
  }
  return {
    more: member(answer, "moreAvailable") === true,
    sets: Object.entries(sets as { readonly [jti: string]: Json }).map(([jti, set]) => {
      if (typeof set !== "string") throw new Error("not a poll response")
      return [jti, set]
    }),
  }
}

/** The promise's result; rejects if the signal is aborted first. */
const unlessAborted = <A>(signal: AbortSignal, promise: Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    const over = () => reject(signal.reason)
    signal.addEventListener("abort", over)
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", over))
    if (signal.aborted) over()
  })

const acknowledgedOf = (text: string): string => {
  const acknowledged = member(parsed(text), "acknowledged_cursor")
  if (typeof acknowledged !== "string") throw new Error("not an acknowledgement")
  return acknowledged
}

const keysOf = (text: string): { readonly keys: ReadonlyArray<Jwk> } => {
  const keys = member(parsed(text), "keys")
  if (!Array.isArray(keys)) throw new Error("not a key set")
  return { keys: keys as ReadonlyArray<Jwk> }
}

/** Sends requests, with and without the service's access token. Each returns the text of the response. */
const requests = ({ signal, token, ...options }: Pick<TransmitterOptions, "fetch" | "signal" | "token">) => {
  const ask = options.fetch ?? globalThis.fetch

  const send = async (
    url: URL,
    headers: Readonly<Record<string, string>>,
    waitMillis = 0,
    body?: object,
    most = maxBytes,
  ) => {
    const response = await ask(url, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        ...headers,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      redirect: "error",
      signal: AbortSignal.any([
        signal,
        AbortSignal.timeout(timeoutMillis + waitMillis),
      ]),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await textOf(response, most)
    if (response.status !== 200 && response.status !== 204) throw failed(response, text)
    return text
  }

  /** Sends with the service's access token; after a 401 once more, with a new token. */
  const asService = async (url: URL, waitMillis = 0, body?: object, most = maxBytes) => {
    const once = async () => {
      const accessToken = await unlessAborted(AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)]), token())
      return await send(url, { authorization: `Bearer ${accessToken}` }, waitMillis, body, most)
    }
    try {
      return await once()
    } catch (error) {
      if (error instanceof Answered && error.status === 401) {
        return await once()
      }
      throw error
    }
  }

  return { send, asService }
}

/**
 * The API as functions. Each call rejects with Answered, or with the error of the network or of a malformed response.
 */
export const transmitter = ({ baseUrl, projectId, ...options }: TransmitterOptions) => {
  const origin = base(baseUrl)
  const at = (path: string) => new URL(path, origin)
  const project = `/v1/projects/${encodeURIComponent(projectId)}/lifecycle`
  const { asService, send } = requests(options)

  return {
    /**
     * Events after a cursor; waits up to `waitSeconds` (at most 30) for the first. With a larger limit than the default
     * the response may be too long.
     */
    events: async (after: string, waitSeconds: number, limit = pageSize): Promise<Page> => {
      const query = new URLSearchParams({
        after,
        limit: String(limit),
        wait: String(waitSeconds),
      })
      return pageOf(
        await asService(at(`${project}/events?${query}`), waitSeconds * 1_000),
      )
    },
    /** A signed snapshot. */
    snapshot: (): Promise<string> => asService(at(`${project}/snapshot`), 45_000),
    /** One part of a state in parts, by its digest; a manifest's own addresses are not used. */
    part: (digest: string): Promise<string> =>
      asService(at(`${project}/snapshot/parts/${encodeURIComponent(digest)}`), 0, undefined, maxPartBytes),
    /** Acknowledges what was committed; returns the latest acknowledged cursor that the transmitter knows. */
    acknowledge: async (
      cursor: string,
      chainHead: string,
      installedVersion: string,
    ): Promise<string> => {
      const body = {
        cursor,
        installed_version: installedVersion,
        chain_head: chainHead,
      }
      return acknowledgedOf(await asService(at(`${project}/acknowledgements`), 0, body))
    },
    /** Acknowledges earlier messages and returns waiting ones; waits for some unless `returnImmediately`. */
    poll: async (streamId: string, { ack, setErrs }: PollAck, returnImmediately: boolean): Promise<Polled> => {
      const body = { maxEvents: pageSize, returnImmediately, ack, setErrs }
      const url = at(`/v1/lifecycle/streams/${encodeURIComponent(streamId)}/poll`)
      return polledOf(await asService(url, pollMillis, body))
    },
    /** Asks for a verification message with this `state`. */
    verification: async (streamId: string, state: string): Promise<void> => {
      await asService(at("/v1/lifecycle/verify"), 0, { stream_id: streamId, state })
    },
    /** The served key set; a key is trusted only for its pinned thumbprint. */
    keys: async (): Promise<{ readonly keys: ReadonlyArray<Jwk> }> => keysOf(await send(at("/v1/lifecycle/jwks"), {})),
  }
}
