/** The strength of a sign-in: authenticator assurance levels (NIST SP 800-63B), and their names in tokens. */
import { Schema } from "effect"

/** Weakest first; their names sort by strength. */
export const AssuranceLevel = Schema.Literals(["aal1", "aal2", "aal3"])
export type AssuranceLevel = typeof AssuranceLevel.Type

export const Assurance = Schema.Literals([...AssuranceLevel.literals, "unknown"])
export type Assurance = typeof Assurance.Type

/** The `acr` of a level, as our challenges name it. */
export const acrOf = (level: AssuranceLevel): `urn:service:${AssuranceLevel}` => `urn:service:${level}`

/** The meaning of `acr` values for an issuer without a map of its own. */
export const defaultAcrMap: Readonly<Record<string, AssuranceLevel>> = Object.fromEntries(
  AssuranceLevel.literals.map((level) => [acrOf(level), level]),
)

/** Whether a level is at least `wanted`; `unknown` reaches no level. */
export const reaches = (level: Assurance, wanted: AssuranceLevel): boolean => level !== "unknown" && level >= wanted
