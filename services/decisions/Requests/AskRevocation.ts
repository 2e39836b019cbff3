/**
 * A person who answers for an Access proposes that it is revoked: an active owner of its project, a Sponsor or an
 * administrator. The proposal changes nothing; an administrator other than its author and the Access's person decides.
 * In a transaction, in which the Access stays locked at the version that the proposal names.
 */
import { Clock, Effect } from "effect"
import { type AccessId, type InstitutionId, RequestId } from "../../../schemas/BrandedIds.ts"
import type { AccessVersionDecision } from "../../../schemas/identity/PeriodicReview.ts"
import { answerable, type AnswerableRow } from "../../access/AnswerableAccess.ts"
import { Database } from "../../platform/database/Database.ts"
import { fence } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { newRequest, requestOf, reviewWindow } from "../../requests/RequestRows.ts"
import { type By, filing, openOf } from "./Filing.ts"
import { revocationOf } from "./RequestViews.ts"

export interface RevocationAsked extends AccessVersionDecision, By {
  readonly institutionId: InstitutionId
  readonly accessId: AccessId
}

/** The version of an Access that a proposal is about. */
interface Proposed {
  readonly accessId: AccessId
  readonly institutionId: InstitutionId
  readonly version: number
}

export const filingRevocation = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const { filed, mustBeNew } = yield* filing
  const added = newRequest(sql)

  /** A proposal about an earlier version, or of the institution that the Access belonged to, is about another thing. */
  const aboutThis = ({ accessId, institutionId, version }: Proposed) =>
    sql`kind = 'access_revocation' and institution_id = ${institutionId} and fields ->> 'access_id' = ${accessId}
      and fields ->> 'access_version' = ${String(version)}`

  /** The proposal about this version that waits for its signature; null where there is none. */
  const openOne = Effect.fnUntraced(function* (proposed: Proposed) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* sql<{ id: RequestId }>`
      select id::text as id from requests
      where ${aboutThis(proposed)} and state = 'submitted' and expires_at > ${now}`
    return row?.id ?? null
  })

  /** Files the proposal about an Access that the caller has locked and judged. */
  const file = Effect.fnUntraced(
    function* (
      { accessId, institutionId, personId, reason }: Omit<RevocationAsked, "expected_version">,
      access: AnswerableRow,
    ) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const [found] = yield* sql<{ open: string }>`
        select ${openOf(sql, aboutThis({ accessId, institutionId, version: access.version }))} as open`
      yield* mustBeNew(found!.open, now)
      const row = requestOf({
        id: RequestId.make(yield* ids.next),
        kind: "access_revocation",
        state: "submitted",
        author: personId,
        institutionId,
        projectId: access.project_id,
        personId: access.person_id,
        fields: { access_id: accessId, access_version: access.version, person_id: access.person_id },
        reason,
        expiresAt: new Date(now.getTime() + reviewWindow),
      }, now)
      yield* fence(sql, added(row))
      return revocationOf(row, yield* filed(row, ["administrator"]))
    },
  )

  return { openOne, file }
})

export const askingForRevocation = Effect.gen(function* () {
  const { lock } = yield* answerable
  const { file } = yield* filingRevocation

  return Effect.fn("Requests.revocation")(function* (asked: RevocationAsked) {
    const access = yield* lock({ ...asked, expectedVersion: asked.expected_version })
    return yield* file(asked, access)
  })
})
