/** Access tokens of the management API as an issuer makes them (RFC 9068), good for a day. */
import "../../src/process/HideAsyncHooks.ts"
import { importJWK, type JWK, SignJWT } from "jose"
import { randomUUID } from "node:crypto"
import { issuer } from "../harness/IdentityFixture.ts"

/** Signs tokens of people with a private key: one session for each person. */
export const signer = async (jwk: JWK): Promise<(person: string) => Promise<string>> => {
  const key = await importJWK(jwk)
  return (person) =>
    new SignJWT({
      client_id: "portal",
      sid: `session-of-${person}`,
      auth_time: Math.floor(Date.now() / 1_000) - 60,
      acr: "urn:service:aal2",
      amr: ["pwd", "otp"],
    })
      .setProtectedHeader({ alg: jwk.alg!, typ: "at+jwt", kid: jwk.kid! })
      .setIssuer(issuer).setSubject(person).setAudience("service-management")
      .setIssuedAt().setExpirationTime("1 day").setJti(randomUUID()).sign(key)
}
