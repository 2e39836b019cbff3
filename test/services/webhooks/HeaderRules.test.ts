import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import fc from "fast-check"
import { CustomHeader, CustomHeaders } from "../../../schemas/mail/WebhookHeaders.ts"
import { requestOf } from "../../../services/platform/Outbound/RequestHead.ts"
import { generateSecret, headersFor } from "../../../services/webhooks/Signer.ts"
import { headerFaults } from "../../../services/webhooks/Webhooks/HeaderRules.ts"

const accepts = (name: string, value: string) => Schema.is(CustomHeader)({ name, value })
const lines = (headers: Record<string, string>) =>
  String(requestOf("hook.example", "/", headers, "{}") ?? "").split("\r\n")

describe("a custom header", () => {
  const own = headersFor({
    deliveryId: "d",
    eventType: "email.sent",
    attempt: 1,
    timestampSeconds: 1,
    body: "{}",
    secrets: [generateSecret()],
  })

  it("is none that the delivery or its connection sets, in any case", () => {
    const written = lines(own).flatMap((line) => /^([^ :]+): /.exec(line)?.[1] ?? [])
    assert.isAbove(written.length, 10)
    for (const name of [...Object.keys(own), ...written, "TE", "Trailer", "Upgrade", "Proxy-Authorization", "Expect"]) {
      for (const spelled of [name, name.toLowerCase(), name.toUpperCase()]) {
        assert.isFalse(accepts(spelled, "v"), spelled)
        assert.isFalse(accepts(`${spelled}`, ""))
      }
    }
    for (const name of ["Authorization", "X-Tenant", "Cookie", "X-Webhooks", "__proto__", "7"]) {
      assert.isTrue(accepts(name, "v"), name)
    }
  })

  it("that is accepted adds one line to the request and changes no other", () => {
    const text = fc.string({ unit: "binary", minLength: 1, maxLength: 20 })
    const name = fc.oneof(text, fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/), fc.constantFrom("Host", "te"))
    const value = fc.oneof(text, fc.stringMatching(/^[\t\r\n -~]{1,20}$/))
    const before = lines(own)
    fc.assert(
      fc.property(name, value, (name, value) => {
        if (!accepts(name, value)) return
        const custom: Record<string, string> = Object.fromEntries([[name, value]])
        const after = lines({ ...own, ...custom })
        const at = after.indexOf(`${name}: ${value}`)
        assert.isAbove(at, 0)
        assert.deepStrictEqual(after.toSpliced(at, 1), before)
      }),
      { numRuns: 1_000 },
    )
  })

  it("has a bounded name and value, and there are ten of distinct names, 4096 characters together, at most", () => {
    assert.isTrue(accepts("x".repeat(64), "v".repeat(1_024)))
    for (
      const [name, value] of [["x".repeat(65), "v"], ["x", "v".repeat(1_025)], ["x", " v"], ["x", "v "], ["", "v"]]
    ) {
      assert.isFalse(accepts(name!, value!))
    }
    const of = (n: number, value: string) => Array.from({ length: n }, (_, i) => ({ name: `X-${i}`, value }))
    const all = Schema.is(CustomHeaders)
    assert.isTrue(all(of(10, "v")))
    assert.isFalse(all(of(11, "v")))
    assert.isTrue(all(of(4, "v".repeat(1_021))))
    assert.isFalse(all([...of(4, "v".repeat(1_021)), { name: "x", value: "v" }]))
    assert.isFalse(all([{ name: "X-A", value: "1" }, { name: "x-a", value: "2" }]))
  })
})

describe("headerFaults", () => {
  const url = fc.constantFrom(
    "https://a.example/",
    "https://a.example/other",
    "https://a.example:8443/",
    "https://b.example/",
  )
  const names = fc.uniqueArray(fc.constantFrom("X-Tenant", "authorization", "Authorization"), {
    selector: (name) => name.toLowerCase(),
  })
  const state = fc.record({ url, headerNames: names, basicAuth: fc.boolean() })
  const change = fc.record({
    url,
    headers: names.map((all) => all.map((name) => ({ name, value: "v" }))),
    basicAuth: fc.constantFrom({ username: "", password: "" }, { username: "", password: "p" }),
  }, { requiredKeys: [] })

  it("lets no value go to another origin than the one that it was written for, and nothing else be refused", () => {
    fc.assert(fc.property(state, change, (before, change) => {
      const faults = headerFaults(before, change)
      const moved = change.url !== undefined && new URL(change.url).origin !== new URL(before.url).origin
      const carried = moved &&
        ((before.headerNames.length > 0 && change.headers === undefined) ||
          (before.basicAuth && change.basicAuth === undefined))
      const after = change.headers?.map(({ name }) => name) ?? before.headerNames
      const both = (change.basicAuth === undefined ? before.basicAuth : change.basicAuth.password !== "") &&
        after.some((name) => /^authorization$/i.test(name))
      assert.strictEqual(faults.length > 0, carried || both)
    }))
  })
})
