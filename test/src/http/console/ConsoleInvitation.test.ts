/** An invitation from the console to a membership, in real Chromium: asked for, signed, mailed, and accepted by its link. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { atConsole, chooseAtIssuer, Chromium, deciderAt, fill, heading, press, sound, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const fern = `/console/institutions/${demoIdentityIds.fern}`

const stage = Layer.merge(staged(), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("an invitation", (it) => {
  it.effect("that Sam asks for and Ada signs is mailed to Pat, who becomes a member by its link", () =>
    Effect.gen(function* () {
      const sam = yield* deciderAt("Sam", fern, "Fern")
      yield* press(sam.page, "Invite…")
      yield* fill(sam.page, "Their email address", "pat@fern.example")
      yield* fill(sam.page, "Reason", "joins the team on Monday")
      yield* press(sam.page, "Ask for the invitation")
      yield* text(sam.page, "waits for its review")

      const ada = yield* deciderAt("Ada", "/console/decide", "To decide")
      yield* text(ada.page, "joins the team on Monday")
      yield* press(ada.page, "Approve…")
      yield* fill(ada.page, "Reason", "the team expects Pat")
      yield* press(ada.page, "Approve as administrator")
      yield* text(ada.page, "No request waits for your signature.")

      // Pat's browser is signed in nowhere; the mail is in the demo's mailbox as soon as it is sent.
      const pat = yield* atConsole()
      const link = yield* Effect.promise(async () => {
        for (;;) {
          await pat.page.goto(new URL("/dev/mailbox", pat.origin).href)
          const mails = await pat.page.$$eval(
            "tr",
            (rows) =>
              rows.filter((one) => one.textContent?.includes("pat@fern.example"))
                .flatMap((one) => [...one.querySelectorAll("a")].map(({ href }) => href)),
          )
          for (const mail of mails) {
            await pat.page.goto(mail)
            const found = await pat.page.$$eval(
              "pre a",
              (links) => links.map(({ href }) => href).find((href) => href.includes("/enrollments/")),
            )
            if (found !== undefined) return found
          }
        }
      })
      assert.strictEqual(new URL(link).origin, pat.origin)
      yield* Effect.promise(() => pat.page.goto(link))
      yield* press(pat.page, "Sign in")
      yield* chooseAtIssuer(pat.page, "Pat")
      yield* text(pat.page, "Accept the invitation")
      yield* sound(pat, "the page of an invitation")
      yield* press(pat.page, "Accept the invitation")
      yield* text(pat.page, "You are a member now")
      yield* sound(pat, "the page after an invitation")

      yield* pat.open("/console/institutions", "Institutions")
      yield* press(pat.page, "Fern")
      yield* heading(pat.page, "Fern")
      yield* ada.open(fern, "Fern")
      yield* text(ada.page, "accepted")
      const members = yield* Effect.promise(() =>
        ada.page.$$eval("tbody tr", (rows) => rows.map((one) => (one as HTMLElement).innerText))
      )
      assert.isTrue(members.some((one) => one.includes("Pat") && one.includes("member")), members.join("\n"))

      // The link counts once.
      yield* Effect.promise(() => pat.page.goto(link))
      yield* text(pat.page, "This invitation was accepted")
    }))
})
