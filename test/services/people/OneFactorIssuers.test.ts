import { assert, describe, it } from "@effect/vitest"
import { type ConfiguredTokenIssuer, oneFactorIssuers } from "../../../services/people/ConfiguredTokenIssuer.ts"

const issuer = (name: string, more: Partial<ConfiguredTokenIssuer> = {}): ConfiguredTokenIssuer => ({
  issuer: `https://${name}.example`,
  jwks_uri: `https://${name}.example/jwks`,
  ...more,
})

describe("issuers that give no second factor", () => {
  it("are those whose levels end at aal1, and that have no assertions checked here", () => {
    const issuers = [
      issuer("default"),
      issuer("capped", { max_aal: "aal1" }),
      issuer("mapped", { acr_map: { password: "aal1" } }),
      issuer("both", { acr_map: { password: "aal1", key: "aal2" } }),
      issuer("asking", { max_aal: "aal1" }),
      issuer("capped.longer", { max_aal: "aal2" }),
    ]
    const clients = ["https://asking.example sign-in", "https://mapped.example.org sign-in"]
    assert.deepStrictEqual([...oneFactorIssuers(issuers, clients)], [
      "https://capped.example",
      "https://mapped.example",
    ])
    assert.deepStrictEqual([...oneFactorIssuers([], clients)], [])
  })
})
