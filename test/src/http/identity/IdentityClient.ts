/** Requests of people to the identity API, over a socket; their secrets are recorded. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, request } from "node:http"
import { Server } from "../../../../src/http/Server.ts"
import { tokenFor, type TokenOptions } from "../../../support/TestTokens.ts"

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The JSON of the body; null without one. */
  // deno-lint-ignore no-explicit-any
  readonly body: any
}

/** A header with several values is sent as often. */
export type Headers = Readonly<Record<string, string | ReadonlyArray<string>>>

/** Secrets that no row, log or answer may hold; shorter ones would be found by chance. */
export const secrets = new Set<string>()
export const secret = <A extends string>(text: A): A => {
  if (text.length >= 12) secrets.add(text)
  return text
}

/** The secrets that a text holds. An assertion for each of thousands took a seventh of a walk's time. */
export const secretsIn = (text: string): ReadonlyArray<string> => [...secrets].filter((one) => text.includes(one))

const agent = new Agent({ keepAlive: true, maxSockets: 50 })

/** One request; a `body` of text or bytes is sent as it is, any other as JSON. No header is added for text. */
export const send = Effect.fnUntraced(function* (
  method: string,
  path: string,
  headers: Headers = {},
  body?: unknown,
): Effect.fn.Return<Answer, never, Server> {
  const { url } = yield* Server
  const raw = typeof body === "string" || body instanceof Uint8Array
  const sent = body === undefined ? undefined : Buffer.from(raw ? body : JSON.stringify(body))
  const typed = sent !== undefined && !raw ? { "content-type": "application/json", ...headers } : headers
  return yield* Effect.promise(() =>
    new Promise<Answer>((resolve, reject) => {
      const asked = request(
        url + path,
        {
          method,
          agent,
          headers: {
            ...Object.fromEntries(
              Object.entries(typed).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
            ),
            ...(sent === undefined ? {} : { "content-length": String(sent.length) }),
          },
        },
        (answer) => {
          const parts: Array<Uint8Array> = []
          answer.on("data", (part: Uint8Array) => parts.push(part)).on("error", reject).on("end", () => {
            const text = Buffer.concat(parts).toString()
            resolve({
              status: answer.statusCode!,
              headers: Object.fromEntries(
                Object.entries(answer.headers).map(([name, value]) => [name, String(value)]),
              ),
              text,
              body: text === "" ? null : /\bjson/.test(answer.headers["content-type"] ?? "") ? JSON.parse(text) : text,
            })
          })
        },
      )
      asked.on("error", reject).end(sent)
    })
  )
})

const tokens = new Map<string, string>()

/** The Authorization header of a person who signed in just now; the same one each time, unless options are given. */
export const as = Effect.fnUntraced(function* (personId: string, options?: TokenOptions) {
  const known = options === undefined ? tokens.get(personId) : undefined
  const token = known ?? secret(yield* tokenFor(personId, options))
  if (options === undefined) tokens.set(personId, token)
  return { authorization: `Bearer ${token}` }
})

export const key = () => ({ "idempotency-key": crypto.randomUUID() })

/** A person's request, with a new idempotency key where the method is POST. */
export const ask = Effect.fnUntraced(function* (
  personId: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Headers = {},
) {
  const auth = yield* as(personId)
  return yield* send(method, path, { ...auth, ...(method === "POST" ? key() : {}), ...headers }, body)
})

/** The body of a 2xx answer; any other answer is a fault of the test's fixture. */
export const done = ({ body, status, text }: Answer) => {
  assert.isTrue(status >= 200 && status < 300, `${status} ${text}`)
  return body
}
