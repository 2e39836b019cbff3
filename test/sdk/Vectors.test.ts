/**
 * The standards' own examples, and what has fooled verifiers before: RFC 7515 (JWS), RFC 7520 (JOSE cookbook), RFC 7638
 * (thumbprints), RFC 8417 (SET), RFC 8785 (canonical JSON); signatures with wrong PKCS #1 v1.5 padding, algorithm and type
 * confusion, keys that the attacker brings along.
 */
import fc from "fast-check"
import { base64url, calculateJwkThumbprint, CompactSign, compactVerify, importJWK, type JWK } from "jose"
import { createHash, createPublicKey, generateKeyPairSync } from "node:crypto"
import { assert, describe, it } from "vitest"
import { canonical } from "../../sdk/Canonical.ts"
import { keyRing } from "../../sdk/Keys.ts"
import { Refusal, type RefusalStep } from "../../sdk/Refusal.ts"
import { type Pins, verifyEvent } from "../../sdk/Verify.ts"
import { numbers } from "./Numbers.ts"
import { audience, chained, granted, issuer, makeKey, pinsTo } from "./Tokens.ts"

const utf8 = new TextEncoder()
const encoded = (value: unknown) => base64url.encode(typeof value === "string" ? value : JSON.stringify(value))

const stepOf = async (token: string, pins: Pins): Promise<RefusalStep | "believed"> => {
  const error = await verifyEvent(token, pins).then(() => null, (error) => error)
  if (error === null) return "believed"
  assert.instanceOf(error, Refusal, String(error))
  return error.step
}

const [good] = chained([granted("pat")])

/** RFC 7515, A.2.1. */
const a2: JWK = {
  kty: "RSA",
  n: "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pC" +
    "gNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xs" +
    "mtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
  e: "AQAB",
}
const joe = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
const a2Token = `eyJhbGciOiJSUzI1NiJ9.${joe}.` +
  "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZ" +
  "cAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-e" +
  "OkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"

/** RFC 7515, A.3.1. */
const a3: JWK = {
  kty: "EC",
  crv: "P-256",
  x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
  y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
  d: "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
}
const a3Token = `eyJhbGciOiJFUzI1NiJ9.${joe}.` +
  "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"

/** RFC 7520, 3.3 and 4.1. */
const bilbo: JWK = {
  kty: "RSA",
  n: "n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvNd7nqQ0VEiZQHz_AJmSCpMaJMRBSFKrKb2wqVwG" +
    "U_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6Aj-oBHqFEHYpPe7Tpe-OfVfHd1E6cS6M1FZcD1NNLYD5lFHpPI9bTwJlsde3uhGqC" +
    "0ZCuEHg8lhzwOHrtIQbS0FVbb9k3-tVTU4fg_3L_vniUFAKwuCLqKnS2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuaxwUkRz5iaiQkqgc5gHdrNP5zw",
  e: "AQAB",
}
const bilboToken = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9." +
  "SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGUgcm9hZCwgYW5kIGlm" +
  "IHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4." +
  "MRjdkly7_-oTPTS3AXP41iQIGKa80A0ZmTuV5MEaHoxnW2e5CZ5NlKtainoFmKZopdHM1O2U4mwzJdQx996ivp83xuglII7PNDi84wnB-BDkoBwA7818" +
  "5hX-Es4JIwmDLJK3lfWRa-XtL0RnltuYv746iYTh_qHRD68BNt1uSNCrUCTJDt5aAE6x8wW1Kt9eRo4QPocSadnHXFxnt8Is9UzpERV0ePPQdLuW3IS_" +
  "de3xyIrDaLGdjluPxUAhb6L2aXic1U12podGU0KLUQSE_oI-ZnmKJ3F4uOZDnd6QZWJushZ41Axf_fcIe8u9ipH84ogoree7vjbU5y18kDquDg"

/** RFC 7638, 3.1. */
const thumbed: JWK = {
  kty: "RSA",
  n: "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknj" +
    "hMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5" +
    "hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
  e: "AQAB",
}
const thumbprint = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"

