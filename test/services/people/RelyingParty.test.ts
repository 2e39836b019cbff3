/** The domain and the origins for which passkeys are made. */
import { assert, describe, it } from "@effect/vitest"
import { relyingPartyAt } from "../../../services/people/Authenticators/Webauthn.ts"

const at = (portal: string, own?: string) =>
  relyingPartyAt(new URL(portal), own === undefined ? undefined : new URL(own))

describe("the relying party", () => {
  it("is the portal, and the console where it is of the portal's domain", () => {
    const portal = "https://example.com"
    assert.deepStrictEqual(at(portal), { id: "example.com", origins: [portal] })
    assert.deepStrictEqual(at(portal, "https://console.example.com:8443/x").origins, [
      portal,
      "https://console.example.com:8443",
    ])
    for (const own of ["https://badexample.com", "https://example.com.evil.net", "https://example.org"]) {
      assert.deepStrictEqual(at(portal, own).origins, [portal], own)
    }
  })

  it("is localhost on a loopback address, which browsers take for no domain", () => {
    assert.deepStrictEqual(at("http://127.0.0.1:8080"), {
      id: "localhost",
      origins: ["http://localhost:8080", "http://127.0.0.1:8080"],
    })
    assert.deepStrictEqual(at("http://localhost:3000", "http://127.0.0.1:8080"), {
      id: "localhost",
      origins: ["http://localhost:3000", "http://localhost:8080"],
    })
  })
})
