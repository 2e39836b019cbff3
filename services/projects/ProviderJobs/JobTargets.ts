/** The target of a project's client at the provider, and the drift from it. */
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { digestOf } from "../../platform/security/CanonicalJson.ts"
import type { ClientTarget, Observed } from "../IdentityProvider.ts"

export interface ProjectRow {
  readonly id: ProjectId
  readonly name: string
  readonly redirect_uris: ReadonlyArray<string>
  readonly post_logout_redirect_uris: ReadonlyArray<string>
  readonly backchannel_logout_uri: string | null
  readonly requested_scopes: ReadonlyArray<string>
}

/** The reference by which a project's client can be found at the provider. */
export const referenceOf = (projectId: ProjectId): string => `bailiwick:${projectId}`

/**
 * The target of a project's client. A website signs people in by code and PKCE, without a secret; a connector without
 * redirect URIs gets client credentials for itself.
 */
export const targetOf = (project: ProjectRow): ClientTarget => {
  const signsIn = project.redirect_uris.length > 0
  return {
    client_name: project.name,
    redirect_uris: project.redirect_uris,
    post_logout_redirect_uris: project.post_logout_redirect_uris,
    backchannel_logout_uri: project.backchannel_logout_uri,
    grant_types: signsIn ? ["authorization_code"] : ["client_credentials"],
    response_types: signsIn ? ["code"] : [],
    scope: signsIn ? project.requested_scopes.join(" ") : "",
    token_endpoint_auth_method: signsIn ? "none" : "client_secret_basic",
    software_id: referenceOf(project.id),
  }
}

export interface Drift {
  readonly field: string
  readonly expected: string
  readonly observed: string
}

// The order of lists does not matter, and an empty value equals an absent one.
const normal = (field: string, value: unknown): unknown => {
  if (Array.isArray(value)) return value.length === 0 ? null : [...value].sort()
  if (field === "scope" && typeof value === "string") return normal("", value.split(" ").filter((word) => word !== ""))
  return value === "" || value === undefined ? null : value
}

/** The members in which the provider's client differs from its target. */
export const driftOf = (target: ClientTarget, observed: Observed): ReadonlyArray<Drift> =>
  Object.entries(target).flatMap(([field, value]) => {
    const expected = digestOf(normal(field, value))
    const found = digestOf(normal(field, observed[field]))
    return expected === found ? [] : [{ field, expected, observed: found }]
  })
