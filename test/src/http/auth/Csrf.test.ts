import { assert, it } from "@effect/vitest"
import { Headers } from "effect/http"
import { passesCsrf } from "../../../../src/http/auth/Csrf.ts"

const own = new URL("https://mail.example/base")
const json = { "content-type": "application/json; charset=utf-8", "content-length": "2" }
const form = { "content-type": "application/x-www-form-urlencoded", "content-length": "2" }

const table: ReadonlyArray<readonly [passes: boolean, why: string, headers: Record<string, string>]> = [
  [true, "our public origin", { origin: "https://mail.example" }],
  [true, "our public origin, from an upper-case client", { origin: "HTTPS://MAIL.EXAMPLE" }],
  [true, "the Host's origin", { origin: "http://127.0.0.1:8080", host: "127.0.0.1:8080" }],
  [true, "the Host's origin, its scheme's own port written out", { origin: "http://h.example", host: "h.example:80" }],
  [false, "the Host's name, another port", { origin: "http://127.0.0.1:8081", host: "127.0.0.1:8080" }],
  [false, "a foreign origin", { origin: "https://evil.example" }],
  [false, "a foreign origin that starts like ours", { origin: "https://mail.example.evil.example" }],
  [false, "our name over plain http", { origin: "http://mail.example" }],
  [false, "no origin that can be told", { origin: "null" }],
  [false, "an origin that is a whole address", { origin: "https://mail.example/x" }],
  [false, "an empty origin", { origin: "" }],
  [true, "the same site's own page", { "sec-fetch-site": "same-origin" }],
  [true, "a person's own doing", { "sec-fetch-site": "none" }],
  [false, "a sibling of our site", { "sec-fetch-site": "same-site" }],
  [false, "another site", { "sec-fetch-site": "cross-site" }],
  [false, "our origin, but sent from another site", { origin: "https://mail.example", "sec-fetch-site": "cross-site" }],
  [false, "a foreign origin, though it claims ours", {
    origin: "https://evil.example",
    "sec-fetch-site": "same-origin",
  }],
  [false, "another site, even with JSON", { "sec-fetch-site": "cross-site", ...json }],
  [true, "neither header, no body", {}],
  [true, "neither header, an empty body", { "content-length": "0", "content-type": "text/plain" }],
  [true, "neither header, JSON", json],
  [false, "neither header, a form", form],
  [false, "neither header, text", { "content-type": "text/plain", "content-length": "2" }],
  [false, "neither header, a body of no type", { "content-length": "2" }],
  [false, "neither header, a streamed form", { "content-type": "text/plain", "transfer-encoding": "chunked" }],
  [false, "neither header, almost JSON", { "content-type": "application/jsonx", "content-length": "2" }],
]

for (const [passes, why, headers] of table) {
  it(`a request ${passes ? "passes" : "is refused"}: ${why}`, () => {
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      assert.strictEqual(passesCsrf({ method, headers: Headers.fromInput(headers) }, own), passes, method)
    }
    assert.isTrue(passesCsrf({ method: "GET", headers: Headers.fromInput(headers) }, own))
  })
}
