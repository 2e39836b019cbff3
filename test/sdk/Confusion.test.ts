/**
 * Known attacks on verifiers: signatures with another PKCS #1 v1.5 padding, algorithm and type confusion, keys that the
 * attacker supplies in the header or in the key set.
 */
import fc from "fast-check"
import { base64url, calculateJwkThumbprint, CompactSign, type JWK } from "jose"
import { createHash, createPublicKey, generateKeyPairSync } from "node:crypto"
import { assert, describe, it } from "vitest"
import type { RefusalStep } from "../../sdk/Refusal.ts"
import { chained, granted, keyOf, pinsTo, stepOf } from "./Tokens.ts"
import { runs } from "../support/Runs.ts"

const utf8 = new TextEncoder()
const encoded = (value: unknown) => base64url.encode(typeof value === "string" ? value : JSON.stringify(value))
const [good] = chained([granted("pat")])

/** Blocks that a verifier of RSASSA-PKCS1-v1_5 must refuse, although they are made with the private key itself. */
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

  it("accepts a signature with the right padding, and no other block", async () => {
    const kid = await calculateJwkThumbprint(jwk)
    const pins = pinsTo([kid], [jwk])
    const input = `${encoded({ alg: "RS256", typ: "secevent+jwt", kid })}.${encoded(good)}`
    const hash = createHash("sha256").update(input).digest()
    const by = (signature: Buffer) => stepOf(`${input}.${base64url.encode(signature)}`, pins)
    const made = (block: Buffer) => by(bytes(power(BigInt(`0x${block.toString("hex")}`), exponent)))
    const right = padded(Buffer.concat([info, hash]))
    assert.strictEqual(await made(right), "verified")

    const sha1 = hex("30 21 30 09 06 05 2b 0e 03 02 1a 05 00 04 14")
    const sha512 = hex("30 51 30 0d 06 09 60 86 48 01 65 03 04 02 03 05 00 04 40")
    const wrong: Readonly<Record<string, Buffer>> = {
      "block type 0": padded(Buffer.concat([info, hash]), 0, 0),
      "block type 2": padded(Buffer.concat([info, hash]), 2),
      "another fill": padded(Buffer.concat([info, hash]), 1, 0xfe),
      "an algorithm identifier without a hash": padded(info),
      "a hash without an algorithm identifier": padded(hash),
      "no NULL": padded(Buffer.concat([hex("30 2f 30 0b 06 09 60 86 48 01 65 03 04 02 01 04 20"), hash])),
      "lengths in the long form": padded(
        Buffer.concat([hex("30 81 31 30 0d 06 09 60 86 48 01 65 03 04 02 01 05 00 04 20"), hash]),
      ),
      "the hash of SHA-1": padded(Buffer.concat([sha1, createHash("sha1").update(input).digest()])),
      "the hash of SHA-512": padded(Buffer.concat([sha512, createHash("sha512").update(input).digest()])),
      "something after the hash": padded(Buffer.concat([info, hash, Buffer.alloc(8)])),
      // Bleichenbacher's forgery against exponent 3: short padding, and free bytes after the hash.
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
      "a leading zero": bytes(signature, 257),
      "a trailing zero": Buffer.concat([bytes(signature), Buffer.alloc(1)]),
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
  it("a header with another typ, alg or kid, or with a key of its own, is refused", async () => {
    const key = await keyOf("0")
    const eve = await keyOf("1")
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
      // The last of several members with one name counts (RFC 7515, 4).
      ["typ", raw(`{"alg":"RS256","typ":"secevent+jwt","kid":"${key.kid}","typ":"JWT"}`)],
      ["alg", raw(`{"alg":"RS256","typ":"secevent+jwt","kid":"${key.kid}","alg":"none"}`)],
      ["kid", raw(`{"alg":"RS256","typ":"secevent+jwt","kid":"${key.kid}","kid":"${eve.kid}"}`)],
      ["signature", raw(`{"alg":"none","typ":"JWT","kid":"x","alg":"RS256","typ":"secevent+jwt","kid":"${key.kid}"}`)],
      ["size", Promise.resolve(`${encoded(header)}.${"A".repeat(256 * 1024)}.AA`)],
      ["signature", Promise.resolve(`${encoded({ ...header, pad: "x".repeat(100_000) })}.${encoded(good)}.AA`)],
    ]
    for (const [i, [step, token]] of cases.entries()) assert.strictEqual(await stepOf(await token, pins), step, `${i}`)
    assert.strictEqual(await stepOf(await key.sign(good), pins), "verified")
  })
})

describe("keys", () => {
  it("a kid that is not pinned is never accepted, whatever the key set contains", async () => {
    const keys = await Promise.all(["0", "1", "2"].map(keyOf))
    const which = fc.integer({ min: 0, max: keys.length - 1 })
    const some = fc.uniqueArray(which)
    // Served with its own kid, another's or none, twice, with another alg, or not as an RSA key.
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
        const expected = !committed ? "kid" : !there ? "key" : by === named ? "verified" : "signature"
        assert.strictEqual(step, expected)
      }),
      { numRuns: runs(300) },
    )
  })
})
