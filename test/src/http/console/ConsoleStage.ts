/**
 * The program with the console, as DEMO serves it, and browsers that sign in to it: each with a jar of cookies, and
 * redirects followed one by one.
 */
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { freePort } from "../../../../src/embedded/FreePorts.ts"
import { DevKey } from "../../../../src/http/dev/DevKey.ts"
import { Server } from "../../../../src/http/Server.ts"
import { management } from "../../../support/TestManagement.ts"

/**
 * The app on a port of its own, which PUBLIC_URL names under this host: the console asks its issuer, the embedded one,
 * over HTTP.
 */
export const staged = (more: Readonly<Record<string, string>> = {}, host = "127.0.0.1") =>
  Layer.unwrap(Effect.map(
    Effect.orDie(freePort()),
    (port) => management({ PORT: String(port), PUBLIC_URL: `http://${host}:${port}`, ...more }),
  ))

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly location: string
  // deno-lint-ignore no-explicit-any
  readonly body: any
}

interface Sending {
  readonly headers?: Readonly<Record<string, string>>
  readonly form?: Readonly<Record<string, string>>
  readonly json?: unknown
}

/** What a browser says of a request that one of our own pages makes. */
export const ownPage = { "sec-fetch-site": "same-origin" }

export class Browser {
  readonly jar = new Map<string, string>()
  /** The lines of Set-Cookie, as they came. */
  readonly set: Array<string> = []
  readonly origin: string

  constructor(origin: string) {
    this.origin = origin
  }

  /** One request, without following a redirect. */
  async send(method: string, to: string, { form, headers = {}, json }: Sending = {}): Promise<Reply> {
    const cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join("; ")
    const body = form !== undefined
      ? new URLSearchParams(form).toString()
      : json === undefined
      ? null
      : JSON.stringify(json)
    const type = form !== undefined ? "application/x-www-form-urlencoded" : "application/json"
    const response = await fetch(new URL(to, this.origin), {
      method,
      redirect: "manual",
      body,
      headers: { ...(cookie === "" ? {} : { cookie }), ...(body === null ? {} : { "content-type": type }), ...headers },
    })
    for (const line of response.headers.getSetCookie()) {
      this.set.push(line)
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === "" || /max-age=0(;|$)/i.test(line)) this.jar.delete(name)
      else this.jar.set(name, value)
    }
    const text = await response.text()
    const isJson = response.headers.get("content-type")?.includes("json") ?? false
    return {
      status: response.status,
      headers: response.headers,
      text,
      location: response.headers.get("location") ?? "",
      body: isJson && text !== "" ? JSON.parse(text) : null,
    }
  }

  /** The same, as an effect. */
  readonly ask = (method: string, to: string, sending?: Sending) => Effect.promise(() => this.send(method, to, sending))

  /** The visitor, as the console sees it. */
  readonly visitor = Effect.map(Effect.suspend(() => this.ask("GET", "/v1/console/session")), (reply) => {
    assert.strictEqual(reply.status, 200, reply.text)
    return reply.body
  })
}

/** A browser that has the dev key. */
export const browser = Effect.gen(function* () {
  const { url } = yield* Server
  const { cookie, key } = yield* DevKey
  const made = new Browser(url)
  made.jar.set(cookie.name, Redacted.value(key))
  return made
})

const hiddenFields = (page: string) =>
  Object.fromEntries(
    [...page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)]
      .map(([, name, value]) => [name!, value!.replaceAll("&amp;", "&")]),
  )

export const aal1 = "urn:service:aal1"
export const aal2 = "urn:service:aal2"

/** Goes to the issuer's page; returns the page, and the address that the console sent the browser to. */
export const toIssuer = Effect.fnUntraced(
  function* (one: Browser, query = "", options: Parameters<Browser["ask"]>[2] = {}) {
    const begun = yield* one.ask("GET", `/console/sign-in${query}`, options)
    assert.strictEqual(begun.status, 303, begun.text)
    return { location: new URL(begun.location), page: yield* one.ask("GET", begun.location) }
  },
)

/** Chooses a person on the issuer's page; returns the address of the callback. */
export const chosen = Effect.fnUntraced(function* (one: Browser, page: Reply, who: string, level = aal1) {
  const [, subject] = new RegExp(`name="subject" value="([^"]+)"[^>]*>${who},`).exec(page.text) ?? []
  assert.isDefined(subject, `${who} is not on ${page.text}`)
  const form = { ...hiddenFields(page.text), level, subject: subject! }
  const entered = yield* one.ask("POST", "/dev/issuer/authorize", { form, headers: { ...ownPage, origin: "null" } })
  assert.strictEqual(entered.status, 303, entered.text)
  return entered.location
})

/** Signs in from beginning to end; returns the answer of the callback. */
export const signIn = Effect.fnUntraced(function* (one: Browser, who: string, query = "", level = aal1) {
  const { page } = yield* toIssuer(one, query)
  const answer = yield* one.ask("GET", yield* chosen(one, page, who, level))
  assert.strictEqual(answer.status, 303, answer.text)
  return answer
})

/** A browser in which a person of the demo is signed in: `Alice`, `Sam`. */
export const signedIn = Effect.fnUntraced(function* (who: string, level = aal1) {
  const one = yield* browser
  yield* signIn(one, who, "", level)
  return one
})
