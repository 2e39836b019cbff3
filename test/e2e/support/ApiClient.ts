/** A plain HTTP client, as of a script with a key: it knows nothing of the answers but their bytes. */
import { Effect } from "effect"

export interface Call {
  readonly body?: unknown
  /** Sent as it is, where `body` would be made JSON. */
  readonly raw?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body read as JSON; null where there is none. */
  readonly json: ReturnType<typeof JSON.parse>
}

export interface ApiClient {
  readonly call: (method: string, path: string, options?: Call) => Effect.Effect<Reply>
  readonly get: (path: string, options?: Call) => Effect.Effect<Reply>
  readonly post: (path: string, body?: unknown, options?: Call) => Effect.Effect<Reply>
  readonly patch: (path: string, body?: unknown) => Effect.Effect<Reply>
  readonly delete: (path: string) => Effect.Effect<Reply>
}

const isJson = (type: string | null) => type !== null && /json/.test(type)

/** `origin` is read at each call, since a restarted program may have another address. */
export const api = (origin: () => string, credential: Readonly<Record<string, string>> = {}): ApiClient => {
  const call: ApiClient["call"] = (method, path, { body, headers, raw } = {}) =>
    Effect.promise(async (signal) => {
      const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
      const response = await fetch(`${origin()}${path}`, {
        method,
        signal,
        redirect: "manual",
        headers: {
          ...(sent === undefined ? {} : { "content-type": "application/json" }),
          ...credential,
          ...headers,
        },
        ...(sent === undefined ? {} : { body: sent }),
      })
      const text = await response.text()
      const json = text !== "" && isJson(response.headers.get("content-type")) ? JSON.parse(text) : null
      return { status: response.status, headers: response.headers, text, json }
    })
  return {
    call,
    get: (path, options) => call("GET", path, options),
    post: (path, body, options) => call("POST", path, { ...options, ...(body === undefined ? {} : { body }) }),
    patch: (path, body) => call("PATCH", path, { body }),
    delete: (path) => call("DELETE", path),
  }
}
