/** The operator's pages of the console, in real Chromium. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { Chromium, everyLook, fill, heading, inConsole, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const stage = Layer.merge(staged(), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("an operator at the console", (it) => {
  it.effect("lands on the findings, and goes through queues, dead letters, bus and audit", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Oz")
      yield* heading(at.page, "Findings")
      yield* text(at.page, "checks are fine")
      yield* text(at.page, "task cli doctor")
      yield* everyLook(at, "findings")

      yield* press(at.page, "Queues")
      yield* heading(at.page, "Queues")
      yield* text(at.page, "Deliveries, first tries")
      yield* text(at.page, "No delivery waits for any webhook.")
      yield* everyLook(at, "queues")

      yield* press(at.page, "Bus")
      yield* heading(at.page, "Bus")
      yield* text(at.page, "LIFECYCLE")
      yield* everyLook(at, "bus")

      yield* press(at.page, "Audit")
      yield* heading(at.page, "Audit")
      yield* text(at.page, "console-session.opened")
      yield* everyLook(at, "audit")
      const actors = yield* Effect.promise(() =>
        at.page.$$eval('td[data-label="Actor"]', (cells) => cells.map((one) => (one as HTMLElement).innerText))
      )
      assert.isTrue(actors.some((one) => one.startsWith("you\nperson:")), actors.join())
      yield* fill(at.page, "Action", "nothing.of-this-name\n")
      yield* text(at.page, "No record fits.")
      assert.strictEqual(new URL(at.page.url()).searchParams.get("action"), "nothing.of-this-name")

      yield* press(at.page, "Dead letters")
      yield* heading(at.page, "Dead letters")
      yield* text(at.page, "No delivery was given up.")
      yield* press(at.page, "Send many again…")
      yield* everyLook(at, "dead-letters")
      yield* fill(at.page, "Id of the webhook", randomUUID())
      yield* press(at.page, "Count")
      yield* text(at.page, "There is no such thing, or it is not yours.")
    }))

  it.effect("a sponsor sees none of it, and the activity of nobody else", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Sam", {}, "/console/operations/audit")
      yield* heading(at.page, "There is no such page")
      yield* at.open("/console/activity", "Your activity")
      yield* text(at.page, "console-session.opened")
      yield* everyLook(at, "activity")
      const rows = yield* Effect.promise(() => at.page.$$eval("tbody tr", ({ length }) => length))
      const { items } = yield* Effect.promise(() =>
        at.page.evaluate(async () => await (await fetch("/v1/me/audit")).json())
      )
      assert.strictEqual(rows, items.length)
    }))
})
