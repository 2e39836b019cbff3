import { assert, describe, it } from "@effect/vitest"
import { base64url, CompactSign, SignJWT } from "jose"
import { canonical } from "../../sdk/Canonical.ts"
import { Refusal, type RefusalCode, type RefusalStep } from "../../sdk/Refusal.ts"
import { verifyEvent, verifySnapshot } from "../../sdk/Verify.ts"
import { audience, chained, granted, issuer, makeKey, now, pinsTo, projectId, snapshotOf } from "./Tokens.ts"

const key = await makeKey()
const stranger = await makeKey()
const served = [key.jwk, stranger.jwk]
const pins = pinsTo([key.kid], served)
const [claims] = chained([granted("pat")])
const good = claims!
const [[type, body]] = Object.entries(good.events) as unknown as [[string, { readonly [name: string]: unknown }]]
const { lifecycle } = body as { readonly lifecycle: { readonly [name: string]: unknown } }

const refused = async (message: Promise<unknown>, name: string) => {
  const error = await message.then(() => null, (error) => error)
  assert.instanceOf(error, Refusal, name)
  return error as Refusal
}

const without = (name: string) => Object.fromEntries(Object.entries(good).filter(([claim]) => claim !== name))
const withEvents = (events: unknown) => key.sign({ ...good, events })
const placed = (more: object) => withEvents({ [type]: { ...body, lifecycle: { ...lifecycle, ...more } } })
const resigned = (token: string, header: object) => {
  const [, payload, signature] = token.split(".")
  return `${base64url.encode(JSON.stringify(header))}.${payload}.${signature}`
}
const hmac = (secret: string, header: object) =>
  new CompactSign(new TextEncoder().encode(JSON.stringify(good)))
    .setProtectedHeader({ alg: "HS256", ...header }).sign(new TextEncoder().encode(secret))

describe("verifyEvent", () => {
  it("accepts the transmitter's message and returns its contents", async () => {
    const event = await verifyEvent(await key.sign(good), pins)
    assert.deepInclude(event, { jti: good.jti, txn: good.txn, type, epoch: 1, position: 1, issuedAt: now })
    assert.notProperty(event.payload as object, "lifecycle")
    assert.strictEqual((await verifyEvent(await key.sign({ ...good, aud: ["x", audience] }), pins)).jti, good.jti)
    const long = await key.sign(good, { typ: "application/secevent+jwt" })
    assert.strictEqual((await verifyEvent(long, pins)).jti, good.jti)
  })

  const signed = key.sign(good)
  const header = { alg: "RS256", typ: "secevent+jwt", kid: key.kid }
  const cases: ReadonlyArray<readonly [string, RefusalStep, RefusalCode, () => Promise<string> | string]> = [
    ["more than 256 KiB", "size", "invalid_request", () => key.sign({ ...good, pad: "x".repeat(200_000) })],
    ["a text that is not a JWS", "compact", "invalid_request", () => "{}"],
    ["a JWS in JSON", "compact", "invalid_request", () => JSON.stringify({ payload: "e30", signatures: [] })],
    ["two parts", "compact", "invalid_request", async () => (await signed).split(".").slice(0, 2).join(".")],
    ["padding", "compact", "invalid_request", async () => `${await signed}=`],
    // RFC 7515, A.5: an unsecured JWS.
    [
      "RFC 7515 A.5",
      "compact",
      "invalid_request",
      () =>
        "eyJhbGciOiJub25lIn0.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.",
    ],
    ["a header that is not JSON", "header", "invalid_request", async () => `eA${(await signed).slice(4)}`],
    ["an access token", "typ", "invalid_request", () => key.sign(good, { typ: "at+jwt" })],
    ["an ID token", "typ", "invalid_request", () => key.sign(good, { typ: "JWT" })],
    ["no typ", "typ", "invalid_request", () => key.sign(good, { typ: undefined })],
    ["a snapshot", "typ", "invalid_request", () => key.sign(good, { typ: "lifecycle-snapshot+jwt" })],
    ["alg none", "alg", "invalid_request", async () => resigned(await signed, { ...header, alg: "none" })],
    // The public key as the secret of an HMAC: everyone has that secret.
    [
      "alg HS256 under the public key",
      "alg",
      "invalid_request",
      () => hmac(JSON.stringify(key.jwk), { typ: "secevent+jwt", kid: key.kid }),
    ],
    ["alg PS256", "alg", "invalid_request", async () => resigned(await signed, { ...header, alg: "PS256" })],
    [
      "a key in its header",
      "header",
      "invalid_request",
      () => stranger.sign(good, { kid: key.kid, jwk: stranger.jwk }),
    ],
    [
      "a key's URL in its header",
      "header",
      "invalid_request",
      () => stranger.sign(good, { kid: key.kid, jku: "https://evil.example/jwks" }),
    ],
    ["crit", "header", "invalid_request", async () => resigned(await signed, { ...header, crit: ["x"], x: 1 })],
    ["a key that is served and not pinned", "kid", "invalid_key", () => stranger.sign(good)],
    ["no kid", "kid", "invalid_key", () => key.sign(good, { kid: undefined })],
    [
      "another key with a pinned kid",
      "signature",
      "authentication_failed",
      () => stranger.sign(good, { kid: key.kid }),
    ],
    ["a changed payload", "signature", "authentication_failed", async () => {
      const [head, , signature] = (await signed).split(".")
      return `${head}.${base64url.encode(JSON.stringify({ ...good, jti: "x" }))}.${signature}`
    }],
    ["a payload that is not an object", "claims", "invalid_request", () => key.sign("[]")],
    ["another issuer", "iss", "invalid_issuer", () => key.sign({ ...good, iss: `${issuer}/` })],
    ["no issuer", "iss", "invalid_issuer", () => key.sign(without("iss"))],
    ["another project", "aud", "invalid_audience", () => key.sign({ ...good, aud: `${audience}0` })],
    ["no audience", "aud", "invalid_audience", () => key.sign(without("aud"))],
    ["a sub claim", "sub", "invalid_request", () => key.sign({ ...good, sub: "pat" })],
    ["an exp claim", "exp", "invalid_request", () => key.sign({ ...good, exp: now + 600 })],
    ["no events claim", "events", "invalid_request", () => key.sign(without("events"))],
    ["no event", "events", "invalid_request", () => withEvents({})],
    ["two events", "events", "invalid_request", () => withEvents({ [type]: body, "https://x.example/y": {} })],
    ["an event that is not an object", "events", "invalid_request", () => withEvents({ [type]: [] })],
    ["an iat in the future", "iat", "invalid_request", () => key.sign({ ...good, iat: now + 61 })],
    ["an iat that is a string", "iat", "invalid_request", () => key.sign({ ...good, iat: `${now}` })],
    ["no jti", "jti", "invalid_request", () => key.sign(without("jti"))],
    ["a jti too long", "jti", "invalid_request", () => key.sign({ ...good, jti: "x".repeat(201) })],
    ["no subject", "sub_id", "invalid_request", () => key.sign(without("sub_id"))],
    ["position 0", "lifecycle", "invalid_request", () => placed({ position: 0 })],
    ["a position that is not a number", "lifecycle", "invalid_request", () => placed({ position: "1" })],
    ["no previous digest", "lifecycle", "invalid_request", () => placed({ prev_digest: null })],
    ["another position", "digest", "invalid_request", () => placed({ position: 2 })],
    ["another epoch", "digest", "invalid_request", () => placed({ epoch: 2 })],
    ["another event's digest", "digest", "invalid_request", () => withEvents({ [`${type}x`]: body })],
  ]
  for (const [name, step, code, token] of cases) {
    it(`refuses ${name}`, async () => {
      const { code: foundCode, step: foundStep } = await refused(verifyEvent(await token(), pins), name)
      assert.deepStrictEqual([foundStep, foundCode], [step, code])
    })
  }

  it("refuses a pinned key that is not served, and another key served with its kid", async () => {
    const gone = pinsTo([stranger.kid], [key.jwk])
    assert.strictEqual((await refused(verifyEvent(await stranger.sign(good), gone), "gone")).step, "key")
    // The set gives the stranger's key the pinned kid; its thumbprint differs.
    const lied = pinsTo([key.kid], [{ ...stranger.jwk, kid: key.kid }])
    const token = await stranger.sign(good, { kid: key.kid })
    assert.deepInclude(await refused(verifyEvent(token, lied), "lied"), { step: "key", code: "invalid_key" })
  })

  it("an error of fetching the keys is passed on and is not a Refusal", async () => {
    const away = { ...pins, keys: { pinned: () => true, key: () => Promise.reject(new Error("away")) } }
    const error = await verifyEvent(await key.sign(good), away).catch((error) => error)
    assert.strictEqual(error.message, "away")
  })
})

