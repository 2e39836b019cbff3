import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Ref } from "effect"
import { TestClock } from "effect/testing"
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { AccountId } from "../../../schemas/BrandedIds.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { fetchedKeys, fixedKeys, keysAt } from "../../../services/platform/security/KeySets.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"

const issuer = "https://issuer.example"
const sub = "0199c0de-0000-4000-8000-000000000001"
const now = 1_800_000_000
const good: JWTPayload = { iss: issuer, sub, aud: "mail", iat: now - 5, exp: now + 600, auth_time: now - 5 }

const pair = async (alg: string, kid: string) => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, publicKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } }
}
type Pair = Awaited<ReturnType<typeof pair>>

const sign = ({ alg, kid, privateKey }: Pair, claims: JWTPayload, header: object = {}) =>
  Effect.promise(() => new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(privateKey))

const at = TestClock.setTime(now * 1000)
const verifying = (token: string, layer: Layer.Layer<Cookies>) =>
  Effect.flatMap(Cookies, ({ verify }) => verify(token)).pipe(Effect.provide(layer))
const outcome = (token: string, layer: Layer.Layer<Cookies>) =>
  Effect.match(verifying(token, layer), { onSuccess: () => "in", onFailure: ({ code }) => code })

const without = (...names: ReadonlyArray<string>): JWTPayload =>
  Object.fromEntries(Object.entries(good).filter(([name]) => !names.includes(name)))

for (const alg of ["ES256", "RS256", "EdDSA"]) {
  it.effect(`a good cookie by ${alg} tells the account and the time of the sign-in`, () =>
    Effect.gen(function* () {
      yield* at
      const key = yield* Effect.promise(() => pair(alg, "k1"))
      const layer = Cookies.layer([{ issuer, keys: fixedKeys({ keys: [key.jwk] }) }])
      assert.deepStrictEqual(yield* verifying(yield* sign(key, good), layer), {
        accountId: AccountId.make(sub),
        authTime: now - 5,
      })
      const silent = yield* verifying(
        yield* sign(key, { ...without("auth_time"), aud: ["mail"] }, { typ: "JWT" }),
        layer,
      )
      assert.isNull(silent.authTime)
    }))
}

it.effect("any other cookie is refused", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const other = yield* Effect.promise(() => pair("ES256", "k1"))
    const es384 = yield* Effect.promise(() => pair("ES384", "k2"))
    const layer = Cookies.layer([
      { issuer, keys: fixedKeys({ keys: [key.jwk, es384.jwk] }) },
      { issuer: "https://second.example", keys: fixedKeys({ keys: [other.jwk] }), algorithms: ["EdDSA"] },
    ])
    const pem = yield* Effect.promise(() => exportSPKI(key.publicKey))
    const tokens: Record<string, Effect.Effect<string>> = {
      "alg none": Effect.sync(() => new UnsecuredJWT(good).encode()),
      "HS256 with the public key": Effect.promise(() =>
        new SignJWT(good).setProtectedHeader({ alg: "HS256", kid: "k1" }).sign(new TextEncoder().encode(pem))
      ),
      "an algorithm off the list": sign(es384, good),
      "an algorithm off the issuer's list": sign(other, { ...good, iss: "https://second.example" }),
      "another's key under the same name": sign(other, good),
      "an unknown key": sign({ ...other, kid: "k9" }, good),
      "a foreign issuer": sign(key, { ...good, iss: "https://evil.example" }),
      "no issuer": sign(key, without("iss")),
      "another audience": sign(key, { ...good, aud: "service-management" }),
      "a second audience": sign(key, { ...good, aud: ["mail", "service-management"] }),
      "no audience": sign(key, without("aud")),
      "expired": sign(key, { ...good, exp: now - 61 }),
      "no expiry": sign(key, without("exp")),
      "not yet": sign(key, { ...good, nbf: now + 61 }),
      "signed in tomorrow": sign(key, { ...good, auth_time: now + 61 }),
      "auth_time is no number": sign(key, { ...good, auth_time: "now" }),
      "a nonce": sign(key, { ...good, nonce: "n" }),
      "an at_hash": sign(key, { ...good, at_hash: "h" }),
      "a client_id": sign(key, { ...good, client_id: "c" }),
      "an access token's typ": sign(key, good, { typ: "at+jwt" }),
      "no subject": sign(key, without("sub")),
      "a subject that is no account id": sign(key, { ...good, sub: "alice" }),
      "an unknown critical header": sign(key, good, { crit: ["b64"], b64: true }).pipe(
        Effect.map((token) =>
          token.replace(/^[^.]+/, Buffer.from('{"alg":"ES256","crit":["x"],"x":1}').toString("base64url"))
        ),
      ),
      "a changed payload": Effect.map(sign(key, good), (token) => {
        const [head, , signature] = token.split(".")
        return [
          head,
          Buffer.from(JSON.stringify({ ...good, sub: sub.replace("1", "2") })).toString("base64url"),
          signature,
        ]
          .join(".")
      }),
      "not a token": Effect.succeed("hello"),
      "a very long text": Effect.succeed(`${"a".repeat(5000)}.b.c`),
    }
    for (const [name, make] of Object.entries(tokens)) {
      assert.strictEqual(yield* outcome(yield* make, layer), "invalid_credentials", name)
    }
    assert.strictEqual(yield* outcome(yield* sign(key, good), layer), "in")
  }))

