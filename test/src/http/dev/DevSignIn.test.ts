import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Audit } from "../../../../services/platform/observability/Audit.ts"
import { Cookies } from "../../../../services/authentication/Cookies.ts"
import { demoIds } from "../../../../src/embedded/DemoDirectory.ts"
import { DevKey } from "../../../../src/http/dev/DevKey.ts"
import * as DevSignIn from "../../../../src/http/dev/DevSignIn.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../../src/http/Server.ts"
import { sessions } from "../../../support/TestAccounts.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const served = Server.layer(DevSignIn.layer(new URL("http://localhost")), { host: "127.0.0.1", port: 0 }).pipe(
  Layer.provide(RejectionAudit.layer.pipe(Layer.provide(Audit.layer))),
  Layer.provideMerge(Layer.mergeAll(DevKey.layer(new URL("http://localhost")), sessions, TestDatabase.layer)),
)

const state = "AbCdEfGhIjKlMnOpQrStU_"

const call = Effect.fnUntraced(
  function* (path: string, headers: Record<string, string>, fields?: Record<string, string>) {
    const { url } = yield* Server
    return yield* Effect.promise(async () => {
      const body = fields === undefined ? null : new URLSearchParams(fields)
      const method = fields === undefined ? "GET" : "POST"
      const response = await fetch(url + path, { method, headers, body, redirect: "manual" })
      return { status: response.status, headers: response.headers, text: await response.text() }
    })
  },
)

const pressed = { account: demoIds.bob, state }
const own = { origin: "null", "sec-fetch-site": "same-origin" }

const admitted = Effect.map(DevKey, ({ cookie, key }) => ({ cookie: `${cookie.name}=${Redacted.value(key)}` }))

layer(served, { excludeTestServices: true })("/dev/sign-in", (it) => {
  it.effect("asks for the key, and signs in no account without it or from another site", () =>
    Effect.gen(function* () {
      const withKey = yield* admitted
      const refused = [
        [401, yield* call("/dev/sign-in", {})],
        [401, yield* call("/dev/sign-in", own, pressed)],
        [403, yield* call("/dev/sign-in", { ...withKey, origin: "https://evil.example" }, pressed)],
        [403, yield* call("/dev/sign-in", withKey, pressed)],
        [404, yield* call("/dev/sign-in", { ...withKey, ...own }, { ...pressed, account: demoIds.alder })],
      ] as const
      for (const [status, answer] of refused) {
        assert.deepStrictEqual([answer.status, answer.headers.get("set-cookie")], [status, null])
      }
    }))

  it.effect("keeps the state while the key is asked for", () =>
    Effect.gen(function* () {
      const asked = yield* call(`/dev/sign-in?state=${state}`, {})
      assert.include(asked.text, `<input type="hidden" name="state" value="${state}">`)
      const { key } = yield* DevKey
      const opened = yield* call(`/dev/sign-in?state=${state}&key=${Redacted.value(key)}`, {})
      assert.deepStrictEqual(
        [opened.status, opened.headers.get("location")],
        [303, `/dev/sign-in?state=${state}`],
      )
      assert.notInclude((yield* call("/dev/sign-in?x=%22%3E%3Cscript%3E", {})).text, "<script")
    }))

  it.effect("makes a session of the chosen account, and returns to the page of the link", () =>
    Effect.gen(function* () {
      const headers = { ...(yield* admitted), ...own }
      const { text } = yield* call(`/dev/sign-in?state=${state}`, headers)
      assert.include(text, `value="${state}"`)
      assert.include(text, "bob@birch.example")
      assert.notInclude((yield* call("/dev/sign-in?state=%22%3E%3Cscript%3E", headers)).text, "<script")
      const entered = yield* call("/dev/sign-in", headers, pressed)
      assert.deepStrictEqual(
        [entered.status, entered.headers.get("location")],
        [303, `/transfers/resume?state=${state}`],
      )
      const set = entered.headers.get("set-cookie")!
      for (const part of ["HttpOnly", "SameSite=Lax", "Path=/"]) assert.include(set, part)
      const session = /^mail_session=([^;]+)/.exec(set)![1]!
      assert.strictEqual((yield* (yield* Cookies).verify(session)).accountId, demoIds.bob)
      const plain = yield* call("/dev/sign-in", headers, { ...pressed, state: "//evil.example" })
      assert.strictEqual(plain.headers.get("location"), "/dev/mailbox")
    }))
})
