/** People decide at the console, in real Chromium: a sponsor proposes, an administrator approves what was on screen. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "puppeteer-core"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { Chromium, deciderAt, everyLook, fill, heading, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const reviewsOf = (page: Page) =>
  Effect.promise(() =>
    page.evaluate(
      async (path: string) => await (await fetch(path)).json(),
      `/v1/institutions/${demoIdentityIds.fern}/access-grant-reviews`,
    )
  )

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "decisions at the console",
  (it) => {
    it.effect("a review is proposed, approved as it was on screen, and a stale approval is refused", () =>
      Effect.gen(function* () {
        const sam = yield* deciderAt("Sam", "/console/reviews", "Access reviews")
        yield* text(sam.page, "No Access was reviewed yet.")
        yield* text(sam.page, "Fern Portal")
        yield* everyLook(sam, "reviews-candidates")
        yield* press(sam.page, "Propose…")
        yield* fill(sam.page, "Reason", "short")
        yield* text(sam.page, "3 more characters at least.")
        yield* fill(sam.page, "Reason", "still works on the portal")
        yield* everyLook(sam, "review-proposing")
        yield* press(sam.page, "Propose the review")
        yield* text(sam.page, "Every active Access has a review.")

        const ada = yield* deciderAt("Ada", "/console/decide", "To decide")
        yield* text(ada.page, "No request waits for your signature.")
        yield* text(ada.page, "1 review waits for an administrator's approval.")
        yield* everyLook(ada, "decide-reviews")
        yield* press(ada.page, "Look at the access reviews")
        yield* heading(ada.page, "Access reviews")
        const abe = yield* deciderAt("Abe", "/console/reviews", "Access reviews")
        yield* everyLook(ada, "reviews")
        yield* press(abe.page, "Approve…")
        yield* fill(abe.page, "Reason", "I looked at it, too")

        yield* press(ada.page, "Approve…")
        yield* text(ada.page, "Sam vouches for Pat: “still works on the portal”")
        yield* fill(ada.page, "Reason", "looked at it myself")
        yield* press(ada.page, "Approve")
        yield* text(ada.page, "approved")
        const [approved] = (yield* reviewsOf(ada.page)).reviews
        assert.strictEqual(approved.state, "approved")
        yield* everyLook(ada, "reviews-approved")

        // Abe decides on evidence that Ada's approval has replaced.
        yield* press(abe.page, "Approve")
        yield* text(abe.page, "The review has changed since you opened this.")
        yield* press(abe.page, "Cancel")
        yield* text(abe.page, "approved")
        const [after] = (yield* reviewsOf(ada.page)).reviews
        assert.strictEqual(after.evidence_digest, approved.evidence_digest)

        yield* press(ada.page, "Revoke…")
        yield* fill(ada.page, "Reason", "the work has ended")
        yield* press(ada.page, "Revoke")
        yield* text(ada.page, "it was revoked")
      }))

    it.effect("an invitation that Sam asked for waits for Ada, who declines it", () =>
      Effect.gen(function* () {
        const sam = yield* deciderAt("Sam", "/console/decide", "To decide")
        yield* text(sam.page, "No request waits for your signature.")
        const asked = yield* Effect.promise(() =>
          sam.page.evaluate(async (path: string) => {
            const response = await fetch(path, {
              method: "POST",
              headers: { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
              body: JSON.stringify({ recipient: "new@fern.example", reason: "joins the team on Monday" }),
            })
            return response.status
          }, `/v1/institutions/${demoIdentityIds.fern}/enrollments`)
        )
        assert.strictEqual(asked, 201)
        yield* sam.open("/console/requests", "My requests")
        yield* text(sam.page, "joins the team on Monday")
        yield* text(sam.page, "n***@fern.example")
        yield* everyLook(sam, "requests")
        const ada = yield* deciderAt("Ada", "/console/decide", "To decide")
        yield* text(ada.page, "joins the team on Monday")
        yield* text(ada.page, "Sam asked")
        yield* everyLook(ada, "decide")
        yield* press(ada.page, "Decline…")
        yield* fill(ada.page, "Reason", "the team is complete")
        yield* press(ada.page, "Decline as administrator")
        yield* text(ada.page, "No request waits for your signature.")
        yield* sam.open("/console/requests", "My requests")
        yield* text(sam.page, "revoked")
      }))
  },
)
