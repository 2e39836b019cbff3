/** The conditions of a launch: a pure function of the project's facts in the database. */
import { Effect } from "effect"
import { isLocal, liesUnder } from "../../../schemas/identity/Addresses.ts"
import type { RequestRow } from "../../requests/RequestRows.ts"
import { digestOf } from "../../platform/security/CanonicalJson.ts"
import { Database } from "../../platform/database/Database.ts"
import { targetOf } from "../ProviderJobs/JobTargets.ts"
import { launchFieldsOf } from "./ProjectViews.ts"
import type { ProjectRow } from "./Rows.ts"

export interface LaunchConditions {
  readonly reviewed: boolean
  /** Whether the project is as it was approved: in the same institution, and with the proposed preview, if any. */
  readonly approved: boolean
  readonly client: "none" | "live" | "disabled"
  /** Whether its institution is active. */
  readonly institutionActive: boolean
  /** The institution's verified domains, which may have changed since the launch was proposed. */
  readonly domains: ReadonlyArray<string>
}

/** Whether a project may be launched at a URL: under a verified domain, or, for staging, at localhost. */
export const mayLaunchAt = (
  url: string,
  { environment }: Pick<ProjectRow, "environment">,
  domains: ReadonlyArray<string>,
): boolean => isLocal(url) ? environment === "staging" : liesUnder(new URL(url).hostname, domains)

/** The condition that still keeps a project from its launch; null: none. */
export const missingOf = (project: ProjectRow, launchUrl: string, conditions: LaunchConditions): string | null => {
  const { approved, client, domains, institutionActive, reviewed } = conditions
  if (project.rollout !== null) return "rollout_held"
  if (!approved) return "changed_since_approval"
  if (!institutionActive) return "institution_not_active"
  if (!reviewed) return "registration_unreviewed"
  if (project.connector_kind === "standard_oidc" && project.redirect_uris.length === 0) return "redirect_uri_missing"
  if (project.connector_kind === "service_connector" && !(project.connector_product && project.preview_digest)) {
    return "connector_incomplete"
  }
  if (!mayLaunchAt(launchUrl, project, domains)) return "launch_url_unverified"
  return client === "none" ? "client_not_provisioned" : client === "disabled" ? "client_disabled" : null
}

/** Reads the conditions of a launch. */
export const launchConditions = Effect.gen(function* () {
  const { sql } = yield* Database

  return Effect.fnUntraced(function* (project: ProjectRow, request: RequestRow) {
    const [row] = yield* sql<{
      waiting: boolean
      disabled: boolean | null
      expected: string | null
      ending: boolean
      asked: boolean
      institution_active: boolean | null
      domains: ReadonlyArray<string> | null
    }>`
      select exists (select from requests
          where kind = 'website' and project_id = ${project.id} and state = 'submitted') as waiting,
        (select disabled from provider_clients where project_id = ${project.id}) as disabled,
        (select expected_digest from provider_clients where project_id = ${project.id}) as expected,
        exists (select from provider_jobs where project_id = ${project.id} and kind = 'client.disable'
          and state <> 'effective') as ending,
        exists (select from provider_jobs where project_id = ${project.id} and state <> 'effective') as asked,
        i.status = 'active' as institution_active, i.verified_domains as domains
      from (select) one left join institutions i on i.id = ${project.institution_id} and not i.removed`
    const { asked, disabled, domains, ending, expected, institution_active, waiting } = row!
    // A client whose end is still pending counts as disabled: otherwise the job would end it after the launch.
    const client = disabled === true || ending
      ? "disabled"
      : disabled === false || project.client_id !== null
      ? "live"
      : "none"
    const known = expected === null || expected === digestOf(targetOf(project))
    // A project whose connector the directory completed later is still as approved; with another preview, or in another
    // institution, it is not.
    const { preview_digest: preview } = launchFieldsOf(request)
    const approved = project.institution_id === request.institution_id &&
      (preview === null || preview === project.preview_digest)
    const about = {
      reviewed: !waiting,
      approved,
      institutionActive: institution_active ?? false,
      domains: domains ?? [],
    }
    return { ...about, client, asked, known } as const
  })
})
