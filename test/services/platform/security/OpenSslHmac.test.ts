import { Buffer } from "node:buffer"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { execFileSync } from "node:child_process"
import { createHmac } from "node:crypto"
import process from "node:process"
import { openSslMac } from "../../../../services/platform/security/OpenSslHmac.ts"

const installed = (): boolean => {
  try {
    return execFileSync("/sbin/ldconfig", ["-p"], { encoding: "utf8" }).includes("libcrypto.so.3")
  } catch {
    return false
  }
}

describe("openSslMac", () => {
  it("is there under Deno where the system has OpenSSL, and nowhere else", () => {
    const expected = "Deno" in globalThis && process.platform === "linux" && installed()
    assert.strictEqual(openSslMac(new Uint8Array(1)) !== null, expected)
  })

  it("makes what node:crypto makes, of any key and message, with keys that take turns", () =>
    fc.assert(fc.property(
      fc.array(fc.uint8Array({ maxLength: 64 }), { minLength: 2, maxLength: 4 }),
      fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 6 }),
      (keys, messages) => {
        const macs = keys.map((key) => openSslMac(key))
        for (const message of messages) {
          for (const [index, key] of keys.entries()) {
            const made = macs[index]?.(message)
            if (made === undefined) continue
            assert.strictEqual(
              Buffer.from(made).toString("hex"),
              createHmac("sha256", key).update(message).digest("hex"),
            )
          }
        }
      },
    )))

  it("takes a view of a longer memory for what it shows", () => {
    const memory = new Uint8Array(1_000).map((_, index) => index)
    const key = new Uint8Array([1, 2, 3])
    for (const [from, to] of [[0, 0], [7, 71], [100, 1_000]] as const) {
      const made = openSslMac(key)?.(memory.subarray(from, to))
      const expected = createHmac("sha256", key).update(memory.subarray(from, to)).digest()
      if (made !== undefined) assert.deepStrictEqual([...made], [...expected])
    }
  })
})
