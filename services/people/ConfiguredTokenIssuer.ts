/** The configuration of an issuer of access tokens; the code that verifies tokens is loaded later. */
import { Duration, Schema } from "effect"
import { AssuranceLevel } from "../../schemas/identity/Assurance.ts"

/** Signature algorithms that an issuer may use. */
export const TokenAlgorithm = Schema.Literals(["RS256", "ES256"])
export type TokenAlgorithm = typeof TokenAlgorithm.Type

const positive = Schema.makeFilter((duration: Duration.Duration) =>
  Duration.isFinite(duration) && Duration.toMillis(duration) > 0
)

/** One of `MANAGEMENT_ISSUERS` or `LIFECYCLE_ISSUERS`. */
export const ConfiguredTokenIssuer = Schema.Struct({
  issuer: Schema.String.check(Schema.isPattern(/^\S+$/)),
  jwks_uri: Schema.String,
  algorithms: Schema.optionalKey(Schema.Array(TokenAlgorithm)),
  acr_map: Schema.optionalKey(Schema.Record(Schema.String, AssuranceLevel)),
  max_aal: Schema.optionalKey(AssuranceLevel),
  max_lifetime: Schema.optionalKey(Schema.DurationFromString.check(positive)),
})
export type ConfiguredTokenIssuer = typeof ConfiguredTokenIssuer.Type
