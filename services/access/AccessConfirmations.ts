/**
 * Confirms that an Access is still needed. A confirmation is one person's word on exactly one version: it is no review
 * (AccessReviews), which needs two, and it changes neither the Access nor a review. It is kept, and counts for when the
 * next review is due (OverdueReviews). Of one person's confirmations of one version on a day, in UTC, the first is kept and
 * answered again; those of a campaign, which asks once, are beside them.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { AccessId, InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import type { AccessConfirmation, AccessVersionDecision } from "../../schemas/identity/PeriodicReview.ts"
import { Database } from "../platform/database/Database.ts"
import { type InTransaction, write } from "../platform/database/UnitOfWork.ts"
import { Ids } from "../platform/Ids.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { answerable, type AnswerFault } from "./AnswerableAccess.ts"
import { confirmationOf, type NewConfirmation, newConfirmations } from "./ConfirmationRows.ts"

export interface Confirming extends AccessVersionDecision {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  readonly accessId: AccessId
}

export interface Confirmed extends Omit<Confirming, "expected_version"> {
  readonly version: number
  readonly projectId: string
  /** The campaign that asked; null where the person confirms on its own. */
  readonly campaignId: string | null
}

type Stored = Omit<NewConfirmation, "confirmed_at"> & { readonly confirmed_at: Date }

const day = 86_400_000

export class AccessConfirmations extends Context.Service<AccessConfirmations, {
  /** For an active owner of its project, a Sponsor or an effective administrator, never about the own Access. */
  readonly confirm: (asked: Confirming) => Effect.Effect<AccessConfirmation, AnswerFault, InTransaction>
}>()("bailiwick/services/access/AccessConfirmations") {
  static readonly layer = Layer.effect(
    AccessConfirmations,
    Effect.gen(function* () {
      const { lock } = yield* answerable
      const record = yield* recordingConfirmation
      const { sql } = yield* Database

      /** The word that the person has given of its own on this version today: said again it adds nothing. */
      const ofToday = Effect.fnUntraced(
        function* ({ accessId, institutionId, personId, version }: Omit<Confirmed, "campaignId" | "projectId">) {
          const now = yield* Clock.currentTimeMillis
          const [row] = yield* sql<Stored>`
            select id::text as id, institution_id, access_id, access_version, confirmed_by, confirmed_at, reason, campaign_id
            from access_confirmations
            where access_id = ${accessId} and access_version = ${version} and institution_id = ${institutionId}
              and confirmed_by = ${personId} and campaign_id is null and confirmed_at >= ${new Date(now - now % day)}
            limit 1`
          return row === undefined ? null : confirmationOf({ ...row, confirmed_at: row.confirmed_at.toISOString() })
        },
      )

      const confirm = Effect.fn("AccessConfirmations.confirm")(function* (asked: Confirming) {
        const { expected_version: expectedVersion, ...who } = asked
        const { project_id, version } = yield* lock({ ...who, expectedVersion, alone: true })
        const given = yield* ofToday({ ...who, version })
        if (given !== null) return given
        return yield* record({ ...who, version, projectId: project_id, campaignId: null })
      })

      return AccessConfirmations.of({ confirm })
    }),
  )
}

/** Writes the confirmation of an Access that the caller has locked and judged. */
export const recordingConfirmation = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const ids = yield* Ids
  const rows = newConfirmations(sql)

  return Effect.fnUntraced(function* (of: Confirmed) {
    const row = {
      id: yield* ids.next,
      institution_id: of.institutionId,
      access_id: of.accessId,
      access_version: of.version,
      confirmed_by: of.personId,
      confirmed_at: new Date(yield* Clock.currentTimeMillis).toISOString(),
      reason: of.reason,
      campaign_id: of.campaignId,
    }
    yield* write(sql, rows, [row])
    yield* audit.append({
      action: "access.confirmed",
      actor: `person:${of.personId}`,
      subject: `access:${of.accessId}`,
      outcome: "done",
      decision: true,
      details: {
        institution: of.institutionId,
        project: of.projectId,
        version: of.version,
        ...(of.campaignId === null ? {} : { campaign: of.campaignId }),
      },
    })
    return confirmationOf(row)
  })
})
