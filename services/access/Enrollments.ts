/**
 * Invitations into an institution (DECISIONS-identity 1.7): written by a Sponsor or an administrator, reviewed, mailed,
 * accepted by the person whose verified address it went to. Anyone else who holds the link waits for an administrator;
 * the invited person is not held up by that. The first that is accepted where nobody administrates makes an administrator.
 * Whoever may invite may take an invitation back until it is accepted.
 *
 * `held` until the review is through and a mail can go out. The token acts in state `invited` alone.
 * All methods run in the caller's transaction, which must be one of `Transact`; `enroll` may be a command of two round
 * trips (FencedCommand.ts).
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AcceptedEnrollment, Enrollment, EnrollmentCreate } from "../../schemas/identity/Requests.ts"
import { NotFound } from "../../schemas/problems/Floor.ts"
import * as Problems from "../../schemas/problems/Identity.ts"
import { memberships } from "../people/Memberships.ts"
import { needs, Roles, standingFrom, standingIn } from "../people/Roles.ts"
import { Audit } from "../platform/Audit.ts"
import { Database } from "../platform/Database.ts"
import { answerTo, fence, load, unchanged } from "../platform/FencedCommand.ts"
import { Ids } from "../platform/Ids.ts"
import { mustBeOpen } from "../platform/Installation.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { parse, sameAddress } from "../platform/MailAddress.ts"
import { Mails } from "../platform/Mails.ts"
import { OneShotTokens } from "../platform/OneShotTokens.ts"
import { Outbox } from "../platform/Outbox.ts"
import { Timers } from "../platform/Timers.ts"
import { type Decision, filedOf, openedOf, type PolicyReviewRow, PolicyReviews, stamp } from "./PolicyReviews.ts"
import { invitationKind, invitationToken } from "./RequestLetters.ts"
import {
  invitationWindow,
  newRequest,
  requestOf,
  type RequestRow,
  requestRows,
  stateAt,
  timersOf,
} from "./RequestRows.ts"
import { activePerson } from "./Requests/activePerson.ts"
import { deliveryOf, type MailRow, masked, recipientOf } from "./Requests/delivery.ts"

type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

export class Enrollments extends Context.Service<Enrollments, {
  readonly enroll: (
    asked: EnrollmentCreate & { readonly personId: string; readonly institutionId: string },
  ) => Effect.Effect<Enrollment, RoleFault | SqlError.SqlError>
  /** By the token of the mailed link. RequestExists: another person than the invited one waits for an administrator. */
  readonly accept: (
    asked: { readonly personId: string; readonly token: string },
  ) => Effect.Effect<
    AcceptedEnrollment,
    | NotFound
    | Problems.Held
    | Problems.InvalidToken
    | Problems.InvalidState
    | Problems.RequestExists
    | SqlError.SqlError
  >
  /** InvalidState: it is accepted, revoked or expired already. */
  readonly revoke: (
    asked: {
      readonly personId: string
      readonly institutionId: string
      readonly enrollmentId: string
      readonly reason: string
    },
  ) => Effect.Effect<Enrollment, RoleFault | Problems.InvalidState | SqlError.SqlError>
  /** Sends the invitation that everybody signed, or lets in who was waiting for an administrator. */
  readonly carryOut: (decision: Decision) => Effect.Effect<void, Problems.InvalidState | SqlError.SqlError>
}>()("bailiwick/services/access/Enrollments") {
  static readonly layer = Layer.effect(
    Enrollments,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit
      const ids = yield* Ids
      const mails = yield* Mails
      const reviews = yield* PolicyReviews
      const roles = yield* Roles
      const timers = yield* Timers
      const tokens = yield* OneShotTokens
      const active = activePerson(sql)
      const rows = requestRows(sql)
      const added = newRequest(sql)
      const { barredBy, hasAdministrator, seat } = memberships(sql, yield* Outbox)

      const moved = Effect.fnUntraced(
        function* (row: RequestRow, action: string, personId: string, more: Readonly<Record<string, string>> = {}) {
          yield* timers.set(row.id, timersOf(row, yield* Clock.currentTimeMillis))
          yield* audit.append({
            action: `enrollment.${action}`,
            actor: `person:${personId}`,
            subject: `request:${row.id}`,
            outcome: "done",
            details: { institution: row.institution_id, ...more },
          })
        },
      )

      const viewOf = (row: RequestRow, review: PolicyReviewRow | null, mail: MailRow | null = null): Enrollment => ({
        enrollment_id: row.id,
        institution_id: row.institution_id!,
        recipient: masked(recipientOf(row)),
        reason: row.reason,
        delivery: deliveryOf(row, mail),
        expires_at: stamp(row.expires_at!),
        state: row.state as Enrollment["state"],
        ...filedOf(row, review),
      })

      const enroll: Enrollments["Service"]["enroll"] = Effect.fn("Enrollments.enroll")(
        function* ({ institutionId, personId, reason, recipient }) {
          const now = new Date(yield* Clock.currentTimeMillis)
          const held = standingIn(sql, personId, institutionId, now)
          const loaded = yield* load<{ held: string }>(sql, sql`select ${answerTo(sql, held)} as held`)
          const standing = yield* standingFrom(loaded.held, personId, institutionId)
          yield* needs(standing, "sponsor", "administrator")
          const row = requestOf({
            id: yield* ids.next,
            kind: "enrollment",
            state: "held",
            author: personId,
            institutionId,
            fields: { recipient },
            reason,
            expiresAt: new Date(now.getTime() + invitationWindow),
          }, now)
          yield* fence(sql, unchanged(sql, held, loaded.held), added(row))
          // Who is both writes as a Sponsor: an operator can stand in for a missing administrator, not for a Sponsor.
          const review = yield* reviews.open(row, [standing.sponsor ? "administrator" : "sponsor"])
          yield* moved(row, "submitted", personId)
          return viewOf(row, review)
        },
      )

      /** Who signed the invitation of the person that it was mailed to. */
      const signers = ({ id }: RequestRow) =>
        Effect.map(
          sql<{ person_id: string }>`
            select a.person_id from policy_approvals a join policy_reviews v on v.id = a.review_id
            where v.request_id = ${id}::uuid and v.kind = 'enrollment' and v.state = 'applied'`,
          (found) => found.map(({ person_id }) => person_id),
        )

      const admit = Effect.fnUntraced(function* (
        row: RequestRow,
        personId: string,
        approvedBy: ReadonlyArray<string>,
        signedAt: Date,
        by = personId,
      ) {
        const institutionId = row.institution_id!
        const [institution] = yield* sql<{ status: string }>`
          select status from institutions where id = ${institutionId} and not removed`
        if (institution?.status !== "active") {
          return yield* new Problems.InvalidState({ state: institution?.status ?? "removed", allowed: ["active"] })
        }
        const role = (yield* hasAdministrator(institutionId)) ? "member" as const : "administrator" as const
        // Whoever suspended a member, or ended a role of theirs, did not mean that an older invitation undoes it.
        const barred = yield* barredBy(institutionId, personId, signedAt)
        if (barred !== null) {
          return yield* new Problems.InvalidState({ state: barred, allowed: ["invited", "active"] })
        }
        const resultId = yield* seat({
          institutionId,
          personId,
          role,
          state: "active",
          madeBy: row.author,
          approvedBy,
        })
        const accepted = yield* rows.change(row, { state: "accepted", personId, resultId })
        yield* moved(accepted, "accepted", by, { person: personId })
        return { accepted, role }
      })

      const claim = Effect.fnUntraced(function* (row: RequestRow, personId: string) {
        const open = yield* reviews.of(row.id)
        if (open?.state === "open" && open.author !== personId) {
          return yield* new Problems.RequestExists({
            detail:
              "Another holder of this link waits for an administrator already. The invited person can still accept.",
          })
        }
        if (open?.state === "open") return { review: open, row }
        const claimed = yield* rows.change(row, { personId })
        const review = yield* reviews.open(claimed, ["administrator"], {
          kind: "enrollment_claim",
          author: personId,
          reason: row.reason,
        })
        yield* moved(claimed, "claimed", personId)
        return { review, row: claimed }
      })

      const accept: Enrollments["Service"]["accept"] = Effect.fn("Enrollments.accept")(
        function* ({ personId, token }) {
          const [person] = yield* sql<{ email: string | null; email_verified: boolean }>`
            select email, email_verified from people
            where id = ${personId} and status = 'active' and not removed for share`
          if (person === undefined) return yield* new Problems.InvalidToken()
          yield* mustBeOpen(sql)
          const [found] = yield* sql<{ id: string; institution_id: string }>`
            select id::text as id, institution_id from requests
            where token_hash = ${tokens.hash(token)} and kind = 'enrollment'`
          if (found === undefined) return yield* new NotFound()
          yield* sql`select from institutions where id = ${found.institution_id} for share`
          yield* reviews.lockOpen(found.id)
          const row = (yield* rows.lock(found.id))!
          const state = stateAt(row, yield* Clock.currentTimeMillis)
          if (state !== "invited") return yield* new Problems.InvalidState({ state, allowed: ["invited"] })
          const about = { enrollment_id: row.id, institution_id: row.institution_id! }
          if (person.email_verified && person.email !== null && sameAddress(person.email, recipientOf(row))) {
            const { accepted, role } = yield* admit(row, personId, yield* signers(row), row.decided_at!)
            yield* reviews.supersede(row.id)
            return {
              ...about,
              state: "accepted" as const,
              membership: { role, state: "active" as const },
              version: accepted.revision,
              policy_review: null,
            }
          }
          const waiting = yield* claim(row, personId)
          return {
            ...about,
            state: "invited" as const,
            membership: null,
            version: waiting.row.revision,
            policy_review: openedOf(waiting.review),
          }
        },
      )

      const revoke: Enrollments["Service"]["revoke"] = Effect.fn("Enrollments.revoke")(
        function* ({ enrollmentId, institutionId, personId, reason }) {
          const standing = yield* roles.inInstitution(personId, institutionId)
          const seen = isUuid(enrollmentId) ? yield* rows.byId(enrollmentId) : null
          if (seen?.kind !== "enrollment" || seen.institution_id !== institutionId) return yield* new NotFound()
          yield* needs(standing, "sponsor", "administrator")
          yield* reviews.lockOpen(seen.id)
          const row = (yield* rows.lock(seen.id))!
          const state = stateAt(row, yield* Clock.currentTimeMillis)
          if (state !== "held" && state !== "invited") {
            return yield* new Problems.InvalidState({ state, allowed: ["held", "invited"] })
          }
          yield* reviews.supersede(row.id)
          const revoked = yield* rows.change(row, { state: "revoked" })
          yield* moved(revoked, "revoked", personId, { reason })
          const [mail] = yield* sql<MailRow>`select state from mails where id = ${row.mail_id}::uuid`
          return viewOf(revoked, yield* reviews.of(row.id), mail)
        },
      )

      const carryOut: Enrollments["Service"]["carryOut"] = Effect.fn("Enrollments.carryOut")(
        function* ({ approvedBy, request, review }) {
          const by = approvedBy.at(-1)!
          // Whoever signed the invitation signed it for somebody else than who claims it.
          if (review.kind === "enrollment_claim") {
            const claimant = yield* active(review.author)
            if (claimant === null) {
              return yield* new Problems.InvalidState({ state: "author_not_active", allowed: ["active"] })
            }
            const now = new Date(yield* Clock.currentTimeMillis)
            return yield* Effect.asVoid(admit(request, claimant, approvedBy, now, by))
          }
          const recipient = recipientOf(request)
          // Nobody can be mailed at what is no address: it stays held until it runs out.
          if (parse(recipient) === null) return
          const token = tokens.issue(invitationToken, request.id)
          const [mailId] = yield* mails.add({ kind: invitationKind, subjectId: request.id, recipient, args: {} })
          const invited = yield* rows.change(request, {
            state: "invited",
            expiresAt: new Date((yield* Clock.currentTimeMillis) + invitationWindow),
            mailId: mailId!,
            token,
          })
          yield* moved(invited, "invited", by)
        },
      )

      return Enrollments.of({ enroll, accept, revoke, carryOut })
    }),
  )
}
