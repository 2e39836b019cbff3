/**
 * Launches approved projects. An approved launch takes effect as soon as nothing is missing, and is `held`, with the
 * reason, until then. What it waits for comes from elsewhere (a review, the provider, the directory, an operator), so a
 * timer checks it again.
 */
import { Clock, Effect } from "effect"
import { InvalidState, PreviewChanged, VersionConflict } from "../../../schemas/problems/IdentityProblems.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { type RequestRow, requestRows, timersOf } from "../../requests/RequestRows.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { ProviderJobs } from "../ProviderJobs.ts"
import { environmentHeld } from "../../access/ProjectRefusals.ts"
import { launchConditions, missingOf } from "./LaunchConditions.ts"
import { launchFieldsOf } from "./ProjectViews.ts"
import { type ProjectRow, projectRows } from "./Rows.ts"

export const launches = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const jobs = yield* ProviderJobs
  const eventLog = yield* EventLog
  const timers = yield* Timers
  const conditionsOf = yield* launchConditions
  const projects = projectRows(sql)
  const requests = requestRows(sql)

  /** Launches the project where nothing is missing, else holds the launch. */
  const advance = Effect.fnUntraced(function* (project: ProjectRow, request: RequestRow) {
    const conditions = yield* conditionsOf(project, request)
    // A project of the directory was never registered here, so its client was never requested. And a client that a
    // failed rollout disabled is made anew only with a launch that was reviewed again.
    if (
      conditions.client !== "live" && !conditions.asked && conditions.institutionActive && conditions.approved &&
      project.rollout === null
    ) {
      yield* jobs.add({ kind: "client.create", projectId: project.id })
    }
    const { launch_url } = launchFieldsOf(request)
    const missing = missingOf(project, launch_url, conditions)
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
    if (!conditions.known) yield* jobs.add({ kind: "client.update", projectId: project.id })
    const launched = yield* projects.change(project, { state: "launched", launchUrl: launch_url })
    const [eventId] = yield* eventLog.append({
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
      decision: true,
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
