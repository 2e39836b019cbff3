/**
 * Reviews of Access grants: a Sponsor proposes exactly one active Access version, an independent administrator approves
 * exactly that decision, and either ends it; the Access itself is never touched (specification 000, Resources 1 to 4).
 *
 * The methods run in the caller's transaction, which must be one of `Transact`. Order of locks: person, institution,
 * membership (Roles), Access, review.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { GrantProposal, GrantReceipt, GrantReviewList } from "../../schemas/identity/AccessReviews.ts"
import { NotFound } from "../../schemas/problems/Floor.ts"
import * as Problems from "../../schemas/problems/Identity.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Positions } from "../lifecycle/Positions.ts"
import { needs, Roles } from "../people/Roles.ts"
import { Audit } from "../platform/Audit.ts"
import { Database } from "../platform/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { mustBeOpen } from "../platform/Installation.ts"
import { activeVersion, type VersionFault } from "./AccessReviews/Active.ts"
import { decisionDigest, evidence } from "./AccessReviews/Evidence.ts"
import { places } from "./AccessReviews/Expiry.ts"
import { listing } from "./AccessReviews/Listing.ts"
import { type LockedRow, receiptOf, reviewColumns, reviewedPerson, type ReviewRow } from "./AccessReviews/Rows.ts"

type StepUp = Effect.Effect<void, Problems.InsufficientUserAuthentication>
type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

const movedAway = (accessId: string) =>
  new Problems.AccessVersionSuperseded({
    detail: `Access ${accessId} belongs to another institution by now: revoke this review.`,
  })

/** A decision on one review. */
export interface ReviewDecision {
  readonly personId: string
  readonly institutionId: string
  readonly reviewId: string
  readonly reason: string
  /** Digests of the evidence that the decider may have seen; undefined where they do not say. */
  readonly seen?: ReadonlyArray<string> | undefined
}

/** Who ends what somebody had ended whose name is lost: no person's id has a colon. */
const nobody = "system:recovery"

