/** People's own account at the console, in real Chromium with a virtual authenticator in place of a finger. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "puppeteer-core"
import { Server } from "../../../../src/http/Server.ts"
import { code } from "../handlers/CredentialFixture.ts"
import {
  type AtConsole,
  atConsole,
  chooseAtIssuer,
  Chromium,
  everyLook,
  fill,
  heading,
  inConsole,
  press,
  text,
} from "./ConsoleBrowser.ts"
import { aal1, aal2, type Browser, ownPage, signedIn, staged } from "./ConsoleStage.ts"

const path = "/console/account"
const actions = "/v1/me/credential-actions"

/** Browsers let no IP address be the domain of a passkey: people of this machine come by `localhost`. */
const origin = Effect.map(Server, ({ url }) => `http://localhost:${new URL(url).port}`)

/** Signs a person in at their account, with a virtual authenticator that confirms by itself. */
const atAccount = Effect.fnUntraced(function* (who: string, level: string) {
  const at = yield* atConsole({ origin: yield* origin })
  yield* Effect.promise(async () => {
    await at.cdp.send("WebAuthn.enable")
    await at.cdp.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
  })
  yield* at.open(path, "Sign in")
  yield* press(at.page, "Sign in with the demo")
  yield* chooseAtIssuer(at.page, who, level)
  yield* heading(at.page, "My account")
  yield* text(at.page, "What you can change")
  return at
})

/** Waits until the text is gone. */
const gone = (page: Page, words: string) =>
  Effect.promise(() => page.waitForFunction((words: string) => !document.body.innerText.includes(words), {}, words))

const secretIn = (page: Page) =>
  Effect.promise(() =>
    page.waitForSelector("dialog[open] code.secret").then((one) =>
      one!.evaluate(({ textContent }) => textContent ?? "")
    )
  )

/** Enrols an app with the secret that the open dialog shows. */
const enrolled = Effect.fnUntraced(function* ({ page }: AtConsole) {
  const shown = yield* secretIn(page)
  assert.match(shown, /^([A-Z2-7]{4} )+[A-Z2-7]{1,4}$/)
  yield* fill(page, "Code of the app", code(shown.replaceAll(" ", "")))
  yield* press(page, "Enrol the app")
  yield* text(page, "The app is enrolled.")
})

const isIn = (one: Browser) => Effect.map(one.visitor, ({ session }) => session !== null)

