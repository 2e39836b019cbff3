/** People decide at the console, in real Chromium: a sponsor proposes, an administrator approves what was on screen. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "puppeteer-core"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { InstitutionId, ProjectId } from "../../../../schemas/BrandedIds.ts"
import { access as grant, person } from "../../../support/TestIdentity.ts"
import {
  choose,
  Chromium,
  deciderAt,
  everyLook,
  fill,
  heading,
  inHand,
  pictured,
  press,
  sound,
  text,
  thin,
} from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const reviewsOf = (page: Page) =>
  Effect.promise(() =>
    page.evaluate(
      async (path: string) => await (await fetch(path)).json(),
      `/v1/institutions/${demoIdentityIds.fern}/access-grant-reviews`,
    )
  )

/** The buttons by which the reviews on the page can be decided. */
const offered = (page: Page) =>
  Effect.promise(() =>
    page.$$eval('td[data-label="Decide"] button:enabled', (all) => all.map((one) => one.textContent?.trim()))
  )

/** Asks the API within the page, as the console does; the answer's body. */
const posted = (page: Page, path: string, body: object) =>
  Effect.promise(() =>
    page.evaluate(
      async (path: string, body: string) => {
        const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() }
        const response = await fetch(path, { method: "POST", headers, body })
        return [response.status, await response.json()] as const
      },
      path,
      JSON.stringify(body),
    )
  )

