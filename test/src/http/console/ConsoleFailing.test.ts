/** From a receiver that fails to what it missed, sent again: in real Chromium, with real deliveries. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Chromium, clickOn, everyLook, fill, heading, inConsole, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const stage = Layer.merge(
  staged({
    ROLES: "api,actors,relay,timers,intake,delivery,mail",
    WEBHOOKS_RETRY_DELAYS: Array(8).fill("50 millis").join(","),
  }),
  Chromium.layer,
)

/** A receiver that answers every POST with `status()`. */
const receiver = Effect.fnUntraced(function* (status: () => number) {
  let arrived = 0
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((request, response) => {
        arrived++
        request.resume()
        response.writeHead(status(), { "content-type": "text/plain" }).end(status() < 300 ? "taken" : "out of order")
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => void server.close()),
  )
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, arrived: () => arrived }
})

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("a receiver that fails", (it) => {
  it.effect("makes a dead letter with its attempts; once it works, what it missed is counted and sent again", () =>
    Effect.gen(function* () {
      let status = 500
      const { arrived, url } = yield* receiver(() => status)
      const at = yield* inConsole("Alice", {}, "/console/webhooks")
      const { page } = at
      yield* press(page, "Create a webhook…")
      yield* text(page, "email.delivered")
      yield* fill(page, "Address", url)
      yield* clickOn(page, "dialog[open] input[type=checkbox]")
      yield* press(page, "Create the webhook")
      yield* press(page, "I have kept it")
      yield* press(page, "Send a test")
      yield* text(page, "A sample event is on its way.")
      // The list follows what becomes of it.
      yield* text(page, "failing")
      yield* press(page, url)
      yield* heading(page, url)
      yield* text(page, "dead letter")
      const tried = arrived()
      assert.isAbove(tried, 1)
      yield* clickOn(page, "tbody th a")
      yield* text(page, "out of order")
      const attempts = yield* Effect.promise(() => page.$$eval("ol.steps li", (all) => all.length))
      assert.strictEqual(attempts, tried, "each attempt that arrived is shown")
      yield* everyLook(at, "dead-letter")
      yield* press(page, "Its request headers")
      yield* text(page, "X-Webhook-Delivery")

      status = 200
      yield* press(page, url)
      yield* heading(page, url)
      yield* press(page, "Send again…")
      yield* press(page, "Count")
      yield* text(page, "1 delivery will be sent again.")
      yield* press(page, "Send 1 again")
      yield* text(page, "They are sent again, in the background.")
      yield* text(page, "1 of 1 is on its way again.")
      yield* everyLook(at, "replay-progress")
      yield* press(page, "Close")
      yield* Effect.promise(() => page.waitForFunction(() => /✓ delivered/.test(document.body.innerText)))
      assert.strictEqual(arrived(), tried + 1)
    }))
})
