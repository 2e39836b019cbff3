/** An operator pauses an account's webhook at the console, in real Chromium; the account sees by whom, and not why. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Chromium, everyLook, fill, inConsole, press, text } from "./ConsoleBrowser.ts"
import { ownPage, signedIn, staged } from "./ConsoleStage.ts"

const url = "https://hooks.example/held"

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "a webhook that an operator paused",
  (it) => {
    it.effect("is resumed by an operator alone", () =>
      Effect.gen(function* () {
        const alice = yield* signedIn("Alice")
        const made = yield* alice.ask("POST", "/v1/webhooks/", {
          json: { url, events: ["email.sent"] },
          headers: ownPage,
        })
        assert.strictEqual(made.status, 201, made.text)
        const { owner } = yield* Database
        yield* owner`
          insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
          select gen_random_uuid(), id, account_id, gen_random_uuid(), 1, 2, now() + interval '1 hour'
          from webhooks cross join generate_series(1, 3) where id = ${made.body.id}::uuid`

        const oz = yield* inConsole("Oz", {}, "/console/operations/queues")
        yield* text(oz.page, url)
        yield* press(oz.page, "Try now…")
        yield* fill(oz.page, "Reason", "their server is back")
        yield* everyLook(oz, "queues-kicking")
        yield* press(oz.page, "Try it now")
        yield* text(oz.page, "What waits is due now.")
        yield* press(oz.page, "Pause…")
        yield* fill(oz.page, "Reason", "floods a third party")
        yield* press(oz.page, "Pause it")
        yield* text(oz.page, "paused by an operator")
        yield* everyLook(oz, "queues-paused")

        const seen = yield* inConsole("Alice", {}, "/console/webhooks")
        yield* text(seen.page, "only an operator can resume it")
        const shown = yield* Effect.promise(() => seen.page.evaluate(() => document.body.innerText))
        assert.notInclude(shown, "floods a third party")
        assert.isFalse(/^Resume$/m.test(shown))
        yield* everyLook(seen, "webhooks-held")
        const refused = yield* alice.ask("PATCH", `/v1/webhooks/${made.body.id}`, {
          json: { is_active: true },
          headers: ownPage,
        })
        assert.deepStrictEqual([refused.status, refused.body.code], [409, "paused_by_operator"])

        yield* press(oz.page, "Resume…")
        yield* fill(oz.page, "Reason", "they have mended it")
        yield* press(oz.page, "Resume it")
        yield* text(oz.page, "The operators' pause has ended.")
        yield* seen.open("/console/webhooks", "Webhooks")
        yield* text(seen.page, "Pause")
      }))
  },
)
