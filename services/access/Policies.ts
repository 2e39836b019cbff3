/**
 * Policy reviews decided (DECISIONS-identity 1.12): each required role is signed by a holder who is somebody else than the
 * author and than everybody who signed before. The last signature carries the request out, in the same transaction.
 *
 * The methods that change something run in the caller's transaction, which must be one of `Transact`. Order of locks: the
 * project's turn, people, institution, memberships, project, review, request. What a signature is worth is judged under
 * those locks: a role that is taken away at the same moment signs nothing.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PolicyReview, PolicyReviews as List } from "../../schemas/identity/Policies.ts"
import { NotFound } from "../../schemas/problems/Floor.ts"
import * as Problems from "../../schemas/problems/Identity.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Links } from "../people/Links.ts"
import { Roles } from "../people/Roles.ts"
import { Audit } from "../platform/Audit.ts"
import { Database } from "../platform/Database.ts"
import { mustBeOpen } from "../platform/Installation.ts"
import { Timers } from "../platform/Timers.ts"
import { Projects } from "../projects/Projects.ts"
import { Enrollments } from "./Enrollments.ts"
import { holding } from "./Policies/Holding.ts"
import { listing, type Page } from "./Policies/Listing.ts"
import { type Decision, type PolicyReviewRow, policyReviewRows, PolicyReviews } from "./PolicyReviews.ts"
import { type RequestRow, requestRows, stateAt } from "./RequestRows.ts"
import { Requests } from "./Requests.ts"
import { expiry } from "./Requests/Expiry.ts"

type StepUp = Effect.Effect<void, Problems.InsufficientUserAuthentication>
type Refusal =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired
  | Problems.FourEyesRequired
  | Problems.InsufficientUserAuthentication
  | Problems.InvalidState

export interface PolicyDecision {
  readonly personId: string
  readonly reviewId: string
  /** The role that the person signs in. */
  readonly role: string
  readonly reason: string
  /** Asked after the person's rights and before the state. */
  readonly stepUp: StepUp
}

const declined: Readonly<Record<RequestRow["kind"], "declined" | "revoked">> = {
  organization: "declined",
  website: "declined",
  access: "declined",
  enrollment: "revoked",
  launch: "declined",
  link: "declined",
  membership: "declined",
}

/** Whether all that a request asks for is that somebody has less: that is never held. */
const takesAway = ({ fields, kind }: RequestRow) =>
  kind === "membership" && (fields["state"] === "suspended" || fields["state"] === "ended")

