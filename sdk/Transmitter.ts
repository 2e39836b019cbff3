/**
 * The transmitter's side over HTTP: events, snapshot, acknowledgement, keys, and a stream's poll and verification. Bounded
 * in time and size; no redirects.
 */
import { type Json, member } from "./Canonical.ts"
import type { Jwk } from "./Keys.ts"
import { mostPartBytes } from "./ManifestParts.ts"

/** Any answer but the one that was asked for. */
export class Answered extends Error {
  override readonly name = "Answered"
  readonly status: number
  /** The problem's `code`; null where there is none. */
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

/** What a poll says of the messages before it (RFC 8936). */
export interface Settled {
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
  /** An access token for the audience `service-lifecycle`; asked for before each request, and waited for 15 s. */
  readonly token: () => Promise<string>
  readonly signal: AbortSignal
  readonly fetch?: typeof globalThis.fetch | undefined
}

const patienceMillis = 15_000
const maxBytes = 96 * 1024 * 1024
/** As many as `maxBytes` holds if each is as large as may be. */
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
    if (size > most) throw new Error("the answer is too long")
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
    throw new Error("not a poll's answer")
  }
  return {
    more: member(answer, "moreAvailable") === true,
    sets: Object.entries(sets as { readonly [jti: string]: Json }).map(([jti, set]) => {
      if (typeof set !== "string") throw new Error("not a poll's answer")
      return [jti, set]
    }),
  }
}

/** What somebody else gives; rejects where the signal is aborted first. */
const unless = <A>(signal: AbortSignal, given: Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    const over = () => reject(signal.reason)
    signal.addEventListener("abort", over)
    given.then(resolve, reject).finally(() => signal.removeEventListener("abort", over))
    if (signal.aborted) over()
  })

/** Each call rejects with Answered, or with whatever the network had to say. */
export const transmitter = (
  { baseUrl, projectId, signal, token, ...options }: TransmitterOptions,
) => {
  const ask = options.fetch ?? globalThis.fetch
  const origin = base(baseUrl)
  const at = (path: string) => new URL(path, origin)
  const project = `/v1/projects/${encodeURIComponent(projectId)}/lifecycle`

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
        AbortSignal.timeout(patienceMillis + waitMillis),
      ]),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await textOf(response, most)
    if (response.status !== 200 && response.status !== 204) throw failed(response, text)
    return text
  }

  /** A token that ended on its way is asked for once more. */
  const asService = async (url: URL, waitMillis = 0, body?: object, most = maxBytes) => {
    const once = async () => {
      const given = await unless(AbortSignal.any([signal, AbortSignal.timeout(patienceMillis)]), token())
      return await send(url, { authorization: `Bearer ${given}` }, waitMillis, body, most)
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

  return {
    /**
     * Events after a cursor; waits up to `waitSeconds` (30 at most) for the first. More than the usual number of them may
     * be more than is taken of an answer.
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
    /** One part of a state that comes in parts, by its digest; not by where a manifest says that it is. */
    part: (digest: string): Promise<string> =>
      asService(at(`${project}/snapshot/parts/${encodeURIComponent(digest)}`), 0, undefined, mostPartBytes),
    /** Says what was committed; gives the cursor up to which the transmitter has heard so. */
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
      const acknowledged = member(
        parsed(await asService(at(`${project}/acknowledgements`), 0, body)),
        "acknowledged_cursor",
      )
      if (typeof acknowledged !== "string") {
        throw new Error("not an acknowledgement")
      }
      return acknowledged
    },
    /** What waits in a stream, after saying what became of the messages before; waits for some unless told not to. */
    poll: async (streamId: string, { ack, setErrs }: Settled, returnImmediately: boolean): Promise<Polled> => {
      const body = { maxEvents: pageSize, returnImmediately, ack, setErrs }
      const url = at(`/v1/lifecycle/streams/${encodeURIComponent(streamId)}/poll`)
      return polledOf(await asService(url, pollMillis, body))
    },
    /** Asks for a verification message, which carries `state`. */
    verification: async (streamId: string, state: string): Promise<void> => {
      await asService(at("/v1/lifecycle/verify"), 0, { stream_id: streamId, state })
    },
    /** What thumbprints stand for; nothing here is trusted for being served. */
    keys: async (): Promise<{ readonly keys: ReadonlyArray<Jwk> }> => {
      const keys = member(
        parsed(await send(at("/v1/lifecycle/jwks"), {})),
        "keys",
      )
      if (!Array.isArray(keys)) throw new Error("not a key set")
      return { keys: keys as ReadonlyArray<Jwk> }
    },
  }
}