describe("JOSE", () => {
  it("RFC 7638, 3.1: a key goes by its thumbprint, whatever else is said of it", async () => {
    const named = { ...thumbed, alg: "RS256", kid: "2011-04-29" }
    const { key, pinned } = keyRing(() => Promise.resolve({ keys: [named] }))([thumbprint])
    assert.isTrue(pinned(thumbprint))
    assert.isFalse(pinned("2011-04-29"))
    assert.strictEqual((await key(thumbprint)).type, "public")
  })

  const signed: ReadonlyArray<readonly [string, JWK, string, RegExp]> = [
    ["RFC 7515, A.2", a2, a2Token, /^\{"iss":"joe",\r\n/],
    ["RFC 7520, 4.1", bilbo, bilboToken, /^It’s a dangerous business, Frodo/],
  ]
  for (const [name, jwk, token, says] of signed) {
    it(`${name}: the signature is good under the key of that thumbprint, and the message is no security event`, async () => {
      const kid = await calculateJwkThumbprint(jwk)
      const pins = pinsTo([kid], [jwk])
      const { payload } = await compactVerify(token, await pins.keys.key(kid), { algorithms: ["RS256"] })
      assert.match(new TextDecoder().decode(payload), says)
      assert.strictEqual(await stepOf(token, pins), "typ")
    })
  }

  it("RFC 7515, A.3 (ES256) and A.5 (none): not the algorithm that was agreed on, whatever the key", async () => {
    const { d: _, ...open } = a3
    await compactVerify(a3Token, await importJWK(open, "ES256"))
    const kid = await calculateJwkThumbprint(open)
    const pins = pinsTo([kid], [open])
    assert.strictEqual(await stepOf(a3Token, pins), "typ")
    const event = await new CompactSign(utf8.encode(JSON.stringify(good)))
      .setProtectedHeader({ alg: "ES256", typ: "secevent+jwt", kid }).sign(await importJWK(a3, "ES256"))
    assert.strictEqual(await stepOf(event, pins), "alg")
    // A pinned key that is no RSA key is nobody's.
    const claimed = event.replace(/^[^.]+/, encoded({ alg: "RS256", typ: "secevent+jwt", kid }))
    assert.strictEqual(await stepOf(claimed, pins), "key")
    for (const alg of ["none", "None", "NONE", "nOnE"]) {
      const head = encoded({ alg, typ: "secevent+jwt", kid })
      assert.strictEqual(await stepOf(`${head}.${encoded(good)}.`, pins), "compact")
      assert.strictEqual(await stepOf(`${head}.${encoded(good)}.AA`, pins), "alg")
    }
    assert.strictEqual(await stepOf(`eyJhbGciOiJub25lIn0.${joe}.`, pins), "compact")
  })
})

describe("RFC 8417", () => {
  const scim = {
    ...{ iss: "https://scim.example.com", iat: 1458496404, jti: "4d3559ec67504aaba65d40b0363faad8" },
    aud: [
      "https://scim.example.com/Feeds/98d52461fa5bbc879593b7754",
      "https://scim.example.com/Feeds/5d7604516b1d08641d7676ee7",
    ],
    events: {
      "urn:ietf:params:scim:event:create": {
        ref: "https://scim.example.com/Users/44f6142df96bd6ab61e7521d9",
        attributes: ["id", "name", "userName", "password", "emails"],
      },
    },
  }
  const logout = {
    ...{ iss: "https://server.example.com", sub: "248289761001", aud: "s6BhdRkqt3", iat: 1471566154, jti: "bWJq" },
    sid: "08a5019c-17e1-4977-8f42-65a12843ea02",
    events: { "http://schemas.openid.net/event/backchannel-logout": {} },
  }
  const consent = {
    ...{ iss: "https://my.med.example.org", iat: 1458496025, jti: "fb4e75b5411e4e19b6c0fe87950f7749" },
    aud: ["https://rp.example.com"],
    events: {
      "https://openid.net/heart/specs/consent.html": {
        iss: "https://connect.example.com",
        sub: "248289761001",
        consentUri: ["https://terms.med.example.org/labdisclosure.html#Agree"],
      },
    },
  }
  const risc = {
    ...{ iss: "https://idp.example.com/", jti: "756E69717565206964656E746966696572", iat: 1508184845 },
    aud: "636C69656E745F6964",
    events: {
      "https://schemas.openid.net/secevent/risc/event-type/account-disabled": {
        subject: { subject_type: "iss-sub", iss: "https://idp.example.com/", sub: "7375626A656374" },
        reason: "hijacking",
      },
    },
  }
  const cases = [
    // Whom it is about stands nowhere in them, or in the event: new types say it in `sub_id` (SSF 1.0).
    ["2.1.1, SCIM", scim, scim.aud[0]!, "sub_id"],
    ["2.1.2, logout", logout, logout.aud, "sub"],
    ["2.1.3, consent", consent, consent.aud[0]!, "sub_id"],
    ["2.1.4, RISC", risc, risc.aud, "sub_id"],
  ] as const

  for (const [name, claims, aud, step] of cases) {
    it(`${name}: a security event token, and not one of a project's history`, async () => {
      const key = await makeKey()
      const pins = { ...pinsTo([key.kid], [key.jwk]), issuer: claims.iss, audience: aud }
      assert.strictEqual(await stepOf(await key.sign(claims), pins), step)
      assert.strictEqual(await stepOf(await key.sign(claims), { ...pins, audience }), "aud")
      assert.strictEqual(await stepOf(await key.sign(claims), { ...pins, issuer }), "iss")
      // With a subject of the right kind, what is left to miss is its place.
      const { sub: _, ...rest } = { sub: "", ...claims }
      const about = { ...rest, sub_id: { format: "iss_sub", iss: "https://idp.example.com/", sub: "1" } }
      assert.strictEqual(await stepOf(await key.sign(about), pins), "lifecycle")
    })
  }

  it("2.4: the example under no signature is refused for having none", async () => {
    const key = await makeKey()
    const pins = { ...pinsTo([key.kid], [key.jwk]), issuer: scim.iss, audience: scim.aud[0]! }
    const header = "eyJ0eXAiOiJzZWNldmVudCtqd3QiLCJhbGciOiJub25lIn0"
    assert.strictEqual(Buffer.from(header, "base64url").toString(), `{"typ":"secevent+jwt","alg":"none"}`)
    assert.strictEqual(await stepOf(`${header}.${encoded(scim)}.`, pins), "compact")
    assert.strictEqual(await stepOf(`${header}.${encoded(scim)}.AAAA`, pins), "alg")
  })
})

describe("RFC 8785", () => {
  it("appendix B: numbers", () => {
    for (const { bits, text, value } of numbers) {
      if (text === null) assert.throws(() => canonical(value), TypeError, undefined, bits)
      else assert.strictEqual(canonical(value), text, bits)
    }
  })

  it("what JSON cannot say, or two texts could say, has no canonical form", () => {
    assert.throws(() => canonical(JSON.parse("[1e999]")))
    assert.throws(() => canonical(JSON.parse('{"\\udead":1}')))
    assert.strictEqual(
      canonical(JSON.parse('{"__proto__":1,"constructor":2,"a":-0}')),
      '{"__proto__":1,"a":0,"constructor":2}',
    )
  })

  it("an event that has no canonical form is refused, not tried for ever", async () => {
    const key = await makeKey()
    const pins = pinsTo([key.kid], [key.jwk])
    const text = JSON.stringify(good)
    for (const odd of ['"\\ud800"', "1e999", "-1e999"]) {
      const token = await key.sign(text.replace('"initiating_entity":', `"odd":${odd},"initiating_entity":`))
      assert.strictEqual(await stepOf(token, pins), "digest", odd)
    }
    const deep = await key.sign(
      text.replace('"initiating_entity":', `"odd":${"[".repeat(9e4)}${"]".repeat(9e4)},"initiating_entity":`),
    )
    assert.strictEqual(await stepOf(deep, pins), "digest")
  })
})

/** What a verifier of RSASSA-PKCS1-v1_5 must not take for a signature, made with the private key itself. */
describe("RS256", () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
  const { d, n } = privateKey.export({ format: "jwk" })
  const big = (text: string) => BigInt(`0x${Buffer.from(text, "base64url").toString("hex")}`)
  const modulus = big(n!)
  const exponent = big(d!)
  const power = (base: bigint, by: bigint) => {
    let [result, square] = [1n, base % modulus]
    for (let left = by; left > 0n; left >>= 1n) {
      if (left & 1n) result = result * square % modulus
      square = square * square % modulus
    }
    return result
  }
  const bytes = (value: bigint, length = 256) => Buffer.from(value.toString(16).padStart(length * 2, "0"), "hex")
  const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex")

  const jwk = publicKey.export({ format: "jwk" }) as JWK
  const info = hex("30 31 30 0d 06 09 60 86 48 01 65 03 04 02 01 05 00 04 20")
  const padded = (tail: Buffer, type = 1, fill = 0xff) =>
    Buffer.concat([Buffer.from([0, type]), Buffer.alloc(256 - 3 - tail.length, fill), Buffer.from([0]), tail])

  it("takes its own signature, and none whose padding is another", async () => {
    const kid = await calculateJwkThumbprint(jwk)
    const pins = pinsTo([kid], [jwk])
    const input = `${encoded({ alg: "RS256", typ: "secevent+jwt", kid })}.${encoded(good)}`
    const hash = createHash("sha256").update(input).digest()
    const by = (signature: Buffer) => stepOf(`${input}.${base64url.encode(signature)}`, pins)
    const made = (block: Buffer) => by(bytes(power(BigInt(`0x${block.toString("hex")}`), exponent)))
    const right = padded(Buffer.concat([info, hash]))
    assert.strictEqual(await made(right), "believed")

    const sha1 = hex("30 21 30 09 06 05 2b 0e 03 02 1a 05 00 04 14")
    const sha512 = hex("30 51 30 0d 06 09 60 86 48 01 65 03 04 02 03 05 00 04 40")
    const wrong: Readonly<Record<string, Buffer>> = {
      "block type 0": padded(Buffer.concat([info, hash]), 0, 0),
      "block type 2": padded(Buffer.concat([info, hash]), 2),
      "another fill": padded(Buffer.concat([info, hash]), 1, 0xfe),
      "no hash, only what it is of": padded(info),
      "a hash without what it is of": padded(hash),
      "no NULL": padded(Buffer.concat([hex("30 2f 30 0b 06 09 60 86 48 01 65 03 04 02 01 04 20"), hash])),
      "lengths in the long form": padded(
        Buffer.concat([hex("30 81 31 30 0d 06 09 60 86 48 01 65 03 04 02 01 05 00 04 20"), hash]),
      ),
      "the hash of SHA-1": padded(Buffer.concat([sha1, createHash("sha1").update(input).digest()])),
      "the hash of SHA-512": padded(Buffer.concat([sha512, createHash("sha512").update(input).digest()])),
      "something after the hash": padded(Buffer.concat([info, hash, Buffer.alloc(8)])),
      // Bleichenbacher's forgery against exponent 3: short padding, and room for anything behind.
      "short padding": Buffer.concat([hex("00 01 ff ff ff ff ff ff ff ff 00"), info, hash, Buffer.alloc(256 - 62, 7)]),
      "another message's hash": padded(Buffer.concat([info, createHash("sha256").update(`${input}x`).digest()])),
    }
    for (const [name, block] of Object.entries(wrong)) {
      assert.lengthOf(block, 256, name)
      assert.strictEqual(await made(block), "signature", name)
    }

    const signature = power(BigInt(`0x${right.toString("hex")}`), exponent)
    const shapes: Readonly<Record<string, Buffer>> = {
      "0": Buffer.alloc(256),
      "1": bytes(1n),
      "n - 1": bytes(modulus - 1n),
      "a zero in front": bytes(signature, 257),
      "a zero behind": Buffer.concat([bytes(signature), Buffer.alloc(1)]),
      "one byte short": bytes(signature).subarray(1),
      "one byte": Buffer.from([0]),
      ...(signature + modulus < 2n ** 2048n ? { "s + n": bytes(signature + modulus) } : {}),
    }
    for (const [name, one] of Object.entries(shapes)) assert.strictEqual(await by(one), "signature", name)
    for (const text of ["", "=", "A", "A=", "AA==", "A A", "A\n", "Ä"]) {
      assert.oneOf(await stepOf(`${input}.${text}`, pins), ["compact", "signature"], text)
    }
  })
})

