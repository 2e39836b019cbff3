/** A person's own requests at the console, in real Chromium: withdrawn while nobody has decided them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Chromium, deciderAt, everyLook, fill, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const moss = {
  name: "Moss",
  organization_type: "school",
  website: "https://moss.example",
  domains: ["moss.example"],
  purpose: "to teach what we know",
  contacts: [{ name: "Mo", email: "mo@moss.example" }],
  reason: "the school opens in May",
}

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "own requests at the console",
  (it) => {
    it.effect("Pat withdraws a request for an institution, which no longer waits for Oz", () =>
      Effect.gen(function* () {
        const pat = yield* deciderAt("Pat", "/console/requests", "My requests")
        const asked = yield* Effect.promise(() =>
          pat.page.evaluate(async (body: string) => {
            const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() }
            return (await fetch("/v1/me/organization-requests", { method: "POST", headers, body })).status
          }, JSON.stringify(moss))
        )
        assert.strictEqual(asked, 201)
        yield* pat.open("/console/requests", "My requests")
        const oz = yield* deciderAt("Oz", "/console/decide", "To decide")
        yield* text(oz.page, "the school opens in May")
        yield* press(pat.page, "Withdraw…")
        yield* fill(pat.page, "Reason", "the school opens next year")
        yield* everyLook(pat, "request-withdrawing")
        yield* press(pat.page, "Withdraw it")
        yield* text(pat.page, "withdrawn")
        yield* everyLook(pat, "request-withdrawn")
        yield* oz.open("/console/decide", "To decide")
        yield* text(oz.page, "No request waits for your signature.")
      }))
  },
)
