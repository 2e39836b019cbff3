import { assert, describe, it } from "@effect/vitest"
import { CompactSign, compactVerify } from "jose"
import { execFileSync } from "node:child_process"
import { generateKeyPairSync, sign, verify } from "node:crypto"
import process from "node:process"
import { openSsl } from "../../../../services/lifecycle/Keys/OpenSsl.ts"
import { signing } from "../../../../services/lifecycle/Keys/KeyGeneration.ts"

const rsa = (modulusLength = 2048) => generateKeyPairSync("rsa", { modulusLength })
const bytes = (text: string) => new TextEncoder().encode(text)

const installed = (): boolean => {
  try {
    return execFileSync("/sbin/ldconfig", ["-p"], { encoding: "utf8" }).includes("libcrypto.so.3")
  } catch {
    return false
  }
}

describe("OpenSSL", () => {
  it("is used under Deno where the system has the library, and not under Node", () => {
    const expected = "Deno" in globalThis && process.platform === "linux" && installed()
    assert.strictEqual(openSsl(rsa().privateKey) !== null, expected)
  })

  it("signs the same bytes as node:crypto, many at once under several keys", async () => {
    const keys = [rsa(), rsa(), rsa(3072)]
    await Promise.all(Array.from({ length: 60 }, async (_, n) => {
      const { privateKey, publicKey } = keys[n % keys.length]!
      const input = bytes(`${n} `.repeat(n * 37))
      const signature = await openSsl(privateKey)?.(input) ?? sign("sha256", input, privateKey)
      assert.isTrue(sign("sha256", input, privateKey).equals(signature))
      assert.isTrue(verify("sha256", input, publicKey, signature))
    }))
  })

  it("refuses a key that is not RSA with the expected signature", () => {
    assert.isNull(openSsl(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey))
  })

  it("makes the same compact JWS as jose", async () => {
    const { privateKey, publicKey } = rsa()
    const payload = JSON.stringify({ name: "Zoë", empty: "" })
    const made = await signing("kid-1", privateKey)("secevent+jwt", payload)
    const header = { alg: "RS256", typ: "secevent+jwt", kid: "kid-1" }
    assert.strictEqual(made, await new CompactSign(bytes(payload)).setProtectedHeader(header).sign(privateKey))
    assert.strictEqual(new TextDecoder().decode((await compactVerify(made, publicKey)).payload), payload)
  })
})