describe("confusion", () => {
  it("a message says neither what it is, nor by which key, in any way but the one", async () => {
    const key = await makeKey()
    const eve = await makeKey()
    const pins = pinsTo([key.kid], [key.jwk, eve.jwk])
    const header = { alg: "RS256", typ: "secevent+jwt", kid: key.kid }
    const sign = (more: object, by = key) => by.sign(good, { ...header, ...more })
    const raw = async (head: string) => {
      const text = `${encoded(head)}.${encoded(good)}`
      return `${text}.${(await key.sign(good)).split(".")[2]}`
    }
    const pem = createPublicKey({ key: key.jwk, format: "jwk" })
    const secrets = [
      pem.export({ type: "spki", format: "pem" }),
      pem.export({ type: "pkcs1", format: "pem" }),
      pem.export({ type: "spki", format: "der" }),
      Buffer.from(key.jwk.n!, "base64url"),
      key.jwk.n!,
    ]
    const hmacs = secrets.flatMap((secret) =>
      ["HS256", "HS384", "HS512"].map((alg) =>
        new CompactSign(utf8.encode(JSON.stringify(good))).setProtectedHeader({ ...header, alg })
          .sign(typeof secret === "string" ? utf8.encode(secret) : secret)
      )
    )
    const cases: ReadonlyArray<readonly [RefusalStep, Promise<string>]> = [
      ...hmacs.map((token) => ["alg", token] as const),
      ["typ", sign({ typ: ["secevent+jwt"] })],
      ["typ", sign({ typ: { secevent: "jwt" } })],
      ["typ", sign({ typ: "secevent" })],
      ["typ", sign({ typ: "logout+jwt" })],
      ["typ", sign({ typ: "application/application/secevent+jwt" })],
      ["typ", sign({ typ: "SECEVENT+JWS" })],
      ["alg", raw(JSON.stringify({ ...header, alg: ["RS256"] }))],
      ["alg", raw(JSON.stringify({ ...header, alg: "rs256" }))],
      ["alg", raw(JSON.stringify({ ...header, alg: "RS512" }))],
      ["kid", sign({ kid: [key.kid] })],
      ["kid", sign({ kid: "__proto__" })],
      ["kid", sign({ kid: "../../etc/passwd" })],
      ["kid", sign({ kid: eve.kid }, eve)],
      ["header", sign({ jku: "https://evil.example/jwks", kid: key.kid }, eve)],
      ["header", sign({ x5u: "https://evil.example/cert" }, eve)],
      ["header", sign({ x5c: ["MIIB"] }, eve)],
      ["header", sign({ jwk: eve.jwk }, eve)],
      ["header", raw(JSON.stringify({ ...header, crit: ["exp"], exp: 1 }))],
      ["header", raw(JSON.stringify({ ...header, crit: [] }))],
      ["header", raw(JSON.stringify({ ...header, b64: false, crit: ["b64"] }))],
      ["header", raw(JSON.stringify({ ...header, b64: true }))],
      ["header", raw(`${JSON.stringify(header)}x`)],
      ["header", raw(`[${JSON.stringify(header)}]`)],
      ["header", raw("null")],
      // The last of members by one name counts (RFC 7515, 4), for everybody who reads it here.
      ["typ", raw(`{"alg":"RS256","typ":"secevent+jwt","kid":"${key.kid}","typ":"JWT"}`)],
      ["alg", raw(`{"alg":"RS256","typ":"secevent+jwt","kid":"${key.kid}","alg":"none"}`)],
      ["kid", raw(`{"alg":"RS256","typ":"secevent+jwt","kid":"${key.kid}","kid":"${eve.kid}"}`)],
      ["signature", raw(`{"alg":"none","typ":"JWT","kid":"x","alg":"RS256","typ":"secevent+jwt","kid":"${key.kid}"}`)],
      ["size", Promise.resolve(`${encoded(header)}.${"A".repeat(256 * 1024)}.AA`)],
      ["signature", Promise.resolve(`${encoded({ ...header, pad: "x".repeat(100_000) })}.${encoded(good)}.AA`)],
    ]
    for (const [i, [step, token]] of cases.entries()) assert.strictEqual(await stepOf(await token, pins), step, `${i}`)
    assert.strictEqual(await stepOf(await key.sign(good), pins), "believed")
  })
})

