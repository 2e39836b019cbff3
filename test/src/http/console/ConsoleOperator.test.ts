/** The operator's pages of the console, in real Chromium. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import type { Page } from "puppeteer-core"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import {
  choose,
  Chromium,
  downloads,
  everyLook,
  fill,
  heading,
  inConsole,
  looks,
  pictured,
  press,
  sound,
  text,
} from "./ConsoleBrowser.ts"
import { signedIn, staged } from "./ConsoleStage.ts"

/** Presses a button, and reads what it copied. */
const copied = (page: Page, words: string) =>
  Effect.gen(function* () {
    const granted = ["clipboard-read", "clipboard-write"].map((name) => ({
      permission: { name },
      state: "granted" as const,
    }))
    yield* Effect.promise(() => page.browserContext().setPermission(new URL(page.url()).origin, ...granted))
    yield* press(page, words)
    yield* text(page, "Copied")
    return yield* Effect.promise(() => page.evaluate(() => navigator.clipboard.readText()))
  })

const stage = Layer.merge(staged(), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("an operator at the console", (it) => {
  it.effect("lands on the findings, and goes through queues, dead letters, bus and audit", () =>
    Effect.gen(function* () {
      // An action of a mail account, for the audit.
      yield* signedIn("Alice")
      const at = yield* inConsole("Oz")
      yield* heading(at.page, "Findings")
      yield* text(at.page, "checks are fine")
      const said = yield* Effect.promise(() =>
        at.page.$$eval("main dt, main dd", (all) => all.map((one) => one.textContent!))
      )
      assert.deepStrictEqual(said.filter((one) => /^[a-z]+( |$)/.test(one)), [], "findings begin as sentences do")
      yield* text(at.page, "task cli doctor")
      yield* everyLook(at, "findings")

      yield* press(at.page, "Queues")
      yield* heading(at.page, "Queues")
      yield* text(at.page, "Deliveries, first tries")
      yield* text(at.page, "No delivery waits for any webhook.")
      yield* text(at.page, "Done a minute")
      yield* text(at.page, "with first tries")
      yield* everyLook(at, "queues")

      yield* press(at.page, "Bus")
      yield* heading(at.page, "Bus")
      yield* text(at.page, "LIFECYCLE")
      yield* text(at.page, "0 B")
      yield* text(at.page, "Sequence numbers")
      yield* text(at.page, "Behind by")
      yield* press(at.page, "Follow")
      yield* text(at.page, "Live: this page follows what happens.")
      yield* text(at.page, "Nothing has passed since this page follows.")
      const bus = yield* Bus
      yield* bus.publish("webhooks.v1.dead.shown", `{"shown":"here"}`)
      yield* text(at.page, `{"shown":"here"}`)
      yield* bus.publish("notifications.v1.shown.domain", `{"title":"told to an account"}`)
      yield* text(at.page, "not shown here")
      yield* everyLook(at, "bus")
      const offered = Effect.promise(() =>
        at.page.$$eval("#tail ~ p.note code", (all) => all.map((one) => one.textContent))
      )
      assert.deepStrictEqual(yield* offered, ["npx -y deno@2.9.6 task cli tail", "nats sub '>'"])
      yield* fill(at.page, "Subject", "webhooks.v1.dead.*\n")
      yield* text(at.page, "nats sub 'webhooks.v1.dead.*'")
      assert.deepStrictEqual(yield* offered, [
        "npx -y deno@2.9.6 task cli tail 'webhooks.v1.dead.*'",
        "nats sub 'webhooks.v1.dead.*'",
      ])
      yield* text(at.page, "Live: this page follows what happens.")
      yield* bus.publish("webhooks.v1.dead.again", `{"shown":"again"}`)
      yield* text(at.page, `{"shown":"again"}`)
      assert.strictEqual(yield* copied(at.page, "Copy subject"), "webhooks.v1.dead.again")

      yield* press(at.page, "Audit")
      yield* heading(at.page, "Audit")
      yield* text(at.page, "console-session.opened")
      yield* everyLook(at, "audit")
      const actors = yield* Effect.promise(() =>
        at.page.$$eval('td[data-label="Actor"]', (cells) => cells.map((one) => (one as HTMLElement).innerText))
      )
      assert.isTrue(actors.some((one) => one.startsWith("you\nperson:")), actors.join())
      assert.isTrue(actors.some((one) => one.startsWith("Alice\naccount:")), actors.join())
      const downloaded = yield* downloads(at)
      const lines = yield* downloaded("audit.ndjson", press(at.page, "Download these records"))
      const csv = yield* downloaded("audit.csv", press(at.page, "as CSV"))
      assert.match(csv, /^\ufeffid,at,request_id,/)
      assert.include(csv, ",console-session.opened,")
      const whole = yield* downloaded("all-audit.csv", press(at.page, "Download all as CSV"))
      assert.match(whole, /^\ufeffid,at,request_id,(.*\r\n){2}/)
      const records = lines.trim().split("\n").map((line) => JSON.parse(line))
      assert.isTrue(records.some(({ action }) => action === "console-session.opened"))
      const request = yield* Effect.promise(() =>
        at.page.$eval('td[data-label="Request"] a', (one) => one.textContent ?? "")
      )
      yield* press(at.page, request)
      yield* Effect.promise(() => at.page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1))
      assert.strictEqual(new URL(at.page.url()).search, `?request_id=${request}`)
      yield* press(at.page, "Clear the filters")
      yield* Effect.promise(() => at.page.waitForFunction(() => document.querySelectorAll("tbody tr").length > 1))
      yield* fill(at.page, "Action", "nothing.of-this-name\n")
      yield* text(at.page, "Nothing fits. Clear the filters to see everything.")
      assert.strictEqual(new URL(at.page.url()).searchParams.get("action"), "nothing.of-this-name")

      // What a link chooses stands in the command as one word, of which a shell runs nothing.
      yield* at.open("/console/operations/audit?within=7d&subject=x%27%24%28id%29", "Audit")
      yield* text(at.page, "task cli audit --subject 'x'\\''$(id)' --since 7d")

      yield* press(at.page, "Dead letters")
      yield* heading(at.page, "Dead letters")
      yield* text(at.page, "No delivery was given up.")
      yield* press(at.page, "Send many again…")
      yield* everyLook(at, "dead-letters")
      yield* fill(at.page, "Id of the webhook", randomUUID())
      yield* press(at.page, "Count")
      yield* text(at.page, "There is no such thing, or it is not yours.")
    }))

  it.effect("on a phone the menu and the filters open by a button, and a page begins with what it lists", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Oz", { viewport: looks.phone.viewport }, "/console/operations/audit")
      const { page } = at
      yield* heading(page, "Audit")
      yield* text(page, "console-session.opened")
      const shown = (what: string) =>
        Effect.promise(() => page.$eval(what, (one) => one.checkVisibility({ visibilityProperty: true })))
      assert.isFalse(yield* shown("#menu"))
      assert.isFalse(yield* shown(".filters"))
      const top = yield* Effect.promise(() => page.$eval("tbody tr", (one) => one.getBoundingClientRect().top))
      assert.isBelow(top, looks.phone.viewport.height / 3)

      yield* press(page, "Filters")
      yield* choose(page, "Outcome", "Refused")
      yield* text(page, "Filters, 1 set")
      yield* everyLook(at, "audit-filtered")
      yield* Effect.promise(() => page.setViewport(looks.phone.viewport))
      yield* press(page, "Clear the filters")
      yield* text(page, "console-session.opened")
      assert.strictEqual(new URL(page.url()).search, "")

      yield* press(page, "Menu")
      yield* sound(at, "the menu on a phone")
      yield* pictured(page, "menu-open-phone")
      yield* press(page, "Queues")
      yield* heading(page, "Queues")
      assert.isFalse(yield* shown("#menu"))
    }))

  it.effect("a sponsor sees none of it, and no other person's activity", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Sam", {}, "/console/operations/audit")
      yield* heading(at.page, "There is no such page")
      yield* at.open("/console/activity", "My activity")
      yield* text(at.page, "console-session.opened")
      yield* everyLook(at, "activity")
      const rows = yield* Effect.promise(() => at.page.$$eval("tbody tr", ({ length }) => length))
      const { items } = yield* Effect.promise(() =>
        at.page.evaluate(async () => await (await fetch("/v1/me/audit")).json())
      )
      assert.strictEqual(rows, items.length)
    }))
})
