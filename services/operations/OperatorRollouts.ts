/** Rollouts for operators: which are held or have failed, and holding, failing and releasing one (docs/requests.md). */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import type { HeldRollouts, RolloutStanding } from "../../schemas/identity/RolloutView.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type {
  InsufficientUserAuthentication,
  InvalidState,
  RoleRequired,
} from "../../schemas/problems/IdentityProblems.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"
import { type RolloutAction, Rollouts } from "../projects/Rollouts.ts"
import { heldRollouts } from "./HeldRollouts.ts"
import type { AskedPage } from "./OperatorAudit.ts"
import { mustOperate } from "./OperatorRole.ts"

interface Asked {
  readonly personId: PersonId
  readonly projectId: ProjectId
  readonly action: RolloutAction
  readonly reason: string
  /** The check of the operator's sign-in, which comes after the role's. */
  readonly stepUp: Effect.Effect<void, InsufficientUserAuthentication>
}

type Refused = RoleRequired | SqlError.SqlError

export class OperatorRollouts extends Context.Service<OperatorRollouts, {
  /** Projects whose rollout is held or has failed, ascending by id. */
  readonly list: (personId: PersonId, page: AskedPage) => Effect.Effect<HeldRollouts, Refused>
  /** Holds, fails or releases; InvalidState where the project is withdrawn. */
  readonly set: (
    asked: Asked,
  ) => Effect.Effect<
    RolloutStanding,
    InsufficientUserAuthentication | InvalidState | NotFound | Refused,
    InTransaction
  >
}>()("bailiwick/services/operations/OperatorRollouts") {
  static readonly layer = Layer.effect(
    OperatorRollouts,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operating = yield* mustOperate
      const rollouts = yield* Rollouts

      const list: OperatorRollouts["Service"]["list"] = Effect.fn("OperatorRollouts.list")(
        function* (personId, page) {
          yield* operating(personId)
          return yield* heldRollouts(sql, page)
        },
      )

      const set: OperatorRollouts["Service"]["set"] = Effect.fn("OperatorRollouts.set")(
        function* ({ action, personId, projectId, reason, stepUp }) {
          yield* operating(personId, "share")
          yield* stepUp
          const done = yield* Effect.provideService(
            rollouts.set(projectId, action, reason),
            CurrentOperator,
            `person:${personId}`,
          )
          if (done !== null) {
            const { jobId, rollout, state, version } = done
            return { project_id: projectId, rollout, state, version, job_id: jobId, changed: true }
          }
          const [row] = yield* sql<Pick<RolloutStanding, "rollout" | "state" | "version">>`
            select rollout, state, revision::int as version from projects where id = ${projectId}`
          return { project_id: projectId, ...row!, job_id: null, changed: false }
        },
      )

      return OperatorRollouts.of({ list, set })
    }),
  )
}
