/** What waits for an operator's word at the console, in real Chromium. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { reason } from "../../../support/Fixtures.ts"
import { Chromium, everyLook, fill, heading, inConsole, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const stage = Layer.merge(staged(), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("an operator's word at the console", (it) => {
  it.effect("opens a held installation, with a reason that the audit keeps", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const at = yield* inConsole("Oz")
      yield* text(at.page, "checks are fine")
      const missing = [{ stream: "LIFECYCLE", project_id: "fern", epoch: 1, first: 3, last: 4 }]
      yield* sql`update installation set state = 'held', held_since = now(), held_reason = 'messages_missing',
        missing = ${sql.json(missing)}`
      yield* press(at.page, "Installation")
      yield* heading(at.page, "Installation")
      yield* text(at.page, "messages that may be revocations are missing on the broker")
      yield* text(at.page, "position 3 to 4 of epoch 1")
      yield* everyLook(at, "installation-held")
      yield* press(at.page, "Open…")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "installation-open")
      yield* press(at.page, "Open the installation")
      yield* text(at.page, "Opened after a hold")
      yield* everyLook(at, "installation-opened")
      const records = yield* sql`select details from audit_records where action = 'installation.opened'`
      assert.deepStrictEqual(records, [{ details: { reason, held_reason: "messages_missing" } }])
    }))

  it.effect("a sponsor has none of these pages", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Sam", {}, "/console/operations/installation")
      yield* heading(at.page, "There is no such page")
      const status = yield* Effect.promise(() =>
        at.page.evaluate(async () => (await fetch("/v1/operations/installation")).status)
      )
      assert.strictEqual(status, 403)
    }))
})
