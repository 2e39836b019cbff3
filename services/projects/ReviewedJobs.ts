/**
 * An operator's commands on a provider job that failed or is ambiguous (docs/identity.md): first look at the provider
 * with the saved reference (`reconcile`), and only where that cannot decide, or the provider refused for good, send the
 * job again (`retry`) or name the client that it made (`repair`). Each needs an operator and a reason, and the audit
 * records both.
 *
 * `reconcile` and `repair` only read at the provider, outside any transaction and under a claim of the job, which ends
 * with the scope; the effect that they return settles the job in the caller's transaction. So after a 504 nothing was
 * done, and the request may be repeated with the same key. `retry` runs entirely in the caller's transaction.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import type { Job } from "../../schemas/identity/Operation.ts"
import type { OutcomeUnknown } from "../../schemas/problems/IdentityProblems.ts"
import type { HTTPValidationError } from "../../schemas/Validation.ts"
import { jobClaims, type Reviewed } from "./ReviewedJobs/JobClaims.ts"
import { reconcileJob } from "./ReviewedJobs/ReconcileJob.ts"
import { type Repair, repairJob } from "./ReviewedJobs/RepairJob.ts"
import { type ReviewFault, type Settlement, settleReviewedJob } from "./ReviewedJobs/SettleReviewedJob.ts"

export class ReviewedJobs extends Context.Service<ReviewedJobs, {
  /** OutcomeUnknown where the provider does not answer: the job stays as it is. */
  readonly reconcile: (reviewed: Reviewed) => Effect.Effect<Settlement, ReviewFault | OutcomeUnknown, Scope.Scope>
  readonly retry: (reviewed: Reviewed) => Effect.Effect<Job, ReviewFault>
  /**
   * Names the client that the provider made, as its operator reads it there; 422 where the provider has no such client,
   * or the client belongs to another project. For a job that disables: confirms that the client is gone; 422 where it
   * is not.
   */
  readonly repair: (
    repair: Repair,
  ) => Effect.Effect<Settlement, ReviewFault | OutcomeUnknown | HTTPValidationError, Scope.Scope>
}>()("bailiwick/services/projects/ReviewedJobs") {
  static readonly layer = Layer.effect(
    ReviewedJobs,
    Effect.gen(function* () {
      const settle = yield* settleReviewedJob
      const { claim, isUndecidable, mustOperate } = yield* jobClaims

      const retry = Effect.fn("ReviewedJobs.retry")(function* (by: Reviewed) {
        yield* mustOperate(by.personId)
        const job = yield* claim(by.jobId, isUndecidable, "failed")
        return yield* settle(job, by, "retry", { to: "pending", code: "retried" })
      })

      return ReviewedJobs.of({ reconcile: yield* reconcileJob, retry, repair: yield* repairJob })
    }),
  )
}
