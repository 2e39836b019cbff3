/**
 * The status of the work at the provider: a summary for every person, over the projects that the person can see; jobs,
 * and diagnostics of failed and ambiguous ones, for operators (docs/api/identity.md).
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import type { Diagnostics, Job, OperationsSummary } from "../../schemas/identity/Operation.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import type { LagPage } from "../lifecycle/Lag.ts"
import { roleRequired, Roles } from "../people/Roles.ts"
import { Database } from "../platform/database/Database.ts"
import { type JobPage, newestJobs } from "./Operations/NewestJobs.ts"
import { readDiagnostics } from "./Operations/ReadDiagnostics.ts"
import { summarizeJobs } from "./Operations/SummarizeJobs.ts"

const newest: JobPage = { limit: 100, afterId: null }

export class Operations extends Context.Service<Operations, {
  /**
   * Counts the jobs that the person can see: an operator sees all, others see the projects that they own and those of
   * institutions where they have a membership that has not ended. `failure_diagnostics_available` is true where the
   * person may also read the diagnostics of a failed job.
   */
  readonly summary: (personId: PersonId) => Effect.Effect<OperationsSummary, SqlError.SqlError>
  /** Jobs older than `afterId`, newest first; RoleRequired unless the person is an operator. */
  readonly jobs: (
    personId: PersonId,
    page?: JobPage,
  ) => Effect.Effect<ReadonlyArray<Job>, RoleRequired | SqlError.SqlError>
  /** `page`: of the consumers; by default the 500 that are furthest behind. */
  readonly diagnostics: (
    personId: PersonId,
    page?: LagPage,
  ) => Effect.Effect<Diagnostics, RoleRequired | SqlError.SqlError>
  /**
   * Diagnostics of one project: for its active owner, and for an operator with an active membership in its institution.
   */
  readonly projectDiagnostics: (
    personId: PersonId,
    projectId: ProjectId,
    page?: LagPage,
  ) => Effect.Effect<Diagnostics, NotFound | RoleRequired | SqlError.SqlError>
}>()("bailiwick/services/projects/Operations") {
  static readonly layer = Layer.effect(
    Operations,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const roles = yield* Roles
      const read = yield* readDiagnostics

      const mustOperate = Effect.fnUntraced(function* (personId: PersonId) {
        if (!(yield* roles.isOperator(personId, "none"))) return yield* roleRequired("an active operator")
      })

      const jobs = Effect.fn("Operations.jobs")(function* (personId: PersonId, page = newest) {
        yield* mustOperate(personId)
        return yield* newestJobs(sql, page)
      })

      const diagnostics = Effect.fn("Operations.diagnostics")(function* (personId: PersonId, page?: LagPage) {
        yield* mustOperate(personId)
        return yield* read(sql`true`, null, page)
      })

      const projectDiagnostics = Effect.fn("Operations.projectDiagnostics")(
        function* (personId: PersonId, projectId: ProjectId, page?: LagPage) {
          const { institution, operator, owner } = yield* roles.toProject(personId, projectId, "none")
          if (!owner && !(operator && institution?.member === true)) {
            return yield* roleRequired(
              "an active owner of the project, or an operator with an effective membership in its institution",
            )
          }
          return yield* read(sql`t.project_id = ${projectId}`, projectId, page)
        },
      )

      return Operations.of({ summary: yield* summarizeJobs, jobs, diagnostics, projectDiagnostics })
    }),
  )
}
