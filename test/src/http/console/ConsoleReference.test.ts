/** The reference in the console, in real Chromium: an operation is found, read, and asked in the visitor's session. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { descriptions } from "../../../../src/http/docs/OperationDescriptions.ts"
import { Chromium, everyLook, fill, heading, inConsole, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const stage = Layer.merge(staged(), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("the reference at the console", (it) => {
  it.effect("has every operation, and finds one by words", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Alice", {}, "/console/reference")
      const { page } = at
      const all = Object.keys(descriptions).length
      yield* text(page, `${all} of ${all} operations`)
      yield* everyLook(at, "reference")
      yield* fill(page, "Words", "webhooks create\n")
      yield* text(page, "/v1/webhooks/")
      const links = yield* Effect.promise(() => page.$$eval(".operations a", (found) => found.length))
      assert.isBelow(links, 5)
    }), 240_000)

  it.effect("sends a read at once, and a write after a question, once", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Alice", {}, "/console/reference?operation=getAccount")
      const { page } = at
      yield* text(page, "The recorded request")
      yield* press(page, "Send the request")
      yield* text(page, "200 in ")
      yield* text(page, `"email": "alice@`)
      const command = yield* Effect.promise(() =>
        page.$eval('pre[aria-label="The request as a command"]', (one) => one.textContent ?? "")
      )
      assert.include(command, `-H "Authorization: Bearer $TOKEN"`)
      assert.notMatch(command, /cookie|eyJ|mail_k_/i)
      yield* everyLook(at, "reference-read")

      yield* at.open("/console/reference?operation=createApiKey")
      yield* fill(page, "Body", `{"name": "tried"}`)
      yield* press(page, "Send the request…")
      yield* text(page, "This is carried out in your name")
      yield* everyLook(at, "reference-write")
      const count = () => at.asked.filter((one) => one.endsWith("/v1/api-keys/")).length
      assert.strictEqual(count(), 0)
      yield* press(page, "Send it")
      yield* text(page, "201 in ")
      assert.strictEqual(count(), 1)
      yield* at.open("/console/api-keys")
      yield* heading(page, "API keys")
      yield* text(page, "tried")
    }), 240_000)

  it.effect("shows a refusal as it came", () =>
    Effect.gen(function* () {
      const opened = yield* inConsole("Alice", {}, "/console/reference?operation=getWebhook")
      const { page } = opened
      yield* text(page, "It needs webhook_id.")
      yield* fill(page, "webhook_id", "unknown")
      yield* press(page, "Send the request")
      yield* text(page, "404 in ")
      yield* text(page, "urn:bailiwick:problem:not_found")
    }), 240_000)
})
