/** From a receiver that fails to what it missed, sent again: in real Chromium, with real deliveries. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Page } from "puppeteer-core"
import { Database } from "../../../../services/platform/database/Database.ts"
import { demoIds } from "../../../../src/embedded/DemoDirectory.ts"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { reason } from "../../../support/Fixtures.ts"
import {
  choose,
  Chromium,
  clickOn,
  everyLook,
  fill,
  heading,
  inConsole,
  inHand,
  pictured,
  press,
  sound,
  text,
  thin,
} from "./ConsoleBrowser.ts"
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

/** Asks the API within the page, as the console does. */
const asked = (page: Page, method: string, path: string, body?: object) =>
  Effect.promise(() =>
    page.evaluate(
      async (method: string, path: string, body: string | null) => {
        const response = await fetch(path, { method, headers: { "content-type": "application/json" }, body })
        return await response.json()
      },
      method,
      path,
      body === undefined ? null : JSON.stringify(body),
    )
  )

/** Waits until the API counts so many dead letters of the page's account. */
const letters = (page: Page, webhook: string, n: number) =>
  Effect.promise(() =>
    page.waitForFunction(
      async (path: string, n: number) => (await (await fetch(path)).json()).items.length === n,
      { polling: 250 },
      `/v1/webhook-deliveries?status=dead_letter&webhook_id=${webhook}`,
      n,
    )
  )

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
      // What dies after the replay was asked for is none of what it has yet to send.
      const counts = at.asked.filter((one) => one.includes("/replay?"))
      assert.deepStrictEqual(counts.map((one) => new URL(one).searchParams.has("asked_at")).slice(0, 2), [false, true])
      yield* everyLook(at, "replay-progress")
      yield* press(page, "Close")
      yield* Effect.promise(() => page.waitForFunction(() => /✓ delivered/.test(document.body.innerText)))
      assert.strictEqual(arrived(), tried + 1)
    }))

  it.effect("what failed is sent again by its type: by its account from the list, and by an operator with a reason", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      let status = 500
      const { url } = yield* receiver(() => status)
      const alice = yield* inConsole("Alice", {}, "/console/overview")
      const { page } = alice
      yield* heading(page, "Overview")
      const { id } = yield* asked(page, "POST", "/v1/webhooks/", { url, events: ["email.sent", "email.opened"] })
      for (const event of ["email.sent", "email.opened", "email.opened"]) {
        yield* asked(page, "POST", `/v1/webhooks/${id}/test`, { event })
      }
      yield* letters(page, id, 3)
      yield* alice.open("/console/webhooks", "Webhooks")
      yield* text(page, url)
      const last = yield* Effect.promise(async () => {
        const cell = await page.waitForSelector(`tr:has(a[href$="${id}"]) td[data-label="Last delivery"]:has(a)`)
        return await cell!.evaluate((one) => (one as HTMLElement).innerText)
      })
      assert.match(last, /^✕ dead letter\s+(now|\d+ seconds? ago)$/)
      yield* everyLook(alice, "webhooks-last")
      status = 200
      yield* alice.open(`/console/deliveries?event_type=email.opened&webhook_id=${id}&status=dead_letter`, "Deliveries")
      yield* press(page, "Send many again…")
      yield* press(page, "Count")
      yield* text(page, "2 deliveries will be sent again.")
      // Another choice is another count.
      yield* choose(page, "Event type", "email.sent")
      yield* press(page, "Count")
      yield* text(page, "1 delivery will be sent again.")
      yield* choose(page, "Event type", "email.opened")
      yield* press(page, "Count")
      yield* text(page, "2 deliveries will be sent again.")
      yield* everyLook(alice, "deliveries-replay")
      yield* press(page, "Send 2 again")
      yield* text(page, "2 of 2 are on their way again.")
      yield* press(page, "Close")
      yield* letters(page, id, 1)
      // An answer to choices of before counts for nothing.
      yield* Effect.promise(() =>
        page.evaluateOnNewDocument(() => {
          const asked = globalThis.fetch
          globalThis.fetch = async (to, how) => {
            const answer = await asked(to, how)
            if (!answer.url.includes("/replay?") || document.body.dataset["counting"] !== undefined) return answer
            document.body.dataset["counting"] = "yes"
            await new Promise((go) => addEventListener("answered", go, { once: true }))
            return answer
          }
        })
      )
      yield* alice.open(`/console/deliveries?event_type=email.opened&webhook_id=${id}&status=dead_letter`, "Deliveries")
      yield* press(page, "Send many again…")
      yield* press(page, "Count")
      yield* Effect.promise(() => page.waitForSelector("body[data-counting]"))
      yield* choose(page, "Event type", "email.sent")
      yield* Effect.promise(() => page.evaluate(() => void dispatchEvent(new Event("answered"))))
      // The button is off while an answer is awaited.
      yield* press(page, "Count")
      yield* text(page, "1 delivery will be sent again.")
      yield* press(page, "Cancel")
      // No replay knows an answer: the list does not offer to send more than it shows.
      yield* alice.open(`/console/deliveries?webhook_id=${id}&response_status=404`, "Deliveries")
      const offered = yield* Effect.promise(async () => {
        const button = await page.waitForSelector("main .actions button[disabled]")
        return await button!.evaluate((one) => [one.textContent, (one as HTMLElement).title])
      })
      assert.strictEqual(offered[0], "Send many again…")
      assert.match(offered[1]!, /not by these filters\.$/)
      // A hover is no way to read it on a phone, or by the keyboard.
      yield* text(page, "not by these filters.")

      const oz = yield* inConsole("Oz", {}, `/console/operations/dead-letters?webhook_id=${id}`)
      yield* heading(oz.page, "Dead letters")
      yield* text(oz.page, "email.sent")
      yield* press(oz.page, "Send many again…")
      yield* fill(oz.page, "Event type", "email.opened")
      yield* press(oz.page, "Count")
      yield* text(oz.page, "No dead letter of this span can be sent again.")
      yield* fill(oz.page, "Event type", "email.sent")
      yield* press(oz.page, "Count")
      yield* text(oz.page, "1 dead letter will be sent again.")
      yield* fill(oz.page, "Reason", reason)
      yield* everyLook(oz, "dead-letters-replay")
      yield* press(oz.page, "Send 1 again")
      yield* text(oz.page, "1 of 1 is on its way again.")
      yield* press(oz.page, "Close")
      yield* letters(page, id, 0)
      const told = yield* sql`
        select details from audit_records where subject = ${`webhook:${id}`} and action = 'webhook.replayed' order by id`
      assert.deepStrictEqual(told.map(({ details }) => details), [
        { deliveries: 2, event_type: "email.opened" },
        { deliveries: 1, event_type: "email.sent", reason },
      ])

      // An account's delivery leads to its records where the account is an operator's own.
      const [delivery] = yield* sql<{ id: string }>`
        select id::text from deliveries where webhook_id = ${id}::uuid limit 1`
      const path = `/console/deliveries/${delivery!.id}`
      yield* alice.open(path)
      yield* text(page, "Copy id")
      assert.notInclude(yield* Effect.promise(() => page.evaluate(() => document.body.innerText)), "Its audit")
      yield* sql`update console_sessions set account_id = ${demoIds.alice}::uuid where person_id = ${demoIdentityIds.oz}`
      yield* oz.open(path)
      yield* press(oz.page, "Its audit")
      yield* heading(oz.page, "Audit")
      assert.strictEqual(new URL(oz.page.url()).search, `?subject=${delivery!.id}`)
    }))

  it.effect("on a phone, by taps alone, a failed delivery is looked at and sent again", () =>
    Effect.gen(function* () {
      let status = 503
      const { arrived, url } = yield* receiver(() => status)
      const alice = yield* inConsole("Alice", inHand, "/console/overview")
      const { page } = alice
      yield* heading(page, "Overview")
      const { id } = yield* asked(page, "POST", "/v1/webhooks/", { url, events: ["email.bounced"] })
      yield* asked(page, "POST", `/v1/webhooks/${id}/test`, { event: "email.bounced" })
      yield* letters(page, id, 1)
      const tried = arrived()
      yield* press(page, "Menu")
      yield* press(page, "Webhooks", "#menu a")
      yield* heading(page, "Webhooks")
      yield* press(page, url, "main a")
      yield* heading(page, url)
      yield* text(page, "dead letter")
      assert.deepStrictEqual(yield* thin(page), [])
      yield* press(page, "email.bounced", "th a")
      yield* heading(page, "email.bounced")
      yield* text(page, "out of order")
      yield* sound(alice, "a dead letter in a hand")
      yield* pictured(page, "dead-letter-in-hand")
      assert.deepStrictEqual(yield* thin(page), [])
      status = 200
      yield* press(page, "Send again")
      yield* text(page, "It is sent again.")
      // The page of what waits follows it every two seconds, also where it was opened as one that had ended.
      yield* Effect.promise(() =>
        page.waitForFunction(() => /✓ delivered/.test(document.body.innerText), { timeout: 30_000 })
      )
      assert.strictEqual(arrived(), tried + 1)
    }))
})