export class Policies extends Context.Service<Policies, {
  readonly approve: (decision: PolicyDecision) => Effect.Effect<
    PolicyReview,
    | Refusal
    | Problems.EnvironmentHeld
    | Problems.FourEyesCollapsed
    | Problems.Held
    | Problems.PreviewChanged
    | Problems.VersionConflict
    | SqlError.SqlError
  >
  /** By any who could approve: one no is enough. */
  readonly decline: (decision: PolicyDecision) => Effect.Effect<PolicyReview, Refusal | SqlError.SqlError>
  /** Those that the person may act on; in other states than `open`, those that they might have. */
  readonly list: (page: Page) => Effect.Effect<List, SqlError.SqlError>
  /** Writes down what the clock made of a request: what timers call. */
  readonly settle: (requestId: string) => Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/access/Policies") {
  static readonly layer = Layer.effect(
    Policies,
    Effect.gen(function* () {
      const { reads, sql } = yield* Database
      const audit = yield* Audit
      const enrollments = yield* Enrollments
      const links = yield* Links
      const projects = yield* Projects
      const requests = yield* Requests
      const reviews = yield* PolicyReviews
      const roles = yield* Roles
      const timers = yield* Timers
      const rows = requestRows(sql)
      const { byId, lock, signatures } = policyReviewRows(sql)
      const { inRole, isSame, mustBeAnother } = holding(sql, roles)
      const expire = yield* expiry

      const carryOut = (decision: Decision) => {
        switch (decision.request.kind) {
          case "enrollment":
            return enrollments.carryOut(decision)
          case "website":
          case "launch":
            return projects.carryOut(decision)
          case "link":
            return links.carryOut(decision)
          default:
            return requests.carryOut(decision)
        }
      }

      const end = Effect.fnUntraced(function* (review: PolicyReviewRow, state: "applied") {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`update policy_reviews set state = ${state}, decided_at = ${now} where id = ${review.id}::uuid`
      })

      /** Locks what the decision reads, and judges the signature that it would be. */
      const admitted = Effect.fnUntraced(function* ({ personId, reviewId, role, stepUp }: PolicyDecision) {
        const seen = isUuid(reviewId) ? yield* byId(reviewId) : null
        if (seen === null) return yield* new NotFound()
        if (seen.project_id !== null) {
          yield* sql`select pg_advisory_xact_lock(hashtextextended(${`project ${seen.project_id}`}, 0))`
        }
        const operator = yield* roles.isOperator(personId)
        const standing = seen.institution_id === null
          ? null
          : yield* roles.inInstitution(personId, seen.institution_id).pipe(
            Effect.catchTag("NotFound", () => Effect.succeed(null)),
          )
        const author = yield* isSame(personId, seen.author)
        if (!operator && standing === null && !author) return yield* new NotFound()
        if (seen.project_id !== null) yield* sql`select from projects where id = ${seen.project_id} for update`
        const review = (yield* lock(reviewId))!
        const request = (yield* rows.lock(review.request_id))!
        const signed = yield* signatures(review.id)
        const people = signed.map(({ person_id }) => person_id)
        if (author) return yield* yield* roles.fourEyes(personId, seen.author)
        const standsIn = yield* inRole({ personId, operator, standing }, role, review, people)
        if (review.state === "open") yield* mustBeAnother(personId, review, people)
        yield* stepUp
        const allowed = review.required_roles.filter((needed) => !signed.some((one) => one.role === needed))
        if (review.state !== "open") {
          return yield* new Problems.InvalidState({ state: review.state, allowed: ["open"] })
        }
        const now = stateAt(request, yield* Clock.currentTimeMillis)
        if (now === "expired") return yield* new Problems.InvalidState({ state: now, allowed: ["open"] })
        if (!allowed.some((needed) => needed === role)) {
          const detail = `The review waits for ${allowed.join(" and ")}, not for ${role}.`
          return yield* new Problems.InvalidState({ state: review.state, allowed, detail })
        }
        return { review, request, standsIn, missing: allowed.filter((needed) => needed !== role), people }
      })

      /** The people of an institution decide nothing about a project that the directory gave to another one. */
      const mustBelong = Effect.fnUntraced(function* ({ institution_id, project_id }: PolicyReviewRow) {
        const moved = yield* sql`
          select from projects where id = ${project_id} and institution_id <> ${institution_id}`
        if (moved.length === 0) return
        return yield* new Problems.InvalidState({
          state: "moved",
          allowed: ["registered", "launch_proposed", "launched", "held"],
        })
      })

      /** Nothing new comes to be in an institution that is suspended, whoever stands in there. */
      const mustStand = Effect.fnUntraced(function* (review: PolicyReviewRow) {
        if (review.institution_id === null) return
        const [row] = yield* sql<{ status: string }>`
          select status from institutions where id = ${review.institution_id} and not removed for share`
        if (row?.status !== "active") {
          return yield* new Problems.InvalidState({ state: row?.status ?? "removed", allowed: ["active"] })
        }
        yield* mustBelong(review)
      })

      const recorded = (action: string, { personId, role }: PolicyDecision, review: PolicyReviewRow) =>
        audit.append({
          action: `policy-review.${action}`,
          actor: `person:${personId}`,
          subject: `policy-review:${review.id}`,
          outcome: "done",
          details: { kind: review.kind, role, institution: review.institution_id, project: review.project_id },
        })

      const approve: Policies["Service"]["approve"] = Effect.fn("Policies.approve")(function* (decision) {
        const { personId, reason, role } = decision
        const { missing, people, request, review, standsIn } = yield* admitted(decision)
        if (!takesAway(request)) yield* mustBeOpen(sql)
        yield* mustStand(review)
        yield* sql`
          insert into policy_approvals (review_id, author, role, person_id, stands_in, reason, approved_at)
          values (${review.id}::uuid, ${review.author}, ${role}, ${personId}, ${standsIn}, ${reason},
            ${new Date(yield* Clock.currentTimeMillis)})`
        if (missing.length === 0) {
          yield* carryOut({ request, review, approvedBy: [...people, personId] })
          yield* end(review, "applied")
        }
        yield* recorded("approved", decision, review)
        return yield* reviews.view({ ...review, state: missing.length === 0 ? "applied" : "open" })
      })

      const decline: Policies["Service"]["decline"] = Effect.fn("Policies.decline")(function* (decision) {
        const { personId, reason, role } = decision
        const { request, review } = yield* admitted(decision)
        const ofProject = request.kind === "website" || request.kind === "launch"
        if (ofProject) yield* mustBelong(review)
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`
          update policy_reviews set state = 'declined', decided_at = ${now}, declined_by = ${personId},
            declined_role = ${role}, decline_reason = ${reason}
          where id = ${review.id}::uuid`
        if (ofProject) yield* projects.decline(request, personId, reason)
        // Somebody else than the invited was not let in: the invitation itself stands.
        else if (review.kind !== "enrollment_claim") {
          yield* rows.change(request, { state: declined[request.kind] })
          yield* timers.set(request.id, [])
        }
        yield* recorded("declined", decision, review)
        return yield* reviews.view({ ...review, state: "declined" })
      })

      const settle = Effect.fn("Policies.settle")(function* (requestId: string) {
        const row = yield* rows.byId(requestId)
        if (row === null) return yield* timers.set(requestId, [])
        if (row.kind === "launch") return yield* projects.settle(row)
        if (row.effective_at !== null) return yield* links.settle(row)
        yield* expire(requestId)
      })

      return Policies.of({ approve, decline, list: listing(reads), settle })
    }),
  )
}
