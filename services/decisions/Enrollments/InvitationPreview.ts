/** An invitation as the page of its mailed link shows it. */
import { Clock, Effect } from "effect"
import { Database } from "../../platform/database/Database.ts"
import { OneTimeTokens } from "../../platform/security/OneTimeTokens.ts"
import { type RequestRow, type RequestState, stateAt } from "../../requests/RequestRows.ts"

export interface InvitationPreview {
  readonly state: RequestState
  readonly institution: string
  readonly expiresAt: Date | null
}

type Row = Pick<RequestRow, "state" | "kind" | "expires_at" | "effective_at"> & { readonly institution: string | null }

export const previewingInvitation = Effect.gen(function* () {
  const { sql } = yield* Database
  const tokens = yield* OneTimeTokens
  return Effect.fn("Enrollments.preview")(function* (token: string) {
    const [row] = yield* sql<Row>`
      select r.state, r.kind, r.expires_at, r.effective_at, i.name as institution
      from requests r left join institutions i on i.id = r.institution_id
      where r.token_hash = ${tokens.hash(token)} and r.kind = 'enrollment'`
    if (row === undefined) return null
    const state = stateAt(row, yield* Clock.currentTimeMillis)
    return { state, institution: row.institution ?? "An institution", expiresAt: row.expires_at }
  })
})
