/** Carries out a registration: releases the provider's job, and records the signers on the project and its owner. */
import { Effect } from "effect"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { requestRows } from "../../requests/RequestRows.ts"
import { Database } from "../../platform/database/Database.ts"
import { ProviderJobs } from "../ProviderJobs.ts"
import { environmentHeld } from "../../access/ProjectRefusals.ts"
import { launchableStates, projectRows } from "./Rows.ts"

export const approveRegistration = Effect.gen(function* () {
  const { sql } = yield* Database
  const jobs = yield* ProviderJobs
  const projects = projectRows(sql)
  const requests = requestRows(sql)

  return Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
    const project = yield* projects.lock(request.project_id!)
    if (project === null || project.state === "withdrawn") {
      return yield* new InvalidState({ state: "withdrawn", allowed: launchableStates })
    }
    if (project.rollout !== null) return yield* environmentHeld(project.id, project.rollout)
    const signed = [...approvedBy]
    yield* sql`update projects set approved_by = ${signed}::text[] where id = ${project.id}`
    // Not where an administrator changed the owner meanwhile: then the row is not the registered one.
    yield* sql`
      update project_owners set approved_by = ${signed}::text[]
      where id = ${String(request.fields["owner_id"])} and made_by = ${request.author} and revision = 1`
    yield* jobs.release(project.id)
    yield* requests.change(request, { state: "approved", resultId: project.id })
  })
})
