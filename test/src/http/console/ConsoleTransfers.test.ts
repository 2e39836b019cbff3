/** A domain changes hands between two accounts at the console, in real Chromium. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { demoIds } from "../../../../src/embedded/DemoDirectory.ts"
import {
  atConsole,
  choose,
  chooseAtIssuer,
  Chromium,
  everyLook,
  fill,
  heading,
  inConsole,
  press,
  text,
} from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

/** Offers the demo's domain to Bob, as Alice; ends at the transfer's page. */
const offered = Effect.fnUntraced(function* () {
  const at = yield* inConsole("Alice", {}, "/console/domains")
  yield* text(at.page, "alder.example")
  yield* everyLook(at, "domains")
  yield* press(at.page, "Offer…")
  yield* fill(at.page, "Their email address", "bob@birch.example")
  yield* everyLook(at, "offer")
  yield* press(at.page, "Offer it")
  yield* heading(at.page, "alder.example")
  yield* text(at.page, "waits for an answer")
  return at
})

const transferOf = (address: string) => new URL(address).pathname.split("/").at(-1)!

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "transfers at the console",
  (it) => {
    it.effect("an offer is taken back, declined, accepted; a third account learns nothing", () =>
      Effect.gen(function* () {
        const alice = yield* offered()
        yield* press(alice.page, "Take the offer back…")
        yield* press(alice.page, "Take it back")
        yield* text(alice.page, "The offer was taken back.")

        yield* press(alice.page, "Domains")
        yield* press(alice.page, "Offer…")
        // The recipient's address decides: another account cannot be offered what it owns.
        yield* fill(alice.page, "Their email address", "alice@alder.example")
        yield* press(alice.page, "Offer it")
        yield* Effect.promise(() => alice.page.waitForSelector("dialog[open] [role=alert]"))
        yield* fill(alice.page, "Their email address", "bob@birch.example")
        yield* fill(alice.page, "Note to them", "As we agreed")
        yield* press(alice.page, "Offer it")
        yield* heading(alice.page, "alder.example")

        const bob = yield* inConsole("Bob", {}, "/console/transfers")
        yield* text(bob.page, "waits for an answer")
        yield* everyLook(bob, "transfers")
        yield* press(bob.page, "alder.example")
        yield* text(bob.page, "As we agreed")
        yield* press(bob.page, "Decline…")
        yield* press(bob.page, "Cancel")
        // Where the offers are listed it is declined as well.
        yield* bob.open("/console/transfers", "Transfers")
        yield* press(bob.page, "Decline…")
        yield* everyLook(bob, "transfers-decline")
        yield* press(bob.page, "Decline the offer")
        yield* text(bob.page, "No domain is on its way to you.")
        yield* text(bob.page, "declined")
        yield* everyLook(bob, "transfers-received")
        yield* press(bob.page, "alder.example")
        yield* text(bob.page, "The recipient declined the offer.")

        yield* press(alice.page, "Domains")
        yield* press(alice.page, "Offer…")
        yield* fill(alice.page, "Their email address", "bob@birch.example")
        yield* press(alice.page, "Offer it")
        yield* heading(alice.page, "alder.example")
        yield* text(alice.page, "Take the offer back…")
        const id = transferOf(alice.page.url())

        yield* bob.open(`/console/transfers/${id}`, "alder.example")
        yield* press(bob.page, "Accept…")
        yield* text(bob.page, "Your workspace for it")
        yield* everyLook(bob, "accept")
        yield* press(bob.page, "Accept alder.example")
        yield* text(bob.page, "Safety window")
        yield* everyLook(bob, "transfer")
        yield* alice.open(`/console/transfers/${id}`, "alder.example")
        yield* text(alice.page, "You may still stop it")

        const carol = yield* inConsole("Carol", {}, `/console/transfers/${id}`)
        yield* text(carol.page, "There is no such thing, or it is not yours.")
        const seen = yield* Effect.promise(() => carol.page.evaluate(() => document.body.innerText))
        assert.notInclude(seen, "alder.example")
      }))
  },
)

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "a platform administrator",
  (it) => {
    it.effect("moves a domain at once; only a platform administrator is shown the way", () =>
      Effect.gen(function* () {
        const alice = yield* inConsole("Alice", {}, "/console/move-domain")
        yield* heading(alice.page, "There is no such page")
        const carol = yield* atConsole()
        yield* carol.open("/console/", "Sign in")
        yield* press(carol.page, "Sign in with the demo")
        yield* chooseAtIssuer(carol.page, "Carol")
        yield* heading(carol.page, "Move a domain")
        yield* fill(carol.page, "Name of the domain", "nobodys.example\n")
        yield* text(carol.page, "No account has a domain nobodys.example.")
        yield* fill(carol.page, "Name of the domain", "alder.example\n")
        yield* text(carol.page, demoIds.alice)
        yield* everyLook(carol, "move-domain")
        yield* press(carol.page, "Move…")
        yield* everyLook(carol, "move-domain-dialog")
        yield* fill(carol.page, "Email address of its new owner", "nobody@nowhere.example")
        yield* press(carol.page, "Move the domain now")
        yield* text(carol.page, "The recipient needs an account with this address")
        yield* fill(carol.page, "Email address of its new owner", "bob@birch.example")
        yield* press(carol.page, "Move the domain now")
        yield* heading(carol.page, "alder.example")
        yield* text(carol.page, "completed")
        const bob = yield* inConsole("Bob", {}, "/console/domains")
        yield* text(bob.page, "alder.example")
        // A browser of its own, whose console has no refusal yet.
        const again = yield* inConsole("Carol", {}, "/console/move-domain")
        yield* text(again.page, "moved by an administrator")
        yield* text(again.page, "alice@alder.example")
        yield* choose(again.page, "State", "declined")
        yield* text(again.page, "There is no such transfer.")
        yield* choose(again.page, "State", "completed")
        yield* text(again.page, "moved by an administrator")
        yield* everyLook(again, "all-transfers")
      }))
  },
)
