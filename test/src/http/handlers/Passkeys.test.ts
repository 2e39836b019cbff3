/** Passkeys made by real Chromium, with virtual authenticators in place of a finger on a sensor. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { browser, type Visitor, visitor } from "../../../support/Browser.ts"
import { person } from "../../../support/TestIdentity.ts"
import { actions, complete, start } from "./CredentialFixture.ts"
import { asking, bodyOf, fixture } from "./MeFixture.ts"

/** Browsers trust pages of this machine; the page has no server, since the test answers its requests. */
const portal = new URL("http://127.0.0.1:4711")
const page = "http://localhost:4711/"

const atPortal = Effect.gen(function* () {
  const someone = yield* visitor(yield* browser)
  yield* Effect.promise(async () => {
    await someone.page.setRequestInterception(true)
    someone.page.on(
      "request",
      (request) =>
        void request.respond({ contentType: "text/html", body: "<title>Portal</title><link rel=icon href=data:>" }),
    )
    await someone.page.goto(page)
    await someone.cdp.send("WebAuthn.enable")
  })
  return someone
})

const authenticator = ({ cdp }: Visitor, transport: "internal" | "usb", isUserVerified = true) =>
  Effect.acquireRelease(
    Effect.promise(() =>
      cdp.send("WebAuthn.addVirtualAuthenticator", {
        options: {
          protocol: "ctap2",
          transport,
          hasResidentKey: transport === "internal",
          hasUserVerification: true,
          isUserVerified,
          automaticPresenceSimulation: true,
        },
      })
    ),
    ({ authenticatorId }) => Effect.promise(() => cdp.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId })),
  )

/** The result of `navigator.credentials.create()` with the options, or the name of its error. */
const create = ({ page }: Visitor, options: unknown) =>
  Effect.promise(() =>
    page.evaluate(`
      navigator.credentials.create({
        publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(${JSON.stringify(options)}),
      }).then((credential) => credential.toJSON(), (error) => error.name)`)
  )

layer(fixture(undefined, portal), { excludeTestServices: true, timeout: "2 minutes" })("passkeys", (it) => {
  it.effect("passkeys of a device and of a stick are registered; without user verification, or twice, they are not", () =>
    Effect.gen(function* () {
      const someone = yield* atPortal
      const me = yield* person()
      const first = yield* asking(me)
      const ask = yield* asking(me, { acr: "urn:service:aal2" })
      const register = Effect.fnUntraced(function* (as: typeof ask) {
        const { challenge, intent_id } = yield* start(as, { kind: "passkey.register" })
        return { intent: intent_id as string, made: yield* create(someone, challenge.public_key) }
      })
      const finish = (as: typeof ask, { intent, made }: { intent: string; made: unknown }) =>
        complete(as, intent, { proof: { type: "webauthn.create", credential: made } })

      const device = yield* Effect.scoped(Effect.gen(function* () {
        yield* authenticator(someone, "internal")
        const { authenticator: made } = bodyOf(yield* finish(first, yield* register(first)))
        assert.strictEqual((yield* register(ask)).made, "InvalidStateError")
        return made
      }))
      assert.deepInclude(device, { kind: "passkey", credential_type: "fido2-platform", transports: ["internal"] })

      const stick = yield* Effect.scoped(Effect.gen(function* () {
        yield* authenticator(someone, "usb")
        return bodyOf(yield* finish(ask, yield* register(ask))).authenticator
      }))
      assert.deepInclude(stick, { kind: "security_key", credential_type: "fido2-roaming", transports: ["usb"] })

      yield* Effect.scoped(Effect.gen(function* () {
        yield* authenticator(someone, "usb", false)
        assert.strictEqual((yield* register(ask)).made, "NotAllowedError")
      }))
      const { items } = bodyOf(yield* ask("GET", "/v1/me/authenticators"))
      assert.deepStrictEqual(items.map((one: { removable: boolean }) => one.removable), [true, true])
      assert.strictEqual(bodyOf(yield* ask("GET", actions)).actions[1].available, true)
      assert.deepStrictEqual(someone.complaints, [])
    }).pipe(Effect.scoped))
})
