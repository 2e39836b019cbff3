import { assert, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose"
import { type AccessTokenOptions, accessTokens, type TokenIssuer } from "../../../services/people/AccessTokens.ts"
import { fixedKeys } from "../../../services/platform/security/KeySets.ts"
import { remembered } from "../../../services/people/TokenCache.ts"
import { sizeOf } from "../../support/SizeOf.ts"

const issuer = "https://issuer.example"
const now = 1_800_000_000
const good: JWTPayload = {
  iss: issuer,
  sub: "ada",
  aud: "service-management",
  client_id: "portal",
  jti: "t1",
  iat: now - 5,
  exp: now + 600,
  auth_time: now - 5,
}

const pair = async (alg: string, kid: string) => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, publicKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } }
}
type Pair = Awaited<ReturnType<typeof pair>>

const sign = ({ alg, kid, privateKey }: Pair, claims: JWTPayload, header: object = {}) =>
  Effect.promise(() => new SignJWT(claims).setProtectedHeader({ alg, kid, typ: "at+jwt", ...header }).sign(privateKey))

const at = TestClock.setTime(now * 1000)
const trusting = (issuers: Readonly<Record<string, TokenIssuer>>, audience = "service-management") =>
  accessTokens({ audience, issuers: (name) => issuers[name] } satisfies AccessTokenOptions)

const outcome = (verifier: Effect.Success<ReturnType<typeof accessTokens>>, token: string) =>
  Effect.match(verifier.verify(token), { onSuccess: () => "in", onFailure: ({ code }) => code })

const without = (...names: ReadonlyArray<string>): JWTPayload =>
  Object.fromEntries(Object.entries(good).filter(([name]) => !names.includes(name)))

for (const alg of ["ES256", "RS256"]) {
  it.effect(`a good token by ${alg} tells the person, the client and the sign-in`, () =>
    Effect.gen(function* () {
      yield* at
      const key = yield* Effect.promise(() => pair(alg, "k1"))
      const { verify } = yield* trusting({ [issuer]: { keys: fixedKeys({ keys: [key.jwk] }) } })
      const full = { ...good, sid: "s1", acr: "urn:service:aal2", amr: ["pwd", "otp"], nbf: now - 5 }
      assert.deepStrictEqual(yield* verify(yield* sign(key, full)), {
        via: "person",
        issuer,
        subject: "ada",
        clientId: "portal",
        jti: "t1",
        sid: "s1",
        authTime: now - 5,
        acr: "urn:service:aal2",
        amr: ["pwd", "otp"],
        aal: "aal2",
        issuedAt: now - 5,
        expiresAt: now + 600,
      })
      const silent = yield* verify(yield* sign(key, without("auth_time"), { typ: "application/at+jwt" }))
      assert.deepInclude(silent, { authTime: null, acr: null, amr: [], aal: "unknown", sid: null })
    }))
}

it.effect("a token with two audiences is accepted if one is ours; a service's subject is its client", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const issuers = { [issuer]: { keys: fixedKeys({ keys: [key.jwk] }) } }
    const token = yield* sign(key, { ...good, aud: ["service-lifecycle", "service-management"], sub: "portal" })
    for (const audience of ["service-management", "service-lifecycle"]) {
      assert.deepInclude(yield* (yield* trusting(issuers, audience)).verify(token), {
        via: "service",
        clientId: "portal",
      })
    }
    assert.strictEqual(yield* outcome(yield* trusting(issuers, "mail"), token), "invalid_token")
  }))

it.effect("a token with a longer lifetime than its issuer may give is refused", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const lived = (seconds: number) => sign(key, { ...good, iat: now - 5, exp: now - 5 + seconds })
    const keys = fixedKeys({ keys: [key.jwk] })
    const cases: ReadonlyArray<readonly [TokenIssuer, number]> = [
      [{ keys }, 24 * 3_600],
      [{ keys, maxLifetime: Duration.minutes(10) }, 600],
      [{ keys, maxLifetime: Duration.days(3) }, 3 * 24 * 3_600],
    ]
    for (const [trusted, longest] of cases) {
      const verifier = yield* trusting({ [issuer]: trusted })
      assert.strictEqual(yield* outcome(verifier, yield* lived(longest)), "in", `${longest}`)
      assert.strictEqual(yield* outcome(verifier, yield* lived(longest + 1)), "invalid_token", `${longest}`)
      const ahead = yield* sign(key, { ...good, iat: now + longest, exp: now + 2 * longest })
      assert.strictEqual(yield* outcome(verifier, ahead), "invalid_token", `${longest} from a time to come`)
    }
  }))

