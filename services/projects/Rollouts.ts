/**
 * Holds, fails and releases rollouts (docs/requests.md). `hold`: nothing new is activated in the project. `fail`: in
 * addition its client is disabled, the client's sessions end, and waiting launches are closed. `release` ends either
 * and restores nothing: after a failure the project is `registered`, and its next launch, reviewed like any, makes the
 * client anew. Revocations are never held.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { ProjectId, ProviderJobId } from "../../schemas/BrandedIds.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { InvalidState } from "../../schemas/problems/IdentityProblems.ts"
import { EventLog } from "../lifecycle/EventLog.ts"
import { clientSessions } from "../people/ClientSessions.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import { closings } from "./Projects/CloseRequests.ts"
import { type ProjectChange, type ProjectRow, projectRows } from "./Projects/Rows.ts"
import { jobQueue } from "./ProviderJobs/Queue.ts"

export type RolloutAction = "hold" | "fail" | "release"

export interface RolloutChange {
  readonly projectId: ProjectId
  readonly state: ProjectRow["state"]
  readonly rollout: ProjectRow["rollout"]
  readonly version: number
  /** The job that disables the client. */
  readonly jobId: ProviderJobId | null
}

/** The change of a locked project; null where it is in that state already. */
const changeOf = (project: ProjectRow, action: RolloutAction): ProjectChange | null => {
  const { held_from, held_reason, rollout, state } = project
  if (action === "release") {
    if (rollout === null) return null
    const back = rollout === "fail" ? "registered" : held_from
    return state === "held" && back !== null ? { state: back, rollout: null } : {
      state,
      heldReason: held_reason,
      heldFrom: held_from,
      rollout: null,
    }
  }
  // A failed rollout is held already.
  if (rollout === action || rollout === "fail") return null
  const reason = action === "fail" ? "rollout_failed" : "rollout_held"
  return state === "held"
    ? {
      state,
      heldReason: rollout === null && held_reason !== null ? held_reason : reason,
      heldFrom: held_from,
      rollout: action,
    }
    : { state: "held", heldReason: reason, heldFrom: state === "withdrawn" ? null : state, rollout: action }
}

export class Rollouts extends Context.Service<Rollouts, {
  /** InvalidState: the project is withdrawn. Null: nothing to change. */
  readonly set: (
    projectId: ProjectId,
    action: RolloutAction,
    reason: string,
  ) => Effect.Effect<RolloutChange | null, NotFound | InvalidState | SqlError.SqlError, InTransaction>
}>()("bailiwick/services/projects/Rollouts") {
  static readonly layer = Layer.effect(
    Rollouts,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit
      const { close } = yield* closings
      const jobs = yield* jobQueue
      const eventLog = yield* EventLog
      const { end: endSessions } = yield* clientSessions
      const projects = projectRows(sql)

      const set = Effect.fn("Rollouts.set")(function* (projectId: ProjectId, action: RolloutAction, reason: string) {
        yield* projects.turn(projectId)
        const project = yield* projects.lock(projectId)
        if (project === null) return yield* new NotFound()
        if (project.state === "withdrawn") {
          const allowed = ["registered", "launch_proposed", "launched", "held"]
          return yield* new InvalidState({ state: project.state, allowed })
        }
        const to = changeOf(project, action)
        if (to === null) return null
        const changed = yield* projects.change(project, to)
        let jobId: ProviderJobId | null = null
        if (action === "fail") {
          // A launch that was approved before the failure must not take effect at the release.
          yield* close(projectId, "launches", null)
          // Jobs of a project run in order: a client that is being made now exists when this job runs.
          const open = yield* sql`
            select from provider_jobs where project_id = ${projectId} and state <> 'effective' and not held limit 1`
          if (project.client_id !== null || open.length > 0) {
            jobId = yield* jobs.add({ kind: "client.disable", projectId })
          }
          const ended = yield* endSessions({
            projectId,
            institutionId: project.institution_id,
            clientId: project.client_id,
            reason: "ROLLOUT_FAILED",
            initiatedBy: "system",
          })
          yield* eventLog.append(...ended)
        }
        yield* audit.append({
          action: `rollout.${action}`,
          actor: yield* CurrentOperator,
          subject: `project:${projectId}`,
          outcome: "done",
          decision: true,
          details: { institution: project.institution_id, reason, version: changed.revision },
        })
        return { projectId, state: changed.state, rollout: changed.rollout, version: changed.revision, jobId }
      })

      return Rollouts.of({ set })
    }),
  )
}