layer(Layer.merge(staged({}, "localhost"), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "my account",
  (it) => {
    it.effect("Sam registers a passkey and an app, keeps recovery codes, renames and removes", () =>
      Effect.gen(function* () {
        const sam = yield* atAccount("Sam", aal2)
        const { page } = sam
        yield* text(page, "You have none yet.")
        yield* everyLook(sam, "account")

        yield* press(page, "Register a passkey…")
        yield* fill(page, "Name", "Work laptop")
        yield* press(page, "Register it")
        yield* text(page, "The passkey is registered.")
        yield* text(page, "Not removable: your last second factor.")

        yield* press(page, "Enrol an app…")
        yield* fill(page, "Name", "Phone")
        yield* press(page, "Show the secret")
        yield* secretIn(page)
        yield* everyLook(sam, "account-app")
        yield* enrolled(sam)
        yield* gone(page, "Not removable: your last second factor.")

        yield* press(page, "Make recovery codes…")
        yield* press(page, "Make the codes")
        const codes = (yield* secretIn(page)).split("\n")
        assert.strictEqual(new Set(codes).size, 10)
        yield* everyLook(sam, "account-codes")
        yield* press(page, "I have kept it")
        yield* text(page, "10 left")
        assert.notInclude(yield* Effect.promise(() => page.content()), codes[0]!)
        yield* press(page, "Replace the recovery codes…")
        yield* text(page, "The codes that you have now end.")
        yield* press(page, "Cancel")

        yield* press(page, "Rename…")
        yield* fill(page, "Name", "Old laptop")
        yield* press(page, "Save")
        yield* text(page, "Old laptop")
        yield* everyLook(sam, "account-full")
        yield* press(page, "Remove…")
        yield* press(page, "Remove it for good")
        yield* text(page, "“Old laptop” is removed.")
        yield* text(page, "Not removable: your last second factor.")
        const stored = yield* Effect.promise(() => page.evaluate(() => [localStorage.length, sessionStorage.length]))
        assert.deepStrictEqual(stored, [0, 0])
      }))

    it.effect("Abe ends one session, then all others; his own goes on", () =>
      Effect.gen(function* () {
        const elsewhere = yield* signedIn("Abe")
        assert.isTrue(yield* isIn(elsewhere))
        const abe = yield* atAccount("Abe", aal1)
        yield* text(abe.page, "this session")
        yield* everyLook(abe, "account-sessions")
        yield* press(abe.page, "End…")
        yield* press(abe.page, "End the session")
        yield* text(abe.page, "The session is ended.")
        assert.isFalse(yield* isIn(elsewhere))
        yield* text(abe.page, "Ended in the last 90 days: 1")

        const [second, third] = [yield* signedIn("Abe"), yield* signedIn("Abe")]
        assert.deepStrictEqual([yield* isIn(second), yield* isIn(third)], [true, true])
        yield* abe.open(path, "My account")
        yield* press(abe.page, "End all others…")
        yield* text(abe.page, "All 2 other sessions are refused at once")
        yield* press(abe.page, "End all others")
        yield* text(abe.page, "All other sessions are ended.")
        assert.deepStrictEqual([yield* isIn(second), yield* isIn(third)], [false, false])
        yield* abe.open(path, "My account")
        yield* text(abe.page, "this session")
        assert.deepStrictEqual(abe.complaints, [])
      }))

    it.effect("a second factor asks the next change for a stronger sign-in, after which the form is as it was", () =>
      Effect.gen(function* () {
        const pat = yield* atAccount("Pat", aal1)
        const { page } = pat
        yield* press(page, "Register a passkey…")
        yield* press(page, "Register it")
        yield* text(page, "The passkey is registered.")
        yield* text(page, "Changes of this page need a sign-in of the last 5 minutes with a second factor.")
        yield* press(page, "Enrol an app…")
        yield* fill(page, "Name", "Pat's phone")
        yield* press(page, "Show the secret")
        yield* text(page, "This needs a stronger sign-in")
        // The dialog lies over the form's, and has the focus on its link.
        yield* Effect.promise(() => page.keyboard.press("Enter"))
        // The issuer offers no other level than the one that was asked for.
        yield* chooseAtIssuer(page, "Pat")
        yield* heading(page, "My account")
        yield* press(page, "Show the secret")
        yield* enrolled(pat)
        yield* text(page, "Pat's phone")
        yield* gone(page, "Changes of this page need")
      }))

    it.effect("Ada proves another identity by a sign-in, stays who she is, and asks for the link", () =>
      Effect.gen(function* () {
        const ada = yield* atAccount("Ada", aal1)
        const { page } = ada
        yield* press(page, "Link another identity…")
        yield* everyLook(ada, "account-link")
        yield* press(page, "Sign in with the demo")
        yield* chooseAtIssuer(page, "Ada")
        yield* heading(page, "This identity cannot be linked")
        yield* ada.open(path, "My account")
        yield* press(page, "Link another identity…")
        yield* press(page, "Sign in with the demo")
        yield* chooseAtIssuer(page, "Pat")
        yield* heading(page, "My account")
        yield* text(page, "You signed in as the other identity.")
        yield* everyLook(ada, "account-proven")
        yield* press(page, "Ask for the link…")
        yield* fill(page, "Reason", "both of them are mine")
        yield* press(page, "Ask for the link")
        yield* text(page, "The link is asked for.")
        assert.strictEqual(new URL(page.url()).search, "")
        yield* press(page, "My requests")
        yield* text(page, "Two identities become one")
        const own = yield* Effect.promise(() =>
          page.evaluate(async () => {
            const [me, asked] = await Promise.all(["/v1/me", "/v1/me/requests"].map((one) => fetch(one)))
            return [(await me!.json()).display_name, (await asked!.json()).items[0].kind]
          })
        )
        assert.deepStrictEqual(own, ["Ada", "link"])
        // The demo's issuer signs its codes; nothing else that is signed is in an address.
        const addresses = ada.asked.filter((one) => new URL(one).pathname !== "/console/callback")
        assert.notMatch(addresses.join("\n"), /eyJ[A-Za-z0-9_-]{20}/)
      }))

    it.effect("a second person learns nothing, and an action belongs to the session that started it", () =>
      Effect.gen(function* () {
        const [ada, oz] = [yield* signedIn("Ada"), yield* signedIn("Oz")]
        const bindingOf = (one: Browser) => Effect.map(one.visitor, ({ session }) => session.id as string)
        const post = (one: Browser, to: string, json: unknown, headers: Readonly<Record<string, string>> = {}) =>
          one.ask("POST", to, { json, headers: { ...ownPage, ...headers } })
        const bound = { "x-portal-binding": yield* bindingOf(ada) }
        const started = yield* post(ada, actions, { kind: "totp.enroll" }, bound)
        assert.strictEqual(started.status, 201, started.text)
        const { challenge, intent_id } = started.body
        const proof = { proof: { type: "totp", code: code(challenge.secret) } }
        const finish = `${actions}/${intent_id}/complete`

        const [session] = (yield* ada.ask("GET", "/v1/me/sessions")).body.items
        const unknown = "0199c0de-0000-7000-8000-00000000dead"
        const plain = (
          { status, text }: { status: number; text: string },
        ) => [status, text.replace(/"(request|audit)_id":"[^"]*"/g, "")]
        for (const kind of ["session.revoke", "passkey.remove", "authenticator.rename"]) {
          const about = (target_id: string) => post(oz, actions, { kind, target_id, label: "mine" })
          const foreign = yield* about(session.session_id)
          assert.deepStrictEqual(plain(foreign), plain(yield* about(unknown)), kind)
          assert.strictEqual(foreign.status, 404)
        }
        assert.strictEqual((yield* post(oz, finish, proof, bound)).status, 404)
        assert.notInclude((yield* oz.ask("GET", "/v1/me/sessions")).text, session.session_id)

        // Ada herself, in another browser.
        const again = yield* signedIn("Ada")
        const other = yield* post(again, finish, proof, { "x-portal-binding": yield* bindingOf(again) })
        assert.deepStrictEqual([other.status, other.body.code], [403, "portal_binding_mismatch"])
        assert.strictEqual((yield* post(ada, finish, proof, bound)).status, 200)
        assert.deepStrictEqual((yield* oz.ask("GET", "/v1/me/authenticators")).body, { items: [], total: 0 })
      }))
  },
)

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "my account at an IP address",
  (it) => {
    it.effect("says why a passkey cannot be registered there", () =>
      Effect.gen(function* () {
        const pat = yield* inConsole("Pat", {}, path)
        yield* heading(pat.page, "My account")
        yield* text(pat.page, "Passkeys belong to localhost, and browsers refuse them on a page of 127.0.0.1.")
        // Two lists say so; the button comes with the second.
        yield* text(pat.page, "Register a passkey…")
        const off = yield* Effect.promise(() =>
          pat.page.evaluate(() =>
            [...document.querySelectorAll("button")].filter(({ disabled }) => disabled).map((one) => one.textContent)
          )
        )
        assert.deepStrictEqual(off, ["Register a passkey…"])
        yield* everyLook(pat, "account-at-address")
      }))
  },
)