it.effect("any other token is refused", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const other = yield* Effect.promise(() => pair("ES256", "k1"))
    const rsa = yield* Effect.promise(() => pair("RS256", "k3"))
    const eddsa = yield* Effect.promise(() => pair("EdDSA", "k2"))
    const verifier = yield* trusting({
      [issuer]: { keys: fixedKeys({ keys: [key.jwk, eddsa.jwk] }) },
      "https://second.example": { keys: fixedKeys({ keys: [other.jwk] }), algorithms: ["RS256"] },
    })
    const pem = yield* Effect.promise(() => exportSPKI(rsa.publicKey))
    const byHmac = yield* trusting({ [issuer]: { keys: fixedKeys({ keys: [rsa.jwk] }) } })
    const hs256 = yield* Effect.promise(() =>
      new SignJWT(good).setProtectedHeader({ alg: "HS256", kid: "k3", typ: "at+jwt" })
        .sign(new TextEncoder().encode(pem))
    )
    assert.strictEqual(yield* outcome(byHmac, hs256), "invalid_token", "HS256 with the public key")
    assert.strictEqual(yield* outcome(byHmac, yield* sign(rsa, good)), "in")

    const tokens: Record<string, Effect.Effect<string>> = {
      "alg none": Effect.sync(() => new UnsecuredJWT(good).encode()),
      "alg none with the right typ": Effect.sync(() =>
        [{ alg: "none", typ: "at+jwt" }, good].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
          .join(".") + "."
      ),
      "an algorithm off the list": sign(eddsa, good),
      "an algorithm off the issuer's list": sign(other, { ...good, iss: "https://second.example" }),
      "another's key under the same name": sign(other, good),
      "an unknown key": sign({ ...other, kid: "k9" }, good),
      "a foreign issuer": sign(key, { ...good, iss: "https://evil.example" }),
      "an ID token's typ": sign(key, good, { typ: "JWT" }),
      "no typ": sign(key, good, { typ: undefined }),
      "a security event's typ": sign(key, good, { typ: "secevent+jwt" }),
      "another audience": sign(key, { ...good, aud: "service-lifecycle" }),
      "two other audiences": sign(key, { ...good, aud: ["mail", "service-lifecycle"] }),
      "an audience that only begins like ours": sign(key, { ...good, aud: "service-management-2" }),
      "expired": sign(key, { ...good, exp: now - 61 }),
      "not yet": sign(key, { ...good, nbf: now + 61 }),
      "signed in tomorrow": sign(key, { ...good, auth_time: now + 61 }),
      "auth_time is no number": sign(key, { ...good, auth_time: "now" }),
      "a nonce": sign(key, { ...good, nonce: "n" }),
      "an at_hash": sign(key, { ...good, at_hash: "h" }),
      "an empty subject": sign(key, { ...good, sub: "" }),
      "a subject that no database can hold": sign(key, { ...good, sub: "a\u0000b" }),
      "a session that is no text": sign(key, { ...good, sid: 7 }),
      "a session too long to be one": sign(key, { ...good, sid: "s".repeat(256) }),
      "an expiry beyond all time": sign(key, { ...good, exp: 1e300 }),
      "an unknown critical header": Effect.map(
        sign(key, good),
        (token) =>
          token.replace(
            /^[^.]+/,
            Buffer.from('{"alg":"ES256","kid":"k1","typ":"at+jwt","crit":["x"],"x":1}').toString("base64url"),
          ),
      ),
      "not a token": Effect.succeed("hello"),
      "more than 8 KiB": sign(key, { ...good, pad: "x".repeat(8_192) }),
      ...Object.fromEntries(
        ["iss", "aud", "exp", "iat", "jti", "client_id", "sub"].map((
          claim,
        ) => [`no ${claim}`, sign(key, without(claim))]),
      ),
    }
    for (const [name, make] of Object.entries(tokens)) {
      assert.strictEqual(yield* outcome(verifier, yield* make), "invalid_token", name)
    }
    assert.strictEqual(yield* outcome(verifier, yield* sign(key, good)), "in")
  }))