export class AccessReviews extends Context.Service<AccessReviews, {
  /** Every review of the institution, newest first, with what it is worth now, and what could be proposed. */
  readonly list: (
    personId: string,
    institutionId: string,
  ) => Effect.Effect<GrantReviewList, RoleFault | SqlError.SqlError>
  readonly propose: (
    proposal: GrantProposal & { readonly personId: string; readonly institutionId: string },
  ) => Effect.Effect<
    GrantReceipt,
    RoleFault | VersionFault | Problems.GrantEventMismatch | Problems.ReviewExists | SqlError.SqlError
  >
  /** `stepUp` is asked after the caller's rights and before the state (order of checks). */
  readonly approve: (
    decision: ReviewDecision & { readonly stepUp: StepUp },
  ) => Effect.Effect<
    GrantReceipt,
    | RoleFault
    | VersionFault
    | Problems.FourEyesRequired
    | Problems.Held
    | Problems.InsufficientUserAuthentication
    | Problems.PreconditionFailed
    | Problems.InvalidState
    | SqlError.SqlError
  >
  readonly revoke: (
    decision: ReviewDecision,
  ) => Effect.Effect<
    GrantReceipt,
    RoleFault | Problems.PreconditionFailed | Problems.InvalidState | SqlError.SqlError
  >
  /** Ends a review that somebody had ended already, as its lost evidence said; gives whether it was not. */
  readonly end: (reviewId: string, reason: string) => Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/access/AccessReviews") {
  static readonly layer = Layer.effect(
    AccessReviews,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit
      const ids = yield* Ids
      const positions = yield* Positions
      const roles = yield* Roles
      const chain = evidence(sql)
      const active = activeVersion(sql)
      const { take } = yield* places
      const list = yield* listing

      const columns = sql.literal(reviewColumns)
      const about = sql.literal(reviewedPerson)

      const recorded = (action: GrantReceipt["action"], row: ReviewRow, personId: string) =>
        Effect.map(
          audit.append({
            action: `access-review.${action}`,
            actor: personId === nobody ? "system" : `person:${personId}`,
            subject: `access-review:${row.id}`,
            outcome: "done",
            details: { institution: row.institution_id, access: row.access_id, version: row.access_version },
          }),
          ([id]) => id!,
        )

      const propose = Effect.fn("AccessReviews.propose")(
        function* (
          { access_id, access_version, grant_event_id, institutionId, personId, reason }: Parameters<
            AccessReviews["Service"]["propose"]
          >[0],
        ) {
          yield* needs(yield* roles.inInstitution(personId, institutionId), "sponsor")
          const access = yield* active(institutionId, access_id, access_version)
          if (grant_event_id != null && grant_event_id.toLowerCase() !== access.event_id) {
            return yield* new Problems.GrantEventMismatch({
              detail:
                `Event ${access.event_id} granted version ${access_version} of Access ${access_id}: send its id, or ` +
                "leave grant_event_id out.",
            })
          }
          const [id, decisionId] = yield* ids.batch(2)
          const decided = {
            id: id!,
            decision_id: decisionId!,
            access_id,
            access_version,
            access_digest: access.access_digest,
            grant_event_id: access.event_id,
            grant_event_digest: access.digest,
            proposed_by: personId,
            proposed_at: new Date(yield* Clock.currentTimeMillis),
            sponsor_reason: reason,
          }
          const row: ReviewRow = {
            ...decided,
            institution_id: institutionId,
            project_id: access.project_id,
            person_id: access.person_id,
            grant_event_position: access.position,
            decision_digest: decisionDigest(decided),
            state: "proposed",
            lapsed: false,
            approved_by: null,
            approved_at: null,
            approval_event_id: null,
            revoked_by: null,
            revoked_at: null,
            evidence_digest: "",
            evidence_count: 1,
          }
          const entry = yield* chain.next(row, [], { action: "propose", personId, reason })
          const made = yield* take(
            row,
            sql<ReviewRow>`
            insert into access_reviews (id, institution_id, project_id, access_id, access_version, access_digest,
              person_id, grant_event_id, grant_event_position, grant_event_digest, state, decision_id, decision_digest,
              proposed_by, proposed_at, sponsor_reason, evidence_digest, evidence_count)
            values (${row.id}::uuid, ${institutionId}, ${row.project_id}, ${access_id}, ${access_version},
              ${row.access_digest}, ${row.person_id}, ${row.grant_event_id}::uuid, ${row.grant_event_position},
              ${row.grant_event_digest}, 'proposed',
              ${row.decision_id}::uuid, ${row.decision_digest}, ${personId}, ${row.proposed_at}, ${reason},
              ${entry.digest}, 1)
            on conflict (access_id, access_version) where state in ('proposed', 'approved') do nothing
            returning ${columns}`,
          )
          yield* chain.add(entry, made.id)
          return receiptOf(made, [entry], yield* recorded("propose", made, personId))
        },
      )

      const lock = Effect.fnUntraced(function* ({ institutionId, reviewId }: ReviewDecision) {
        if (!isUuid(reviewId)) return yield* new NotFound()
        const [row] = yield* sql<LockedRow>`
          select ${columns}, ${about} from access_reviews
          where id = ${reviewId}::uuid and institution_id = ${institutionId} for update`
        return row ?? (yield* new NotFound())
      })

      /** The review as it is seen before its Access is locked: what it is about never changes. */
      const peek = Effect.fnUntraced(function* ({ institutionId, reviewId }: ReviewDecision) {
        if (!isUuid(reviewId)) return yield* new NotFound()
        const [row] = yield* sql<Pick<ReviewRow, "access_id" | "access_version" | "proposed_by">>`
          select access_id, access_version, proposed_by from access_reviews
          where id = ${reviewId}::uuid and institution_id = ${institutionId}`
        return row ?? (yield* new NotFound())
      })

      const mustBeSeen = ({ seen }: ReviewDecision, row: ReviewRow) =>
        seen === undefined || seen.includes(row.evidence_digest) ? Effect.void : Effect.fail(
          new Problems.PreconditionFailed({
            detail:
              `Review ${row.id} is ${row.state} and has newer evidence than If-Match names: read it again, and decide on ` +
              "that.",
          }),
        )

      const tell = Effect.fnUntraced(
        function* (kind: "access-review-approved" | "access-review-revoked", row: LockedRow) {
          const [eventId] = yield* positions.append({
            kind,
            projectId: row.project_id,
            institutionId: row.institution_id,
            ...(row.person === null ? {} : { person: row.person }),
            payload: { review: { review_id: row.id, access_id: row.access_id, version: row.access_version } },
            initiatedBy: "admin",
          })
          return eventId!
        },
      )

      const approve = Effect.fn("AccessReviews.approve")(
        function* (decision: ReviewDecision & { readonly stepUp: StepUp }) {
          const { institutionId, personId, reason, stepUp } = decision
          const standing = yield* roles.inInstitution(personId, institutionId)
          const about = yield* peek(decision)
          yield* needs(standing, "administrator")
          if (!(yield* roles.independent(personId, about.proposed_by))) {
            return yield* yield* roles.fourEyes(personId, about.proposed_by)
          }
          yield* mustBeOpen(sql)
          yield* stepUp
          // What is wrong with the Access is said after 412 and the review's own state; a transaction that failed ends here.
          const version = yield* active(institutionId, about.access_id, about.access_version).pipe(
            Effect.map(Effect.succeed),
            // It is another institution's now.
            Effect.catchTag("NotFound", () => Effect.succeed(Effect.fail(movedAway(about.access_id)))),
            Effect.catchTag(
              ["AccessNotActive", "AccessVersionSuperseded"],
              (fault) => Effect.succeed(Effect.fail(fault)),
            ),
          )
          const row = yield* lock(decision)
          yield* mustBeSeen(decision, row)
          if (row.lapsed || row.state !== "proposed") {
            return yield* new Problems.InvalidState({
              state: row.lapsed ? "expired" : row.state,
              allowed: ["proposed"],
            })
          }
          const access = yield* version
          if (access.digest !== row.grant_event_digest || access.access_digest !== row.access_digest) {
            return yield* Effect.die(new Error(`What review ${row.id} is about has changed`))
          }
          const entries = yield* chain.read(row)
          const entry = yield* chain.next(row, entries, { action: "approve", personId, reason })
          const eventId = yield* tell("access-review-approved", row)
          yield* chain.add(entry, row.id)
          const [after] = yield* sql<ReviewRow>`
            update access_reviews set state = 'approved', approved_by = ${personId}, approved_at = ${entry.at},
              approval_event_id = ${eventId}::uuid, evidence_digest = ${entry.digest}, evidence_count = ${entry.nth}
            where id = ${row.id}::uuid and evidence_digest = ${row.evidence_digest} returning ${columns}`
          return receiptOf(after!, [...entries, entry], yield* recorded("approve", row, personId))
        },
      )

      const close = Effect.fnUntraced(function* (row: LockedRow, personId: string, reason: string) {
        const entries = yield* chain.read(row)
        const entry = yield* chain.next(row, entries, { action: "revoke", personId, reason })
        const eventId = yield* tell("access-review-revoked", row)
        yield* chain.add(entry, row.id)
        const [after] = yield* sql<ReviewRow>`
          update access_reviews set state = 'revoked', revoked_by = ${personId}, revoked_at = ${entry.at},
            revocation_event_id = ${eventId}::uuid, evidence_digest = ${entry.digest}, evidence_count = ${entry.nth}
          where id = ${row.id}::uuid and evidence_digest = ${row.evidence_digest} returning ${columns}`
        return receiptOf(after!, [...entries, entry], yield* recorded("revoke", row, personId))
      })

      const revoke = Effect.fn("AccessReviews.revoke")(
        function* (decision: ReviewDecision) {
          const { institutionId, personId, reason } = decision
          const standing = yield* roles.inInstitution(personId, institutionId)
          const row = yield* lock(decision)
          const proposer = row.proposed_by === personId && row.state === "proposed" && standing.sponsor
          if (!proposer) yield* needs(standing, "administrator")
          yield* mustBeSeen(decision, row)
          if (row.state === "revoked") {
            return yield* new Problems.InvalidState({ state: row.state, allowed: ["proposed", "approved"] })
          }
          return yield* close(row, personId, reason)
        },
      )

      const end = Effect.fn("AccessReviews.end")(function* (reviewId: string, reason: string) {
        const [row] = isUuid(reviewId)
          ? yield* sql<LockedRow>`
            select ${columns}, ${about} from access_reviews
            where id = ${reviewId}::uuid and state <> 'revoked' for update`
          : []
        if (row === undefined) return false
        yield* close(row, nobody, reason)
        return true
      })

      return AccessReviews.of({ list, propose, approve, revoke, end })
    }),
  )
}
