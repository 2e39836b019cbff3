/** The console's journeys by the keyboard alone, in real Chromium: Tab, Space, Enter and Escape, and no pointer. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "puppeteer-core"
import { randomUUID } from "node:crypto"
import { reason } from "../../../support/Fixtures.ts"
import { deadLetter, webhook } from "../../../support/TestDeadLetters.ts"
import { atConsole, Chromium, heading, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

/** What the focus is on: the label of a field, or the words of a button or link. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const one = document.activeElement as HTMLInputElement | null
    if (one === null || one === document.body as HTMLElement) return ""
    return (one.labels?.[0]?.textContent ?? one.textContent ?? "").trim()
  })

/** Goes to a button, link or field by Tab. A page has fewer places than are tried. */
const tabTo = (page: Page, words: string, whole = true) =>
  Effect.promise(async () => {
    const met: Array<string> = []
    for (let n = 0; n < 120; n++) {
      const at = await focused(page)
      if (whole ? at === words : at.startsWith(words)) return
      met.push(at)
      await page.keyboard.press("Tab")
    }
    throw new Error(`Tab does not reach ${words}: ${[...new Set(met)].join(" | ")}`)
  })

type Key = "Enter" | "Space" | "Escape"
const key = (page: Page, name: Key) => Effect.promise(() => page.keyboard.press(name))

/** Waits for the words, goes there, and presses Enter. */
const enter = (page: Page, words: string) =>
  text(page, words).pipe(Effect.andThen(tabTo(page, words)), Effect.andThen(key(page, "Enter")))

/** Presses Enter on a button that opens a dialog, and waits for that. */
const opens = (page: Page, words: string) =>
  Effect.andThen(enter(page, words), Effect.promise(() => page.waitForSelector("dialog[open]")))

/** Goes to a field, and types. */
const type = (page: Page, label: string, value: string) =>
  Effect.andThen(tabTo(page, label), Effect.promise(() => page.keyboard.type(value)))

/** Signs in at the demo's issuer with a second factor. */
const signedIn = Effect.fnUntraced(function* (who: string, path: string) {
  const at = yield* atConsole()
  yield* at.open(path, "Sign in")
  yield* enter(at.page, "Sign in with the demo")
  yield* Effect.promise(() => at.page.waitForSelector('button[name="subject"]'))
  yield* Effect.promise(async () => {
    // One radio button of a group has the focus, and the arrow goes to the next.
    for (
      let n = 0;
      n < 120 && !(await at.page.evaluate(() => document.activeElement?.matches("input[type=radio]")));
      n++
    ) {
      await at.page.keyboard.press("Tab")
    }
    await at.page.keyboard.press("ArrowDown")
  })
  yield* tabTo(at.page, `${who},`, false)
  yield* Effect.promise(() =>
    Promise.all([at.page.waitForNavigation({ waitUntil: "load" }), at.page.keyboard.press("Enter")])
  )
  return at.page
})

const stage = Layer.merge(staged(), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("the console by the keyboard alone", (it) => {
  it.effect("a review is proposed, and decided after a look at its dialog that Escape closes", () =>
    Effect.gen(function* () {
      const sam = yield* signedIn("Sam", "/console/reviews")
      yield* opens(sam, "Propose…")
      yield* type(sam, "Reason", reason)
      yield* enter(sam, "Propose the review")
      yield* text(sam, "Every active Access has a review.")

      const ada = yield* signedIn("Ada", "/console/reviews")
      yield* opens(ada, "Approve…")
      yield* text(ada, "Sam vouches for Pat")
      yield* key(ada, "Escape")
      yield* Effect.promise(() => ada.waitForFunction(() => document.querySelector("dialog[open]") === null))
      assert.strictEqual(yield* Effect.promise(() => focused(ada)), "Approve…", "the focus is given back")
      yield* opens(ada, "Approve…")
      yield* type(ada, "Reason", reason)
      yield* enter(ada, "Approve")
      yield* text(ada, "Revoke…")
    }))

  it.effect("a webhook is made", () =>
    Effect.gen(function* () {
      const page = yield* signedIn("Alice", "/console/webhooks")
      yield* enter(page, "Create a webhook…")
      yield* text(page, "email.bounced")
      yield* type(page, "Address", "https://hooks.example.com/keys")
      yield* tabTo(page, "email.bounced", false)
      yield* key(page, "Space")
      yield* enter(page, "Create the webhook")
      yield* enter(page, "I have kept it")
      yield* text(page, "https://hooks.example.com/keys")
    }))

  it.effect("an API key is made", () =>
    Effect.gen(function* () {
      const page = yield* signedIn("Alice", "/console/api-keys")
      yield* opens(page, "Create a key…")
      yield* type(page, "Name", "by keys alone")
      yield* enter(page, "Create the key")
      yield* enter(page, "I have kept it")
      yield* text(page, "by keys alone")
    }))

  it.effect("a domain is offered, and accepted by another account", () =>
    Effect.gen(function* () {
      const alice = yield* signedIn("Alice", "/console/domains")
      yield* opens(alice, "Offer…")
      yield* type(alice, "Their email address", "bob@birch.example")
      yield* enter(alice, "Offer it")
      yield* text(alice, "waits for an answer")
      const bob = yield* signedIn("Bob", "/console/transfers")
      yield* enter(bob, "alder.example")
      yield* heading(bob, "alder.example")
      yield* opens(bob, "Accept…")
      yield* text(bob, "Your workspace for it")
      yield* enter(bob, "Accept alder.example")
      yield* text(bob, "Safety window")
    }))

  it.effect("an operator goes from a finding to what it is about, and sends a dead letter again", () =>
    Effect.gen(function* () {
      const page = yield* signedIn("Oz", "/console/operations/findings")
      yield* heading(page, "Findings")
      yield* enter(page, "Look at the bus")
      yield* heading(page, "Bus")

      const hook = randomUUID()
      yield* webhook(hook, false)
      yield* deadLetter(hook)
      yield* enter(page, "Dead letters")
      yield* heading(page, "Dead letters")
      yield* enter(page, "Send again…")
      yield* type(page, "Reason", reason)
      yield* enter(page, "Send again")
      yield* text(page, "It is sent again.")
    }))
})