it.effect("clocks may differ by 60 s, and no more", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const verifier = yield* trusting({ [issuer]: { keys: fixedKeys({ keys: [key.jwk] }) } })
    const inside = [{ exp: now - 59 }, { nbf: now + 60 }, { auth_time: now + 60 }]
    // A token's age is counted from its issuer's time, within the longest lifetime allowed.
    for (const claims of [...inside, { iat: now + 86_400 }, { iat: now - 86_400 + 600 }]) {
      assert.strictEqual(yield* outcome(verifier, yield* sign(key, { ...good, ...claims })), "in")
    }
    for (const claims of [{ exp: now - 60 }, { nbf: now + 61 }, { auth_time: now + 61 }]) {
      assert.strictEqual(yield* outcome(verifier, yield* sign(key, { ...good, ...claims })), "invalid_token")
    }
  }))

it.effect("acr is mapped by the issuer's table, and capped at the level that the issuer is trusted for", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const keys = fixedKeys({ keys: [key.jwk] })
    const acrMap = { gold: "aal3", silver: "aal2" } as const
    const level = Effect.fnUntraced(function* (how: Omit<TokenIssuer, "keys">, acr: string) {
      return (yield* (yield* trusting({ [issuer]: { keys, ...how } })).verify(yield* sign(key, { ...good, acr }))).aal
    })
    assert.strictEqual(yield* level({}, "urn:service:aal3"), "aal3")
    assert.strictEqual(yield* level({}, "gold"), "unknown")
    assert.strictEqual(yield* level({}, "constructor"), "unknown")
    assert.strictEqual(yield* level({ acrMap }, "gold"), "aal3")
    assert.strictEqual(yield* level({ acrMap }, "urn:service:aal3"), "unknown")
    assert.strictEqual(yield* level({ acrMap, maxAal: "aal1" }, "gold"), "aal1")
    assert.strictEqual(yield* level({ maxAal: "aal2" }, "urn:service:aal1"), "aal1")
  }))

it.effect("a signature is verified once a minute, and no token outlives its expiry by that", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    let checks = 0
    const known = fixedKeys({ keys: [key.jwk] })
    const current = Effect.andThen(Effect.sync(() => checks++), known.current)
    const verifier = yield* trusting({ [issuer]: { keys: { ...known, current } } })
    const [long, short] = [yield* sign(key, good), yield* sign(key, { ...good, exp: now - 30 })]
    const outcomes = Effect.all([outcome(verifier, long), outcome(verifier, short)])
    assert.deepStrictEqual(yield* outcomes, ["in", "in"])
    yield* TestClock.setTime((now + 29) * 1_000 + 999)
    assert.deepStrictEqual(yield* outcomes, ["in", "in"])
    assert.strictEqual(checks, 2)
    yield* TestClock.setTime((now + 30) * 1_000)
    assert.deepStrictEqual(yield* outcomes, ["in", "invalid_token"])
    yield* TestClock.setTime((now + 60) * 1_000)
    assert.deepStrictEqual(yield* outcomes, ["in", "invalid_token"])
    assert.strictEqual(checks, 5)
    // A refused token is not cached, and no token is found under another one's name.
    assert.strictEqual(yield* outcome(verifier, `${long}x`), "invalid_token")
  }))

it.effect("a token is cached for a minute, and expired ones are dropped by the next token", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const { verify } = yield* trusting({ [issuer]: { keys: fixedKeys({ keys: [key.jwk] }) } })
    const kept = sizeOf("verified tokens, service-management")
    for (let n = 0; n < 20; n++) yield* verify(yield* sign(key, { ...good, jti: `t${n}` }))
    assert.strictEqual(yield* kept, 20)
    yield* TestClock.adjust("61 seconds")
    yield* verify(yield* sign(key, { ...good, jti: "next" }))
    assert.strictEqual(yield* kept, 1)
  }))

it("at most 10,000 tokens are cached", () => {
  const known = remembered<number>()
  for (let n = 0; n < 12_000; n++) known.keep(known.keyOf(`token ${n}`), n, 0, Infinity)
  assert.strictEqual(known.size(), 10_000)
  assert.isUndefined(known.find(known.keyOf("token 0"), 1))
  assert.strictEqual(known.find(known.keyOf("token 11999"), 1), 11_999)
})
