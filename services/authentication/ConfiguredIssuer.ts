/** The configuration of an issuer of cookies; the code that verifies cookies is loaded later. */
import { Schema } from "effect"

/** Signature algorithms that an issuer may use. */
export const CookieAlgorithm = Schema.Literals(["ES256", "RS256", "EdDSA"])
export type CookieAlgorithm = typeof CookieAlgorithm.Type

/** One of `MAIL_ISSUERS`. */
export interface ConfiguredIssuer {
  readonly issuer: string
  readonly jwks_uri: string
  readonly algorithms?: ReadonlyArray<CookieAlgorithm> | undefined
}
