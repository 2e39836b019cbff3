/** Fixture: a person's actions on credentials. */
import { Effect } from "effect"
import { Secret, TOTP } from "otpauth"
import { create } from "../../../support/SoftAuthenticator.ts"
import { person } from "../../../support/TestIdentity.ts"
import { asking, bodyOf, type Headers, portal } from "./MeFixture.ts"

export const actions = "/v1/me/credential-actions"
export const strong = { acr: "urn:service:aal2" }
export const confirm = { proof: { type: "confirm", acknowledged: true } }
export const creation = { origin: portal.origin, rpId: portal.hostname }

export type Ask = Effect.Success<ReturnType<typeof asking>>

export const start = Effect.fnUntraced(function* (ask: Ask, body: object, headers: Headers = {}) {
  return bodyOf(yield* ask("POST", actions, body, headers), 201)
})
export const complete = (ask: Ask, intent: string, body: object, headers: Headers = {}) =>
  ask("POST", `${actions}/${intent}/complete`, body, headers)

export const code = (secret: string, at = Date.now()) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: at })
export const totp = (secret: string, at?: number) => ({ proof: { type: "totp", code: code(secret, at) } })
export const wrong = (secret: string) => ({
  proof: {
    type: "totp",
    code: ["000000", "111111", "222222", "333333", "444444", "555555", "666666"].find((guess) =>
      ![-30_000, 0, 30_000, 60_000].some((off) => code(secret, Date.now() + off) === guess)
    ),
  },
})

/** A person with an authenticator app, whose later sign-ins use two factors. */
export const withApp = Effect.gen(function* () {
  const me = yield* person()
  const ask = yield* asking(me, strong)
  const { challenge, intent_id } = yield* start(ask, { kind: "totp.enroll", label: "Phone" })
  const done = bodyOf(yield* complete(ask, intent_id, totp(challenge.secret)))
  return { me, ask, app: done.authenticator.authenticator_id as string }
})

export const passkey = Effect.fnUntraced(
  function* (ask: Ask, how: Partial<Parameters<typeof create>[0]> = {}, label?: string) {
    const { challenge, intent_id } = yield* start(ask, { kind: "passkey.register", label: label ?? null })
    const credential = create({ challenge: challenge.public_key.challenge, ...creation, ...how })
    return yield* complete(ask, intent_id, { proof: { type: "webauthn.create", credential } })
  },
)
