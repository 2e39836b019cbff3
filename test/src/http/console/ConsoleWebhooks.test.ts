/** The mail account's pages of the console, in real Chromium: webhooks, deliveries, keys and notifications. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "puppeteer-core"
import { Database } from "../../../../services/platform/database/Database.ts"
import {
  Chromium,
  clickOn,
  everyLook,
  fill,
  heading,
  inConsole,
  looks,
  losingAnswer,
  press,
  text,
} from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const url = "https://hooks.example.com/mail"
const stage = Layer.merge(staged(), Chromium.layer)

const secretOf = (page: Page) =>
  Effect.promise(async () => {
    const shown = await page.waitForSelector("dialog[open] .secret")
    return await shown!.evaluate((one) => one.textContent ?? "")
  })

/** Everything that the browser keeps of this page. */
const kept = (page: Page) =>
  Effect.promise(() =>
    page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state]))
  )

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("a mail account at the console", (it) => {
  it.effect("makes a webhook, tests it, looks at its delivery, changes its secret, and deletes it", () =>
    Effect.gen(function* () {
      const opened = yield* inConsole("Alice", {}, "/console/webhooks")
      const at = {
        ...opened,
        // The browser complains of every refusal; here a header and a number are refused.
        get complaints() {
          return opened.complaints.filter((one) => !one.includes("status of 422"))
        },
      }
      const { page } = at
      yield* text(page, "There is no webhook yet.")
      yield* press(page, "Create a webhook…")
      yield* text(page, "email.bounced")
      yield* fill(page, "Address", url)
      yield* fill(page, "Description", "Orders of the shop")
      const boxes = "dialog[open] input[type=checkbox]"
      assert.lengthOf(yield* Effect.promise(() => page.$$(boxes)), 8)
      for (const index of [1, 4]) yield* clickOn(page, boxes, index)
      yield* everyLook(at, "webhook-creating")
      yield* press(page, "Create the webhook")
      const secret = yield* secretOf(page)
      assert.match(secret, /^whsec_/)
      assert.notInclude(yield* kept(page), secret)
      yield* press(page, "I have kept it")
      yield* text(page, url)
      assert.notInclude(yield* Effect.promise(() => page.content()), secret)
      yield* text(page, "Orders of the shop")
      yield* text(page, "not used yet")
      yield* everyLook(at, "webhooks")

      yield* press(page, "Pause")
      yield* text(page, "paused")
      yield* press(page, "Resume")
      yield* press(page, "Send a test")
      yield* text(page, "A sample event is on its way.")
      yield* press(page, url)
      yield* heading(page, url)
      yield* text(page, "email.delivered")
      yield* Effect.promise(() => page.waitForSelector("tbody tr"))
      yield* everyLook(at, "webhook")
      // On a phone each button of the settings stands below its value.
      yield* Effect.promise(() => page.setViewport(looks.phone.viewport))
      const beside = yield* Effect.promise(() =>
        page.$$eval(
          ".changeable",
          (all) =>
            all.map(({ children: [value, button] }) =>
              button!.getBoundingClientRect().top >= value!.getBoundingClientRect().bottom
            ),
        )
      )
      assert.deepStrictEqual(beside, [true, true, true])
      yield* Effect.promise(() => page.setViewport(looks.desktop.viewport))

      yield* press(page, "Send a test…")
      yield* text(page, "The recipient's mail server confirmed the delivery.")
      yield* Effect.promise(() => page.select("dialog[open] select", "email.opened"))
      yield* text(page, "This webhook does not take events of this type.")
      yield* everyLook(at, "webhook-testing")
      yield* press(page, "Send the test")
      yield* text(page, "email.opened")

      yield* press(page, "Edit…")
      yield* text(page, "email.bounced")
      yield* fill(page, "Description", "Orders of both shops")
      yield* press(page, "Wait for as long as Retry-After of a failed answer asks, a day at most")
      yield* fill(page, "Deliveries a second", "1001")
      yield* everyLook(at, "webhook-editing")
      yield* press(page, "Save")
      yield* Effect.promise(() => page.waitForSelector("dialog[open] .fault"))
      yield* fill(page, "Deliveries a second", "5")
      yield* press(page, "Save")
      yield* text(page, "The webhook is changed.")
      yield* text(page, "Orders of both shops")
      yield* text(page, "5 at most")
      const changed = yield* Effect.promise(() =>
        page.evaluate(async () => await (await fetch(`/v1/webhooks/${location.pathname.split("/").at(-1)}`)).json())
      )
      const { description, honor_retry_after, rate_limit, url: address } = changed
      assert.deepStrictEqual(
        { description, honor_retry_after, rate_limit, address },
        { description: "Orders of both shops", honor_retry_after: true, rate_limit: 5, address: url },
      )

      yield* press(page, "New secret…")
      yield* press(page, "Make a new secret")
      const second = yield* secretOf(page)
      assert.notStrictEqual(second, secret)
      yield* press(page, "I have kept it")
      yield* text(page, "two, the old one until in 24 hours")

      yield* press(page, "Headers…")
      yield* everyLook(at, "webhook-headers")
      yield* fill(page, "Headers", "X-Tenant: blue-4711\nHost: other.example")
      yield* press(page, "Save the headers")
      yield* text(page, "Header should not be one that the delivery or its connection sets.")
      yield* press(page, "Cancel")
      yield* press(page, "Headers…")
      yield* fill(page, "Headers", "X-Tenant: blue-4711")
      yield* press(page, "Save the headers")
      yield* text(page, "The headers are changed.")
      yield* press(page, "Credentials…")
      yield* fill(page, "User name", "hook")
      yield* fill(page, "Password", "green-4712")
      yield* press(page, "Save the basic authentication")
      yield* text(page, "with every request")
      const everything = (yield* kept(page)) + (yield* Effect.promise(() => page.content()))
      for (const value of ["blue-4711", "green-4712"]) assert.notInclude(everything, value)
      yield* press(page, "Headers…")
      yield* text(page, "Its requests carry X-Tenant.")
      yield* press(page, "Remove all headers")
      yield* Effect.promise(() => page.waitForFunction(() => !document.body.innerText.includes("X-Tenant")))

      yield* press(page, "Send again…")
      yield* press(page, "Count")
      yield* text(page, "There is none in this span.")
      yield* press(page, "Cancel")

      yield* press(page, "Deliveries")
      yield* heading(page, "Deliveries")
      yield* Effect.promise(() => page.waitForSelector("tbody tr"))
      const webhooks = yield* Effect.promise(() =>
        page.$$eval('td[data-label="Webhook"]', (cells) => cells.map((one) => (one as HTMLElement).innerText))
      )
      assert.deepStrictEqual(webhooks, [url, url])
      yield* everyLook(at, "deliveries")
      yield* press(page, "email.opened", "th a")
      yield* heading(page, "email.opened")
      yield* press(page, "Cancel the delivery…")
      yield* text(page, "No further attempt is made to deliver this event.")
      yield* everyLook(at, "delivery-cancelling")
      yield* press(page, "Keep trying")
      yield* text(page, "Try now")
      yield* press(page, "Cancel the delivery…")
      yield* press(page, "Cancel the delivery")
      yield* text(page, "It is cancelled: no further attempt is made.")
      yield* press(page, "Deliveries")
      yield* heading(page, "Deliveries")
      // What has ended is sent again from its row.
      yield* press(page, "Send again")
      yield* text(page, "It is sent again.")
      yield* Effect.promise(() => page.waitForFunction(() => !document.body.innerText.includes("Send again")))
      yield* press(page, "email.delivered", "th a")
      yield* heading(page, "email.delivered")
      yield* text(page, "No attempt was made yet.")
      yield* text(page, "recipient")
      // The first attempt ends; no process of this test sends anything.
      const { sql } = yield* Database
      yield* sql`update deliveries set first_started_at = created_at, first_duration_ms = 12, first_response_status = 200,
        endpoint_url = ${url}`
      yield* press(page, "Headers of the last attempt")
      yield* text(page, "X-Webhook-Delivery")
      yield* text(page, "v1,…")
      yield* everyLook(at, "delivery")
      yield* press(page, "As it was sent")
      yield* text(page, '{"event":"')
      yield* press(page, "Copy as curl")

      yield* press(page, "Event types")
      yield* text(page, `Taken by ${url}`)
      yield* text(page, "Its metadata has subject, tag")
      yield* press(page, "Its JSON schema")
      yield* text(page, "https://json-schema.org/draft/2020-12/schema")
      yield* everyLook(at, "event-types")
      yield* press(page, "Subscribe a webhook…")
      yield* text(page, "Let a webhook take email.sent")
      yield* everyLook(at, "event-types-subscribing")
      yield* press(page, "Subscribe it")
      yield* text(page, `${url} takes email.sent from now on.`)

      yield* press(page, "Webhooks")
      yield* press(page, url)
      yield* press(page, "Delete…")
      yield* fill(page, "Its address", url)
      yield* press(page, "Delete it for good")
      yield* text(page, "There is no webhook yet.")
    }))

  it.effect("an address that is refused is refused beside its field; another account's webhook is none", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Bob", {}, "/console/webhooks")
      yield* press(at.page, "Create a webhook…")
      yield* text(at.page, "email.bounced")
      yield* fill(at.page, "Address", "ftp://hooks.example.com/mail")
      yield* clickOn(at.page, "dialog[open] input[type=checkbox]")
      yield* press(at.page, "Create the webhook")
      yield* Effect.promise(() => at.page.waitForSelector("dialog[open] .fault"))
      yield* at.open("/console/webhooks/0199c0de-0000-7000-8000-000000000099", "Webhook")
      yield* text(at.page, "There is no such thing, or it is not yours.")
    }))

  it.effect("what was done although its answer was lost is not done again by a second press", () =>
    Effect.gen(function* () {
      const opened = yield* inConsole("Carol", {}, "/console/webhooks")
      const lost = /ERR_CONNECTION_RESET/
      const at = {
        ...opened,
        get complaints() {
          return opened.complaints.filter((one) => !lost.test(one))
        },
      }
      const { page } = at
      const read = (path: string) =>
        Effect.promise(() => page.evaluate(async (path: string) => await (await fetch(path)).json(), path))
      /** Presses a button whose answer is lost, and once more. */
      const twice = Effect.fnUntraced(function* (path: string, button: string) {
        yield* losingAnswer(at, path)
        yield* press(page, button)
        yield* text(page, "The server does not answer")
        yield* press(page, button)
      })
      yield* press(page, "Create a webhook…")
      yield* text(page, "email.bounced")
      yield* fill(page, "Address", url)
      yield* clickOn(page, "dialog[open] input[type=checkbox]")
      yield* twice("/v1/webhooks/", "Create the webhook")
      yield* text(page, "The webhook was made by an earlier try, whose answer did not arrive.")
      yield* everyLook(at, "webhook-made-already")
      const webhooks = yield* read("/v1/webhooks/?include_paused=true")
      assert.strictEqual(webhooks.length, 1)
      yield* press(page, "Go to the webhook")
      yield* heading(page, url)

      yield* press(page, "Send a test…")
      yield* text(page, "The recipient's mail server confirmed the delivery.")
      yield* twice("/test", "Send the test")
      yield* text(page, "A sample event is on its way.")
      const { items } = yield* read("/v1/webhook-deliveries")
      assert.strictEqual(items.length, 1)

      yield* press(page, "New secret…")
      yield* twice("/rotate-secret", "Make a new secret")
      yield* text(page, "A new secret was made by an earlier try, whose answer did not arrive.")
      yield* press(page, "Close")
      yield* press(page, "New secret…")
      yield* press(page, "Make a new secret")
      assert.match(yield* secretOf(page), /^whsec_/)
      yield* press(page, "I have kept it")

      yield* at.open("/console/api-keys", "API keys")
      const before = yield* read("/v1/api-keys/")
      yield* press(page, "Create a key…")
      yield* fill(page, "Name", "Twice")
      yield* twice("/v1/api-keys/", "Create the key")
      yield* text(page, "The key was made by an earlier try, whose answer did not arrive.")
      assert.strictEqual((yield* read("/v1/api-keys/")).length, before.length + 1)
    }))

  it.effect("makes a key that is shown once and revokes it, and chooses where it is told", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Alice", {}, "/console/api-keys")
      const { page } = at
      yield* text(page, "Demo")
      yield* press(page, "Create a key…")
      yield* fill(page, "Name", "Newsletter")
      yield* press(page, "Create the key")
      const key = yield* secretOf(page)
      assert.match(key, /^mail_k_/)
      yield* everyLook(at, "key-shown-once")
      yield* press(page, "I have kept it")
      yield* text(page, "Newsletter")
      assert.notInclude(yield* Effect.promise(() => page.content()), key)
      yield* everyLook(at, "api-keys")
      yield* press(page, "Revoke…")
      yield* press(page, "Revoke it for good")
      yield* text(page, "The key Newsletter is revoked.")

      yield* press(page, "Notifications")
      yield* heading(page, "Notifications")
      yield* text(page, "Where you are told")
      yield* Effect.promise(() => page.waitForSelector("section input[type=checkbox]"))
      yield* everyLook(at, "notifications")
      yield* clickOn(page, "section tbody tr:nth-child(2) td:last-child input")
      yield* text(page, "Your choice is kept.")
      const { preferences } = yield* Effect.promise(() =>
        page.evaluate(async () => await (await fetch("/v1/notifications/preferences")).json())
      )
      assert.isTrue(preferences.sends.slack)
      yield* at.open(`/console/notifications?after=${"0".repeat(8)}-0000-7000-8000-${"0".repeat(12)}`, "Notifications")
      yield* text(page, "The list ends before this place.")
      yield* press(page, "First notifications")
      yield* text(page, "Mark as read")
    }))
})