const access = { institution_id: demoIdentityIds.fern, project_id: demoIdentityIds.fernPortal }

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "decisions at the console",
  (it) => {
    it.effect("a review is proposed, approved as it was on screen, and a stale approval is refused", () =>
      Effect.gen(function* () {
        const sam = yield* deciderAt("Sam", "/console/", "To decide")
        yield* press(sam.page, "Fern Portal")
        yield* heading(sam.page, "Fern Portal")
        yield* press(sam.page, "Access reviews")
        yield* heading(sam.page, "Access reviews")
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
        // A Sponsor approves nothing, and may take their own proposal back.
        yield* text(sam.page, "waits for an administrator")
        assert.deepStrictEqual(yield* offered(sam.page), ["Revoke…", "Evidence…"])
        yield* everyLook(sam, "reviews-proposed")

        const [proposed] = (yield* reviewsOf(sam.page)).reviews
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
        yield* sam.open("/console/reviews", "Access reviews")
        yield* text(sam.page, "approved")
        assert.deepStrictEqual(yield* offered(sam.page), ["Evidence…"])
        yield* press(sam.page, "Evidence…")
        yield* text(sam.page, "the chain holds")
        yield* text(sam.page, "Ada approved it")
        yield* text(sam.page, "“looked at it myself”")
        yield* text(sam.page, approved.evidence_digest)
        yield* everyLook(sam, "review-evidence")
        yield* press(sam.page, "Download with proofs, signed")
        yield* text(sam.page, "The file has the whole pack, signed.")
        yield* press(sam.page, "Close")

        // Abe decides on evidence that Ada's approval has replaced.
        yield* press(abe.page, "Approve")
        yield* text(abe.page, "The review has changed since you opened this.")
        yield* text(abe.page, "Ada wrote: “looked at it myself”")
        yield* Effect.promise(() => abe.page.waitForSelector("dialog[open] tbody tr"))
        const changed = yield* Effect.promise(() =>
          abe.page.$$eval(
            "dialog[open] tbody tr",
            (rows) => rows.map((row) => [...row.children].slice(0, 3).map((one) => one.textContent?.trim())),
          )
        )
        assert.deepInclude(changed, ["State", "proposed", "approved"])
        assert.deepStrictEqual(changed.at(-1), [
          "Evidence",
          ...[proposed, approved].map(({ evidence_digest }) => `${evidence_digest.slice(0, 23)}…`),
        ])
        // The browser names the answer that refuses.
        yield* pictured(abe.page, "review-difference")
        yield* press(abe.page, "Cancel")
        yield* text(abe.page, "approved")
        const [after] = (yield* reviewsOf(ada.page)).reviews
        assert.strictEqual(after.evidence_digest, approved.evidence_digest)

        yield* press(ada.page, "This review")
        yield* heading(ada.page, "Access review of Pat")
        assert.include(ada.page.url(), approved.review_id)
        yield* text(ada.page, "the chain holds")
        yield* text(ada.page, "“looked at it myself”")
        yield* everyLook(ada, "review-one")
        yield* press(ada.page, "Revoke…")
        yield* fill(ada.page, "Reason", "the work has ended")
        yield* press(ada.page, "Revoke")
        yield* text(ada.page, "it was revoked")
      }))

    it.effect("on a phone, by taps alone, a reviewer reads the four facts of a review and approves it", () =>
      Effect.gen(function* () {
        const [institution, project] = [access.institution_id, access.project_id]
        const rae = yield* person({ display_name: "Rae" })
        const access_id = yield* grant(InstitutionId.make(institution), ProjectId.make(project), rae)
        const sam = yield* deciderAt("Sam", "/console/reviews", "Access reviews")
        const proposal = { access_id, access_version: 1, reason: "still works on the portal" }
        const [status] = yield* posted(sam.page, `/v1/institutions/${institution}/access-grant-reviews`, proposal)
        assert.strictEqual(status, 201)

        const ada = yield* deciderAt("Ada", "/console/decide", "To decide", inHand)
        const { page } = ada
        yield* press(page, "Look at the access reviews")
        yield* heading(page, "Access reviews")
        yield* text(page, "Rae")
        const facts = yield* Effect.promise(() =>
          page.evaluate(() => {
            const row = [...document.querySelectorAll("tbody tr")].find((one) =>
              one.textContent?.includes("Rae") && one.querySelector('[data-label="Decided"]') !== null
            )!
            return ["Decided", "Delivered", "Acknowledged", "In effect"].map((name) => {
              const cell = row.querySelector<HTMLElement>(`td[data-label="${name}"]`)!
              return cell.checkVisibility() && getComputedStyle(cell, "::before").content === `"${name}"` &&
                cell.innerText.trim() !== "" && cell.getBoundingClientRect().right <= innerWidth
            })
          })
        )
        assert.deepStrictEqual(facts, [true, true, true, true])
        yield* sound(ada, "a review in a hand")
        yield* pictured(page, "review-in-hand")
        assert.deepStrictEqual(yield* thin(page), [])
        yield* press(page, "Approve…")
        yield* text(page, "Sam vouches for Rae")
        yield* fill(page, "Reason", "looked at it on the way")
        yield* text(page, "It would be accepted now.")
        yield* sound(ada, "an approval in a hand")
        yield* pictured(page, "review-approving-in-hand")
        assert.deepStrictEqual(yield* thin(page), [])
        yield* press(page, "Approve")
        yield* text(page, "The review is approved.")
        const { reviews } = yield* reviewsOf(page)
        const decided = reviews.find(({ person_id }: { person_id: string }) => person_id === rae)
        assert.strictEqual(decided.state, "approved")
      }))

    it.effect("an invitation that Sam asked for waits for Ada, who declines it", () =>
      Effect.gen(function* () {
        const sam = yield* deciderAt("Sam", "/console/decide", "To decide")
        yield* text(sam.page, "No request waits for your signature.")
        const invited = { recipient: "new@fern.example", reason: "joins the team on Monday" }
        const [asked] = yield* posted(sam.page, `/v1/institutions/${demoIdentityIds.fern}/enrollments`, invited)
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
        yield* choose(ada.page, "Begin with", "It is not needed")
        const begun = yield* Effect.promise(() =>
          ada.page.$eval("dialog[open] textarea", (one) => (one as HTMLTextAreaElement).value)
        )
        assert.strictEqual(begun, "It is not needed for the work here")
        yield* fill(ada.page, "Reason", "the team is complete")
        yield* press(ada.page, "Decline as administrator")
        yield* text(ada.page, "No request waits for your signature.")
        yield* sam.open("/console/requests", "My requests")
        yield* text(sam.page, "revoked")
      }))

    it.effect("Oz asks for Access: Sam reads where and signs first, and both signatures are kept in view", () =>
      Effect.gen(function* () {
        const oz = yield* deciderAt("Oz", "/console/requests", "My requests")
        const [asked] = yield* posted(oz.page, "/v1/me/access-requests", { ...access, reason: "helps with the portal" })
        assert.strictEqual(asked, 201)
        const sam = yield* deciderAt("Sam", "/console/decide", "To decide")
        const { page } = sam
        yield* text(page, "helps with the portal")
        const facts = yield* Effect.promise(async () => {
          await page.waitForFunction(() => document.querySelector(".card dl")?.textContent?.includes("Fern Portal"))
          return await page.$$eval(
            ".card dl > div",
            (all) => all.map((one) => [...one.children].map(({ textContent }) => textContent?.trim())),
          )
        })
        assert.deepStrictEqual(facts, [["Institution", "Fern"], ["Project", "Fern Portal"]])
        yield* everyLook(sam, "decide-access")
        const abe = yield* deciderAt("Abe", "/console/decide", "To decide")
        yield* text(abe.page, "helps with the portal")
        yield* press(page, "Approve…")
        yield* text(page, "It would be accepted now.")
        yield* everyLook(sam, "decide-preview")
        yield* fill(page, "Reason", "the portal needs a hand")
        yield* press(page, "Approve as sponsor")
        yield* text(page, "signed by you, waits for another")
        yield* everyLook(sam, "decide-signed")
        yield* choose(page, "Show", "What you decided")
        yield* text(page, "signed by you, waits for another")
        yield* press(page, "Access to a project")
        yield* heading(page, "One request")
        yield* text(page, "helps with the portal")
        yield* text(page, "Who may sign it now")
        yield* text(page, "Abe as administrator")
        const able = yield* Effect.promise(() =>
          page.$$eval(".card h3 + ul > li", (all) => all.map(({ textContent }) => textContent?.trim()))
        )
        assert.deepStrictEqual(able.sort(), ["Abe as administrator", "Ada as administrator"])
        yield* everyLook(sam, "decide-one")
        const ada = yield* deciderAt("Ada", "/console/decide", "To decide")
        yield* text(ada.page, "helps with the portal")
        yield* press(ada.page, "Decline…")
        yield* fill(ada.page, "Reason", "the portal has enough hands")
        yield* press(ada.page, "Decline as administrator")
        yield* sam.open(new URL(page.url()).pathname, "One request")
        yield* text(page, "declined by Ada")
        yield* text(page, "“the portal has enough hands”")
        yield* everyLook(sam, "decide-declined")
        // Abe still sees the card: before he writes a reason, he reads that it is too late.
        yield* press(abe.page, "Approve…")
        yield* text(abe.page, "It would be refused now:")
        yield* fill(abe.page, "Reason", "the portal needs a hand")
        const off = yield* Effect.promise(() =>
          abe.page.$eval("dialog[open] button[type=submit]", (one) => (one as HTMLButtonElement).disabled)
        )
        assert.isTrue(off)
        yield* pictured(abe.page, "decide-refused")
        yield* choose(ada.page, "Show", "What you decided")
        yield* text(ada.page, "declined")
        yield* text(ada.page, "joins the team on Monday")
        const reasons = yield* Effect.promise(() =>
          ada.page.$$eval(".card > p", (all) => all.map(({ textContent }) => /“(.*)”/.exec(textContent ?? "")?.[1]))
        )
        assert.deepStrictEqual(reasons, ["helps with the portal", "joins the team on Monday"])
      }))
  },
)
