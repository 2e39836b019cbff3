/** The first page of a mail account, in real Chromium. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { demoIds } from "../../../../src/embedded/DemoDirectory.ts"
import { Chromium, everyLook, heading, inConsole, text } from "./ConsoleBrowser.ts"
import { signedIn, staged } from "./ConsoleStage.ts"

/** A webhook of Alice's, and 2,400 attempts over the last day, of which 95 % arrive. */
const busy = Effect.gen(function* () {
  const alice = yield* signedIn("Alice")
  const made = yield* alice.ask("POST", "/v1/webhooks/", {
    json: { url: "http://127.0.0.1:20999/", events: ["email.delivered"] },
    headers: { "sec-fetch-site": "same-origin" },
  })
  assert.strictEqual(made.status, 201, made.text)
  const { sql } = yield* Database
  const now = yield* Clock.currentTimeMillis
  yield* sql`insert into delivery_minutes (webhook_id, minute, outcome, n, ms_sum, ms_max)
    select ${made.body.id}::uuid, date_trunc('minute', ${new Date(
    now,
  )}::timestamptz) - h * interval '59 minutes', o.outcome, o.n,
      o.n * 40, 120
    from generate_series(0, 23) h cross join (values ('delivered', 95), ('failed', 4), ('dead_letter', 1)) o(outcome, n)`
})

/** Alice pauses her webhooks. */
const paused = Effect.gen(function* () {
  const alice = yield* signedIn("Alice")
  const { body } = yield* alice.ask("GET", "/v1/webhooks/")
  for (const { id } of body) {
    yield* alice.ask("PATCH", `/v1/webhooks/${id}`, {
      json: { is_active: false },
      headers: { "sec-fetch-site": "same-origin" },
    })
  }
})

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "the overview of a mail account",
  (it) => {
    it.effect("is where an account lands, and says how its webhooks do", () =>
      Effect.gen(function* () {
        const bob = yield* inConsole("Bob")
        yield* heading(bob.page, "Overview")
        yield* text(bob.page, "Nothing was sent in the last day.")
        yield* text(bob.page, "No delivery failed for good.")
        yield* everyLook(bob, "overview-empty")

        yield* busy
        const at = yield* inConsole("Alice", {}, "/console/overview")
        yield* text(at.page, "95%")
        yield* text(at.page, "2,400")
        yield* text(at.page, "40 ms")
        yield* text(at.page, "No domain is offered to you")
        const shown = yield* Effect.promise(() =>
          at.page.$$eval(".plot rect.bad", (all) => all.filter((one) => Number(one.getAttribute("height")) > 0).length)
        )
        assert.strictEqual(shown, 24)
        yield* everyLook(at, "overview")
        assert.notInclude(yield* Effect.promise(() => at.page.content()), demoIds.bob)
        assert.notInclude(yield* Effect.promise(() => at.page.content()), "Webhooks that need you")

        yield* at.open("/console/webhooks", "Webhooks")
        yield* text(at.page, "95%")
        const failing = yield* Effect.promise(() =>
          at.page.$$eval(".sparkline rect.bad", (all) =>
            all.filter((one) => Number(one.getAttribute("height")) > 0).length)
        )
        assert.isAtLeast(failing, 22, "attempts fail in each hour")
        yield* everyLook(at, "webhooks-day")

        yield* paused
        yield* at.open("/console/overview", "Overview")
        yield* text(at.page, "Webhooks that need you")
        yield* text(at.page, "paused")
        yield* everyLook(at, "overview-paused")
      }))

    it.effect("a person without a mail account has no such page", () =>
      Effect.gen(function* () {
        const pat = yield* inConsole("Pat", {}, "/console/overview")
        yield* heading(pat.page, "There is no such page")
      }))
  },
)
