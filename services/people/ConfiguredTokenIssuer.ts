/** The configuration of an issuer of access tokens; the code that verifies tokens is loaded later. */
import { Duration, Schema } from "effect"
import { AssuranceLevel, defaultAcrMap } from "../../schemas/identity/Assurance.ts"

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

/**
 * The issuers that never state a sign-in of two factors, and have none checked here either (`clients`: ASSERTION_CLIENTS,
 * each `issuer client_id`). A person of theirs who enrolls a second factor here is asked for one that is never given.
 */
export const oneFactorIssuers = (
  issuers: ReadonlyArray<ConfiguredTokenIssuer>,
  clients: ReadonlyArray<string>,
): ReadonlySet<string> =>
  new Set(
    issuers.filter(({ acr_map, issuer, max_aal = "aal3" }) =>
      (max_aal === "aal1" || Object.values(acr_map ?? defaultAcrMap).every((level) => level === "aal1")) &&
      !clients.some((client) => client.startsWith(`${issuer} `))
    ).map(({ issuer }) => issuer),
  )
