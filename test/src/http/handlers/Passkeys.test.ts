/** Passkeys made and used by real Chromium, with virtual authenticators in place of a finger on a sensor. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { browser, type Visitor, visitor } from "../../../support/Browser.ts"
import { issuer, person } from "../../../support/TestIdentity.ts"
import { serviceTokenFor } from "../../../support/TestTokens.ts"
import { actions, complete, start } from "./CredentialFixture.ts"
import { asking, bodyOf, call, fixture, signIn } from "./MeFixture.ts"

/** Browsers trust pages of this machine; the page has no server, since the test answers its requests. */
const portal = new URL("http://127.0.0.1:4711")
const page = "http://localhost:4711/"
const otherPage = "http://localhost:4712/"

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

/** The result of `navigator.credentials.get()` with the options, or the name of its error. */
const get = ({ page }: Visitor, options: unknown) =>
  Effect.promise(() =>
    page.evaluate(`
      navigator.credentials.get({
        publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(options)}),
      }).then((credential) => credential.toJSON(), (error) => error.name)`)
  )

/** A request of the issuer's client that signs people in. */
const asIssuer = Effect.fnUntraced(function* (path: string, body: object) {
  return yield* call("POST", path, { authorization: `Bearer ${yield* serviceTokenFor(signIn, { issuer })}` }, body)
})
const begun = (subject: string) => Effect.map(asIssuer("/v1/assertions", { subject }), (answer) => bodyOf(answer, 201))
const check = (assertion: string, credential: unknown) =>
  Effect.map(asIssuer(`/v1/assertions/${assertion}/check`, { proof: { type: "webauthn.get", credential } }), bodyOf)

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

  it.effect("a passkey signs for its issuer, once; a replay, a counter that fell and another page are refused", () =>
    Effect.gen(function* () {
      const someone = yield* atPortal
      const me = yield* person()
      const ask = yield* asking(me)
      const { authenticatorId } = yield* authenticator(someone, "internal")
      const { challenge, intent_id } = yield* start(ask, { kind: "passkey.register" })
      const made = yield* create(someone, challenge.public_key)
      const { authenticator: enrolled } = bodyOf(
        yield* complete(ask, intent_id, { proof: { type: "webauthn.create", credential: made } }),
      )

      const first = yield* begun(me)
      const signature = yield* get(someone, first.public_key)
      const passed = yield* check(first.assertion_id, signature)
      assert.deepInclude(passed, {
        verified: true,
        kind: "passkey",
        authenticator_id: enrolled.authenticator_id,
        user_verified: true,
      })
      const { items: [listed] } = bodyOf(yield* ask("GET", "/v1/me/authenticators"))
      assert.isNotNull(listed.last_used_at)

      // The same signature again, for its assertion and for another one.
      assert.deepInclude(yield* check(first.assertion_id, signature), { verified: false, ended: true })
      assert.isFalse((yield* check((yield* begun(me)).assertion_id, signature)).verified)

      // The authenticator as a copy of before would count.
      const { credentials: [held] } = yield* Effect.promise(() =>
        someone.cdp.send("WebAuthn.getCredentials", { authenticatorId })
      )
      assert.isAbove(held!.signCount, 0)
      yield* Effect.promise(async () => {
        await someone.cdp.send("WebAuthn.removeCredential", { authenticatorId, credentialId: held!.credentialId })
        await someone.cdp.send("WebAuthn.addCredential", { authenticatorId, credential: { ...held!, signCount: 0 } })
      })
      const copied = yield* begun(me)
      assert.isFalse((yield* check(copied.assertion_id, yield* get(someone, copied.public_key))).verified)
      yield* Effect.promise(async () => {
        await someone.cdp.send("WebAuthn.removeCredential", { authenticatorId, credentialId: held!.credentialId })
        await someone.cdp.send("WebAuthn.addCredential", {
          authenticatorId,
          credential: { ...held!, signCount: held!.signCount + 10 },
        })
      })

      // Another page of the same domain gets a signature from the browser, and the server refuses it.
      yield* Effect.promise(() => someone.page.goto(otherPage))
      const phished = yield* begun(me)
      const signed = yield* get(someone, phished.public_key)
      assert.isObject(signed)
      assert.isFalse((yield* check(phished.assertion_id, signed)).verified)
      yield* Effect.promise(() => someone.page.goto(page))
      const last = yield* begun(me)
      assert.isTrue((yield* check(last.assertion_id, yield* get(someone, last.public_key))).verified)

      const { sql } = yield* Database
      const reasons = yield* sql<{ reason: string | null }>`
        select details ->> 'reason' as reason from audit_records
        where subject = ${`person:${me}`} and action in ('assertion.passed', 'assertion.refused') order by id`
      assert.deepStrictEqual(
        reasons.map(({ reason }) => reason),
        [null, "wrong", "counter_regressed", "wrong", null],
      )
      assert.deepStrictEqual(someone.complaints, [])
    }).pipe(Effect.scoped))
})
