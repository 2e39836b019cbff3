/** Signing keys at the console, in real Chromium. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { reason } from "../../../support/Fixtures.ts"
import { Chromium, everyLook, fill, heading, inConsole, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const stage = Layer.merge(staged(), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("signing keys at the console", (it) => {
  it.effect("an operator announces the next key, publishes it, lets projects switch, takes a stolen key out of use and retires one", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const at = yield* inConsole("Oz")
      yield* text(at.page, "checks are fine")
      yield* press(at.page, "Signing keys")
      yield* heading(at.page, "Signing keys")
      yield* text(at.page, "task cli keys list")
      yield* press(at.page, "Announce the next key…")
      yield* fill(at.page, "No project switches within (days)", "2")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "keys-announce")
      yield* press(at.page, "Announce")
      yield* text(at.page, "Activate now…")
      yield* text(at.page, "not told yet")
      yield* everyLook(at, "keys-announced")

      yield* press(at.page, "Publish now…")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "keys-publish")
      yield* press(at.page, "Publish")
      yield* text(at.page, "The key is in the key set.")
      yield* Effect.promise(() => at.page.waitForFunction(() => !document.body.innerText.includes("Publish now…")))

      yield* press(at.page, "Activate now…")
      yield* fill(at.page, "Reason", reason)
      yield* press(at.page, "Activate")
      yield* text(at.page, "Projects may switch from now on.")

      const [{ kid }] = (yield* sql<{ kid: string }>`select kid from signing_keys where state = 'active'`) as [
        { kid: string },
      ]
      yield* press(at.page, "Take out of use…")
      yield* fill(at.page, "Reason", reason)
      const ready = Effect.promise(() =>
        at.page.$eval("dialog[open] button.stop", (button) => !(button as unknown as { disabled: boolean }).disabled)
      )
      assert.isFalse(yield* ready, "the key's id is not typed yet")
      yield* fill(at.page, "Type the key's id to confirm", kid)
      assert.isTrue(yield* ready)
      yield* everyLook(at, "keys-compromise")
      yield* press(at.page, "Take out of use")
      yield* text(at.page, "compromised")
      yield* everyLook(at, "keys-compromised")

      // The last of the keys that follow only verifies, as one that was in use.
      const [{ kid: old }] = (yield* sql<{ kid: string }>`
        update signing_keys set state = 'retiring', changed_at = now()
        where succession = (select max(succession) from signing_keys) returning kid`) as [{ kid: string }]
      yield* press(at.page, "Retire…")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "keys-retire")
      yield* press(at.page, "Retire")
      yield* text(at.page, "it still verifies: for seven days")
      yield* sql`update signing_keys set changed_at = now() - interval '8 days' where kid = ${old}`
      yield* press(at.page, "Retire")
      yield* text(at.page, "The key is retired.")
      assert.deepStrictEqual(yield* sql`select state from signing_keys where kid = ${old}`, [{ state: "retired" }])
      const records = yield* sql<{ action: string; actor: string; details: unknown }>`
        select action, actor, details from audit_records
        where action like 'signing-key.%' and actor like 'person:%' order by id`
      assert.deepStrictEqual(
        records.map(({ action, details }) => [action, details]),
        ["announce", "publish", "activate", "compromise", "retire"].map((what) => [`signing-key.${what}`, { reason }]),
      )
    }))

  it.effect("only operators have such a page", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Sam", {}, "/console/operations/signing-keys")
      yield* heading(at.page, "There is no such page")
      const status = yield* Effect.promise(() =>
        at.page.evaluate(async () => (await fetch("/v1/operations/signing-keys")).status)
      )
      assert.strictEqual(status, 403)
    }))
})
