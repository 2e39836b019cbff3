/** RSA signatures verified by BigInt arithmetic, by OpenSSL and by the runtime: all must agree. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { execFileSync } from "node:child_process"
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto"
import process from "node:process"
import { keyCache } from "../../sdk/Keys.ts"
import { bigIntKey, nativeKey, openSslKey, type PublicKey, rs256, type RsaKey } from "../../sdk/Rs256.ts"
import { runs } from "../support/Runs.ts"

const jwkOf = (key: KeyObject) => key.export({ format: "jwk" }) as RsaKey & { readonly d: string }
const big = (bytes: Uint8Array | string) => BigInt(`0x${Buffer.from(bytes as string, "base64url").toString("hex")}`)
const bytes = (value: bigint, length: number) => Buffer.from(value.toString(16).padStart(length * 2, "0"), "hex")
const pair = (modulusLength: number, publicExponent = 65_537) =>
  generateKeyPairSync("rsa", { modulusLength, publicExponent })

/** The implementations that are available: OpenSSL by FFI is missing under Node, and where Deno finds no libcrypto. */
const waysOf = (key: RsaKey): ReadonlyArray<PublicKey> => {
  const byOpenSsl = openSslKey(big(key.n))
  return [nativeKey(key), bigIntKey(big(key.n)), ...(byOpenSsl === null ? [] : [byOpenSsl])]
}

const made = (modulusLength: number) => {
  const { privateKey } = pair(modulusLength)
  const { e, n } = jwkOf(privateKey)
  return {
    modulus: big(n),
    size: Math.ceil(modulusLength / 8),
    by: waysOf({ n, e }),
    signed: (text: string) => sign("sha256", Buffer.from(text), privateKey),
  }
}

type Pair = ReturnType<typeof made>

/** The common result of all implementations; asserts that they agree. */
const verdict = ({ by: [native, ...others] }: Pair, signature: Uint8Array, text: string): boolean => {
  const result = native!.verify(signature, text)
  for (const other of others) {
    assert.strictEqual(other.verify(signature, text), result, `${Buffer.from(signature).toString("hex")} of ${text}`)
  }
  return result
}

const installed = (): boolean => {
  try {
    return execFileSync("/sbin/ldconfig", ["-p"], { encoding: "utf8" }).includes("libcrypto.so.3")
  } catch {
    return false
  }
}

describe("RS256", () => {
  it("is verified by OpenSSL under Deno on a Linux that has it, and nowhere else", () => {
    const expected = "Deno" in globalThis && process.platform === "linux" && installed()
    assert.strictEqual(openSslKey(made(2_048).modulus) !== null, expected)
    assert.isNull(openSslKey(made(2_048).modulus - 1n), "a modulus that OpenSSL does not take")
  })

  const keys = [2_048, 2_056, 2_047 + 8, 3_072, 4_096].map(made)

  it("a signature is valid for its key and text only", () => {
    for (const [i, key] of keys.entries()) {
      for (const text of ["", "x", "é€😀", "a.b".repeat(40_000)]) {
        assert.isTrue(verdict(key, key.signed(text), text))
        assert.isFalse(verdict(key, key.signed(text), `${text} `))
        assert.isFalse(verdict(keys[(i + 1) % keys.length]!, key.signed(text), text))
      }
    }
  })

  it("a signature with one changed bit is invalid", () => {
    const [key] = keys
    const signature = key!.signed("good")
    for (let bit = 0; bit < signature.length * 8; bit++) {
      const other = Buffer.from(signature)
      other[bit >> 3]! ^= 1 << (bit & 7)
      for (const way of key!.by.slice(1)) assert.isFalse(way.verify(other, "good"), String(bit))
    }
  })

  it("numbers at the edges, and of other lengths, are not valid signatures", () => {
    for (const key of keys) {
      const { modulus, size } = key
      const signature = key.signed("good")
      const value = BigInt(`0x${signature.toString("hex")}`)
      const most = 2n ** BigInt(size * 8) - 1n
      const edges = [0n, 1n, 2n, modulus - 1n, modulus, modulus - value, most]
      for (const edge of value + modulus <= most ? [...edges, value + modulus] : edges) {
        assert.isFalse(verdict(key, bytes(edge, size), "good"), String(edge))
      }
      const zero = Buffer.alloc(1)
      for (const other of [Buffer.concat([zero, signature]), Buffer.concat([signature, zero]), signature.subarray(1)]) {
        assert.isFalse(verdict(key, other, "good"))
      }
      assert.isFalse(verdict(key, Buffer.alloc(0), "good"))
    }
  })

  it("the implementations agree about any bytes", () => {
    const some = fc.oneof(
      fc.uint8Array({ minLength: 0, maxLength: 260 }),
      fc.uint8Array({ minLength: 256, maxLength: 256 }),
      fc.tuple(fc.nat(255), fc.nat(255)).map(([at, by]) => {
        const other = keys[0]!.signed("good")
        other[at] = by
        return other
      }),
    )
    fc.assert(
      fc.property(some, (signature) => {
        verdict(keys[0]!, signature, "good")
      }),
      { numRuns: runs(300) },
    )
  })

  it("another block than the valid one, made with the private key, is invalid", () => {
    const { privateKey } = pair(2_048)
    const { d, e, n } = jwkOf(privateKey)
    const [modulus, exponent] = [big(n), big(d)]
    const power = (base: bigint) => {
      let [result, square] = [1n, base % modulus]
      for (let left = exponent; left > 0n; left >>= 1n) {
        if (left & 1n) result = result * square % modulus
        square = square * square % modulus
      }
      return result
    }
    const hash = createHash("sha256").update("good").digest("hex")
    const info = "3031300d060960864801650304020105000420"
    const block = (padding: string) => BigInt(`0x${padding}${info}${hash}`)
    const key = {
      modulus,
      size: 256,
      by: waysOf({ n, e }),
      signed: () => Buffer.alloc(0),
    }
    const by = (padding: string) => verdict(key, bytes(power(block(padding)), 256), "good")
    assert.isTrue(by(`0001${"ff".repeat(202)}00`))
    assert.isFalse(by(`0002${"ff".repeat(202)}00`))
    assert.isFalse(by(`0101${"ff".repeat(202)}00`))
    assert.isFalse(by(`0001${"ff".repeat(201)}0000`))
    assert.isFalse(by(`0001${"ff".repeat(203)}`))
    assert.isFalse(by(`0001${"ff".repeat(201)}fe00`))
    assert.isFalse(by("01"))
  })

  it("a key with another exponent works; a short or invalid key is refused", async () => {
    const { privateKey } = pair(2_048, 3)
    const { e, n } = jwkOf(privateKey)
    const signature = sign("sha256", Buffer.from("good"), privateKey)
    assert.isTrue(rs256({ n, e })!.verify(signature, "good"))
    assert.isFalse(rs256({ n, e: "AQAB" })!.verify(signature, "good"))
    const short = jwkOf(pair(2_040).privateKey)
    const cache = keyCache(() =>
      Promise.resolve({ keys: [{ kty: "RSA", n: short.n, e: short.e }, { kty: "RSA", n, e: 3 }] })
    )
    for (const key of [short, { n: "", e }, { n: "AA", e }, { n: "!", e }]) assert.isNull(rs256(key), key.n)
    await cache(["x"]).key("x").then(() => assert.fail("an unknown key was found"), () => {})
  })
})
