/**
 * Examples from the standards: RFC 7515 (JWS), RFC 7520 (JOSE cookbook), RFC 7638 (thumbprints), RFC 8417 (SET), RFC
 * 8785 (canonical JSON).
 */
import { base64url, calculateJwkThumbprint, CompactSign, compactVerify, importJWK, type JWK } from "jose"
import { assert, describe, it } from "vitest"
import { canonical } from "../../sdk/Canonical.ts"
import { keyCache } from "../../sdk/Keys.ts"
import { numbers } from "./Numbers.ts"
import { audience, chained, granted, issuer, keyOf, pinsTo, stepOf } from "./Tokens.ts"

const utf8 = new TextEncoder()
const encoded = (value: unknown) => base64url.encode(typeof value === "string" ? value : JSON.stringify(value))

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
  it("RFC 7638, 3.1: a key is known by its thumbprint, not by its kid", async () => {
    const named = { ...thumbed, alg: "RS256", kid: "2011-04-29" }
    const { key, pinned } = keyCache(() => Promise.resolve({ keys: [named] }))([thumbprint])
    assert.isTrue(pinned(thumbprint))
    assert.isFalse(pinned("2011-04-29"))
    assert.isFalse((await key(thumbprint)).verify(new Uint8Array(256), ""))
  })

  const signed: ReadonlyArray<readonly [string, JWK, string, RegExp]> = [
    ["RFC 7515, A.2", a2, a2Token, /^\{"iss":"joe",\r\n/],
    ["RFC 7520, 4.1", bilbo, bilboToken, /^It’s a dangerous business, Frodo/],
  ]
  for (const [name, jwk, token, says] of signed) {
    it(`${name}: the signature is valid for the pinned key, and the message is not a security event`, async () => {
      const kid = await calculateJwkThumbprint(jwk)
      const pins = pinsTo([kid], [jwk])
      const [head, payload, signature] = token.split(".")
      const key = await pins.keys.key(kid)
      assert.isTrue(key.verify(base64url.decode(signature!), `${head}.${payload}`))
      assert.match(new TextDecoder().decode(base64url.decode(payload!)), says)
      assert.strictEqual(await stepOf(token, pins), "typ")
    })
  }

  it("RFC 7515, A.3 (ES256) and A.5 (none): refused, whatever the key", async () => {
    const { d: _, ...open } = a3
    await compactVerify(a3Token, await importJWK(open, "ES256"))
    const kid = await calculateJwkThumbprint(open)
    const pins = pinsTo([kid], [open])
    assert.strictEqual(await stepOf(a3Token, pins), "typ")
    const event = await new CompactSign(utf8.encode(JSON.stringify(good)))
      .setProtectedHeader({ alg: "ES256", typ: "secevent+jwt", kid }).sign(await importJWK(a3, "ES256"))
    assert.strictEqual(await stepOf(event, pins), "alg")
    // A pinned key that is not an RSA key is never used.
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
    iss: "https://scim.example.com",
    iat: 1458496404,
    jti: "4d3559ec67504aaba65d40b0363faad8",
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
    iss: "https://server.example.com",
    sub: "248289761001",
    aud: "s6BhdRkqt3",
    iat: 1471566154,
    jti: "bWJq",
    sid: "08a5019c-17e1-4977-8f42-65a12843ea02",
    events: { "http://schemas.openid.net/event/backchannel-logout": {} },
  }
  const consent = {
    iss: "https://my.med.example.org",
    iat: 1458496025,
    jti: "fb4e75b5411e4e19b6c0fe87950f7749",
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
    iss: "https://idp.example.com/",
    jti: "756E69717565206964656E746966696572",
    iat: 1508184845,
    aud: "636C69656E745F6964",
    events: {
      "https://schemas.openid.net/secevent/risc/event-type/account-disabled": {
        subject: { subject_type: "iss-sub", iss: "https://idp.example.com/", sub: "7375626A656374" },
        reason: "hijacking",
      },
    },
  }
  const cases = [
    // These examples have no subject, or have it in the event; SSF 1.0 requires `sub_id`.
    ["2.1.1, SCIM", scim, scim.aud[0]!, "sub_id"],
    ["2.1.2, logout", logout, logout.aud, "sub"],
    ["2.1.3, consent", consent, consent.aud[0]!, "sub_id"],
    ["2.1.4, RISC", risc, risc.aud, "sub_id"],
  ] as const

  for (const [name, claims, aud, step] of cases) {
    it(`${name}: a valid security event token, but not of a project's history`, async () => {
      const key = await keyOf("transmitter")
      const pins = { ...pinsTo([key.kid], [key.jwk]), issuer: claims.iss, audience: aud }
      assert.strictEqual(await stepOf(await key.sign(claims), pins), step)
      assert.strictEqual(await stepOf(await key.sign(claims), { ...pins, audience }), "aud")
      assert.strictEqual(await stepOf(await key.sign(claims), { ...pins, issuer }), "iss")
      // With a valid subject only the `lifecycle` member is missing.
      const { sub: _, ...rest } = { sub: "", ...claims }
      const about = { ...rest, sub_id: { format: "iss_sub", iss: "https://idp.example.com/", sub: "1" } }
      assert.strictEqual(await stepOf(await key.sign(about), pins), "lifecycle")
    })
  }

  it("2.4: the unsigned example is refused", async () => {
    const key = await keyOf("transmitter")
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

  it("infinite numbers and lone surrogates have no canonical form; members are sorted, also `__proto__`", () => {
    assert.throws(() => canonical(JSON.parse("[1e999]")))
    assert.throws(() => canonical(JSON.parse('{"\\udead":1}')))
    assert.strictEqual(
      canonical(JSON.parse('{"__proto__":1,"constructor":2,"a":-0}')),
      '{"__proto__":1,"a":0,"constructor":2}',
    )
  })

  it("an event without a canonical form is refused at the digest", async () => {
    const key = await keyOf("transmitter")
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
