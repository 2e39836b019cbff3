/** Access tokens of the management API as an issuer makes them (RFC 9068), good for a day. */
import "../../../src/process/HideAsyncHooks.ts"
import { importJWK, type JWK, SignJWT } from "jose"
import { randomUUID } from "node:crypto"
import { issuer } from "../../harness/IdentityFixture.ts"

/** The subject of a token, and the client that requested it. */
export interface Meant {
  readonly audience: string
  readonly clientId: string
}

const portal: Meant = { audience: "service-management", clientId: "portal" }

/** Signs tokens with a private key: one session for each person. A service is a client that speaks for itself. */
export const signer = async (jwk: JWK): Promise<(person: string, meant?: Meant) => Promise<string>> => {
  const key = await importJWK(jwk)
  return (person, { audience, clientId } = portal) =>
    new SignJWT({
      client_id: clientId,
      sid: `session-of-${person}`,
      auth_time: Math.floor(Date.now() / 1_000) - 60,
      acr: "urn:service:aal2",
      amr: ["pwd", "otp"],
    })
      .setProtectedHeader({ alg: jwk.alg!, typ: "at+jwt", kid: jwk.kid! })
      .setIssuer(issuer).setSubject(person).setAudience(audience)
      .setIssuedAt().setExpirationTime("1 day").setJti(randomUUID()).sign(key)
}
