/**
 * The key to the developer pages. It is made and printed at each start, so that neither another user of this machine
 * nor a page of another origin can read these pages. The key arrives once as `?key=` and then stays in a cookie.
 * Browsers send cookies to all ports of a host, so each instance has its own cookie name.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { html } from "../../../services/platform/mail/Html.ts"
import { page } from "./DevPage.ts"
import { refusing } from "../edge/RequestOutcome.ts"
import { ownCookie } from "../auth/OwnCookies.ts"

export class DevKey extends Context.Service<DevKey, {
  readonly key: Redacted.Redacted
  readonly cookie: ReturnType<typeof ownCookie>
}>()("bailiwick/http/dev/DevKey") {
  /** `publicUrl` is the origin under which browsers reach this program. */
  static readonly layer = (publicUrl: URL) =>
    Layer.sync(DevKey, () => {
      const key = randomBytes(24).toString("base64url")
      const cookie = ownCookie(publicUrl, `bailiwick_dev_${digest(key).hex}`, "/dev")
      return DevKey.of({ key: Redacted.make(key, { label: "dev key" }), cookie })
    })
}

const digest = (text: string) => {
  const bytes = createHash("sha256").update(text).digest()
  return { bytes, hex: bytes.toString("hex").slice(0, 8) }
}

/** A form that asks for the key. It repeats the rest of the query, so that a sign-in keeps its `state`. */
const ask = (rest: URLSearchParams) =>
  page({
    status: 401,
    title: "Key needed",
    body: html`<p>These pages show what was sent to whom. The key to them was printed when this instance started.</p>
<form method="get">${
      [...rest].map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)
    }<label>Key <input name="key" autocomplete="off" autofocus required></label>
<button>Open</button></form>`,
  })

/** Serves `inner` to a browser that has the key, and a form that asks for the key to any other. */
export const guarded = <E, R>(inner: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  Effect.gen(function* () {
    const { cookie, key } = yield* DevKey
    const request = yield* HttpServerRequest.HttpServerRequest
    const expected = digest(Redacted.value(key)).bytes
    const fits = (given: string | undefined) => given !== undefined && timingSafeEqual(digest(given).bytes, expected)
    const { pathname, searchParams } = new URL(request.url, "http://localhost")
    const rest = new URLSearchParams([...searchParams].filter(([name]) => name !== "key"))
    if (fits(searchParams.get("key") ?? undefined)) {
      const location = rest.size === 0 ? pathname : `${pathname}?${rest}`
      // The redirect removes the key from the address bar, the history and the Referer header.
      return HttpServerResponse.setCookieUnsafe(
        HttpServerResponse.empty({ status: 303, headers: { location } }),
        cookie.name,
        Redacted.value(key),
        { ...cookie.attributes, sameSite: "strict" },
      )
    }
    return fits(request.cookies[cookie.name]) ? yield* inner : yield* refusing("invalid_credentials", ask(rest))
  })
