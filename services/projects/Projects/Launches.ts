/**
 * Launches approved projects. An approved launch takes effect as soon as nothing is missing, and is `held`, with the
 * reason, until then. What it waits for comes from elsewhere (a review, the provider, the directory, an operator), so a
 * timer checks it again.
 */
import { Clock, Effect } from "effect"
import { isLocal, liesUnder } from "../../../schemas/identity/Addresses.ts"
import { InvalidState, PreviewChanged, VersionConflict } from "../../../schemas/problems/IdentityProblems.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { type RequestRow, requestRows, timersOf } from "../../requests/RequestRows.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { digestOf } from "../../platform/security/CanonicalJson.ts"
import { Database } from "../../platform/database/Database.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { ProviderJobs } from "../ProviderJobs.ts"
import { targetOf } from "../ProviderJobs/JobTargets.ts"
import { environmentHeld } from "../../access/ProjectRefusals.ts"
import { launchFieldsOf } from "./ProjectViews.ts"
import { type ProjectRow, projectRows } from "./Rows.ts"

interface Path {
  readonly reviewed: boolean
  /** Whether the project is as it was approved: in the same institution, and with the proposed preview, if any. */
  readonly approved: boolean
  readonly client: "none" | "live" | "disabled"
  /** Whether its institution is active. */
  readonly stands: boolean
  /** The institution's verified domains, which may have changed since the launch was proposed. */
  readonly domains: ReadonlyArray<string>
}

/** Whether a project may be launched at a URL: under a verified domain, or, for staging, at localhost. */
export const mayLaunchAt = (
  url: string,
  { environment }: Pick<ProjectRow, "environment">,
  domains: ReadonlyArray<string>,
): boolean => isLocal(url) ? environment === "staging" : liesUnder(new URL(url).hostname, domains)

/** What a project still needs before it can be launched; null: nothing. */
export const missingOf = (project: ProjectRow, launchUrl: string, path: Path): string | null => {
  const { approved, client, domains, reviewed, stands } = path
  if (project.rollout !== null) return "rollout_held"
  if (!approved) return "changed_since_approval"
  if (!stands) return "institution_not_active"
  if (!reviewed) return "registration_unreviewed"
  if (project.connector_kind === "standard_oidc" && project.redirect_uris.length === 0) return "redirect_uri_missing"
  if (project.connector_kind === "service_connector" && !(project.connector_product && project.preview_digest)) {
    return "connector_incomplete"
  }
  if (!mayLaunchAt(launchUrl, project, domains)) return "launch_url_unverified"
  return client === "none" ? "client_not_provisioned" : client === "disabled" ? "client_disabled" : null
}

export const launches = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const jobs = yield* ProviderJobs
  const positions = yield* EventLog
  const timers = yield* Timers
  const projects = projectRows(sql)
  const requests = requestRows(sql)

  const pathOf = Effect.fnUntraced(function* (project: ProjectRow, request: RequestRow) {
    const [row] = yield* sql<{
      waiting: boolean
      disabled: boolean | null
      expected: string | null
      ending: boolean
      asked: boolean
      stands: boolean | null
      domains: ReadonlyArray<string> | null
    }>`
      select exists (select from requests
          where kind = 'website' and project_id = ${project.id} and state = 'submitted') as waiting,
        (select disabled from provider_clients where project_id = ${project.id}) as disabled,
        (select expected_digest from provider_clients where project_id = ${project.id}) as expected,
        exists (select from provider_jobs where project_id = ${project.id} and kind = 'client.disable'
          and state <> 'effective') as ending,
        exists (select from provider_jobs where project_id = ${project.id} and state <> 'effective') as asked,
        i.status = 'active' as stands, i.verified_domains as domains
      from (select) one left join institutions i on i.id = ${project.institution_id} and not i.removed`
    const { asked, disabled, domains, ending, expected, stands, waiting } = row!
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
    const about = { reviewed: !waiting, approved, stands: stands ?? false, domains: domains ?? [] }
    return { ...about, client, asked, known } as const
  })

  /** Launches the project where nothing is missing, else holds the launch. */
  const advance = Effect.fnUntraced(function* (project: ProjectRow, request: RequestRow) {
    const path = yield* pathOf(project, request)
    // A project of the directory was never registered here, so its client was never requested. And a client that a
    // failed rollout disabled is made anew only with a launch that was reviewed again.
    if (path.client !== "live" && !path.asked && path.stands && path.approved && project.rollout === null) {
      yield* jobs.add({ kind: "client.create", projectId: project.id })
    }
    const { launch_url } = launchFieldsOf(request)
    const missing = missingOf(project, launch_url, path)
    if (missing !== null) {
      const state = "held" as const
      const unchanged = request.state === state && request.held_reason === missing
      // Another reason of waiting is no decision, and raises no version.
      if (project.state === state) yield* projects.explain(project.id, missing)
      else yield* projects.change(project, { state, heldReason: missing, heldFrom: project.held_from })
      const held = unchanged ? request : yield* requests.change(request, { state, heldReason: missing })
      return yield* timers.set(held.id, timersOf(held, yield* Clock.currentTimeMillis))
    }
    // The directory changed the project after the client was made: update the client at the provider.
    if (!path.known) yield* jobs.add({ kind: "client.update", projectId: project.id })
    const launched = yield* projects.change(project, { state: "launched", launchUrl: launch_url })
    const [eventId] = yield* positions.append({
      kind: "project-launched",
      projectId: project.id,
      institutionId: project.institution_id,
      payload: { project: { version: launched.revision } },
      initiatedBy: "admin",
    })
    yield* requests.change(request, { state: "launched", heldReason: null, eventId: eventId! })
    yield* timers.set(request.id, [])
    // Recorded as done by the system: the approval may be long ago.
    yield* audit.append({
      action: "project.launched",
      actor: "system",
      subject: `project:${project.id}`,
      outcome: "done",
      details: { institution: project.institution_id, version: launched.revision },
    })
  })

  /** Carries out an approved launch, of exactly the project version and preview that the owner proposed. */
  const carryOut = Effect.fnUntraced(function* ({ request }: Decision) {
    const project = yield* projects.lock(request.project_id!)
    const bound = launchFieldsOf(request)
    if (project !== null && project.rollout !== null) return yield* environmentHeld(project.id, project.rollout)
    if (project?.state !== "launch_proposed") {
      return yield* new InvalidState({ state: project?.state ?? "withdrawn", allowed: ["launch_proposed"] })
    }
    if (project.preview_digest !== bound.preview_digest) {
      return yield* new PreviewChanged({
        detail: `The launch was proposed for preview ${bound.preview_digest ?? "none"}, and the project has ` +
          `${project.preview_digest ?? "none"} by now: its owner has to propose the launch again.`,
      })
    }
    if (project.revision !== bound.project_version) {
      return yield* new VersionConflict({ current_version: project.revision })
    }
    yield* advance(project, request)
  })

  /** Checks a held launch again. */
  const settle = Effect.fnUntraced(function* (read: RequestRow) {
    yield* projects.turn(read.project_id!)
    yield* sql`select from institutions where id = ${read.institution_id} for share`
    const project = yield* projects.lock(read.project_id!)
    const request = yield* requests.lock(read.id)
    if (request?.state !== "held") return yield* timers.set(read.id, [])
    if (project === null || project.state === "withdrawn") return yield* timers.set(read.id, [])
    yield* advance(project, request)
  })

  return { carryOut, settle }
})