it.effect("clocks may differ by 60 s, and no more", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const layer = Cookies.layer([{ issuer, keys: fixedKeys({ keys: [key.jwk] }) }])
    for (const claims of [{ exp: now - 59 }, { nbf: now + 59 }, { auth_time: now + 59 }]) {
      assert.strictEqual(yield* outcome(yield* sign(key, { ...good, ...claims }), layer), "in", JSON.stringify(claims))
    }
  }))

it.effect("a rotated key is fetched when first seen; made-up key ids cause no more fetches", () =>
  Effect.gen(function* () {
    yield* at
    const [old, young] = yield* Effect.promise(() => Promise.all([pair("ES256", "old"), pair("ES256", "young")]))
    const served = yield* Ref.make([old.jwk])
    const fetches = yield* Ref.make(0)
    const keys = yield* fetchedKeys(Effect.andThen(
      Ref.update(fetches, (n) => n + 1),
      Effect.map(Ref.get(served), (keys) => ({ keys })),
    ))
    const layer = Cookies.layer([{ issuer, keys }])
    const tokens = [yield* sign(old, good), yield* sign(young, good)] as const
    assert.strictEqual(yield* outcome(tokens[0], layer), "in")
    yield* Ref.set(served, [young.jwk])
    assert.strictEqual(yield* outcome(tokens[1], layer), "invalid_credentials")
    yield* TestClock.adjust("31 seconds")
    assert.strictEqual(yield* outcome(tokens[1], layer), "in")
    assert.strictEqual(yield* Ref.get(fetches), 2)
    const made = yield* Effect.forEach(
      Array.from({ length: 20 }, (_, i) => i),
      (i) => sign({ ...old, kid: `x${i}` }, good),
    )
    yield* TestClock.adjust("31 seconds")
    yield* Effect.forEach(made, (token) => outcome(token, layer), { concurrency: "unbounded" })
    assert.strictEqual(yield* Ref.get(fetches), 3)
  }))

it.effect("known keys go on serving while the issuer does not answer; unknown ones get 503", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const up = yield* Ref.make(false)
    const keys = yield* fetchedKeys(Effect.flatMap(
      Ref.get(up),
      (is) => is ? Effect.succeed({ keys: [key.jwk] }) : Effect.fail("down"),
    ))
    const layer = Cookies.layer([{ issuer, keys }])
    const token = yield* sign(key, { ...good, exp: now + 7200 })
    assert.strictEqual(yield* outcome(token, layer), "dependency_unavailable")
    yield* Ref.set(up, true)
    assert.strictEqual(yield* outcome(token, layer), "dependency_unavailable")
    yield* TestClock.adjust("6 seconds")
    assert.strictEqual(yield* outcome(token, layer), "in")
    yield* Ref.set(up, false)
    yield* TestClock.adjust("20 minutes")
    assert.strictEqual(yield* outcome(token, layer), "in")
  }))

it.effect("one caller at a time waits for a hanging issuer, which is asked once", () =>
  Effect.gen(function* () {
    yield* at
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const hangs = yield* Ref.make(true)
    const fetches = yield* Ref.make(0)
    const keys = yield* fetchedKeys(Effect.gen(function* () {
      yield* Ref.update(fetches, (n) => n + 1)
      if (yield* Ref.get(hangs)) yield* Effect.andThen(Effect.sleep("10 seconds"), Effect.fail("timeout"))
      return { keys: [key.jwk] }
    }))
    const layer = Cookies.layer([{ issuer, keys }])
    const [token, unknown] = [
      yield* sign(key, { ...good, exp: now + 7200 }),
      yield* sign({ ...key, kid: "k2" }, { ...good, exp: now + 7200 }),
    ]
    const many = (presented: string) =>
      Effect.forkChild(
        Effect.forEach([1, 2, 3, 4], () => outcome(presented, layer), { concurrency: "unbounded" }),
        { startImmediately: true },
      )
    const first = yield* many(token)
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual([...new Set(yield* Fiber.join(first))], ["dependency_unavailable"])
    assert.strictEqual(yield* Ref.get(fetches), 1)
    yield* Ref.set(hangs, false)
    yield* TestClock.adjust("6 seconds")
    assert.strictEqual(yield* outcome(token, layer), "in")
    yield* Ref.set(hangs, true)
    // The known key set serves on, in spite of a missing key or its age.
    for (const waiting of [unknown, token]) {
      yield* TestClock.adjust("11 minutes")
      const before = yield* Ref.get(fetches)
      const others = yield* many(waiting)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* outcome(token, layer), "in")
      yield* TestClock.adjust("9 seconds")
      yield* Fiber.join(others)
      assert.strictEqual(yield* Ref.get(fetches), before + 1)
    }
  }))

it.live("keys are fetched over HTTP from the operator's address", () =>
  Effect.gen(function* () {
    const key = yield* Effect.promise(() => pair("ES256", "k1"))
    const server = createServer((_, response) => response.end(JSON.stringify({ keys: [key.jwk] })))
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () => Effect.sync(() => server.close()),
    )
    const keys = yield* keysAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`)
    const seconds = Math.floor(Date.now() / 1000)
    const token = yield* sign(key, { ...good, exp: seconds + 60, auth_time: seconds })
    assert.strictEqual(yield* outcome(token, Cookies.layer([{ issuer, keys }])), "in")
  }).pipe(
    Effect.scoped,
    Effect.provide(Outbound.layer({
      allowedCidrs: [],
      certificateAuthorities: [],
      timeoutMillis: 5_000,
      ownPorts: [],
    })),
  ))