describe("keys", () => {
  it("a kid that was not committed to is never accepted, whatever the key set serves", async () => {
    const keys = await Promise.all(Array.from({ length: 4 }, makeKey))
    const which = fc.integer({ min: 0, max: keys.length - 1 })
    const some = fc.uniqueArray(which)
    // Served under its own name, another's, none, twice, with its alg changed, or as no RSA key at all.
    const served = fc.array(
      fc.record({
        key: which,
        named: fc.option(which),
        alg: fc.constantFrom("RS256", "none", "HS256"),
        rsa: fc.boolean(),
      }),
      { maxLength: 6 },
    )
    const tokens = new Map<string, string>()
    const tokenOf = async (by: number, named: number) => {
      const name = `${by} ${named}`
      if (!tokens.has(name)) tokens.set(name, await keys[by]!.sign(good, { kid: keys[named]!.kid }))
      return tokens.get(name)!
    }
    await fc.assert(
      fc.asyncProperty(some, served, which, which, async (pinned, serving, by, named) => {
        const set = serving.map(({ alg, key, named, rsa }): JWK => {
          const { kid: _, ...open } = keys[key]!.jwk
          return { ...open, alg, ...(named === null ? {} : { kid: keys[named]!.kid }), ...(rsa ? {} : { kty: "oct" }) }
        })
        const step = await stepOf(await tokenOf(by, named), pinsTo(pinned.map((i) => keys[i]!.kid), set))
        const committed = pinned.includes(named)
        const there = serving.some(({ key, rsa }) => rsa && key === named)
        const expected = !committed ? "kid" : !there ? "key" : by === named ? "believed" : "signature"
        assert.strictEqual(step, expected)
      }),
      { numRuns: 300 },
    )
  })
})