describe("verifySnapshot", () => {
  const state = { access: [], people: [], project: null }
  const snapshot = snapshotOf(state, { position: 0, chainHead: `sha256:${"0".repeat(64)}` }, [key.kid])
  const signed = (claims: object) => key.sign(claims, { typ: "lifecycle-snapshot+jwt" })

  it("accepts a current one of this project", async () => {
    const found = await verifySnapshot(await signed(snapshot), projectId, pins)
    assert.deepInclude(found, { epoch: 1, position: 0, cursor: "c0", keySet: [key.kid] })
  })

  const cases: ReadonlyArray<readonly [string, RefusalStep, () => Promise<string> | string]> = [
    ["an event", "typ", () => key.sign(snapshot)],
    ["another project's", "project", () => signed({ ...snapshot, project_id: "project-2" })],
    ["an old one", "iat", () => signed({ ...snapshot, iat: now - 361 })],
    ["a changed state", "digest", () => signed({ ...snapshot, state: { ...state, access: [1] } })],
    ["one without keys", "state", () => signed({ ...snapshot, key_set: [] })],
    ["one without a cursor", "lifecycle", () => signed({ ...snapshot, cursor: null })],
    ["a stranger's", "kid", () => stranger.sign(snapshot, { typ: "lifecycle-snapshot+jwt" })],
    ["one that expires", "exp", () => signed({ ...snapshot, exp: now + 1 })],
  ]
  for (const [name, step, token] of cases) {
    it(`refuses ${name}`, async () => {
      assert.strictEqual((await refused(verifySnapshot(await token(), projectId, pins), name)).step, step)
    })
  }

  it("a token of the identity provider is neither an event nor a snapshot", async () => {
    const token = await new SignJWT({ scope: "openid" }).setProtectedHeader({ alg: "HS256", kid: key.kid }).sign(
      new TextEncoder().encode("a secret of thirty-two bytes long"),
    )
    assert.strictEqual((await refused(verifyEvent(token, pins), "event")).step, "typ")
    assert.strictEqual((await refused(verifySnapshot(token, projectId, pins), "snapshot")).step, "typ")
  })
})

describe("canonical", () => {
  it("writes the examples of RFC 8785, and throws for lone surrogates", () => {
    // 3.2.2 and 3.2.3 of the RFC.
    const value = JSON.parse(
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
        '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
    )
    assert.strictEqual(
      canonical(value),
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
    const sorting = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 }
    assert.strictEqual(canonical(sorting), '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}')
    assert.throws(() => canonical("\ud800"))
    assert.throws(() => canonical({ a: ["\\ud800", "\ud800"] }))
    assert.strictEqual(canonical("\\ud800"), '"\\\\ud800"')
  })
})
