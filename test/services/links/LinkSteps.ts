/** Linking two identities, step by step. */
import { Clock, Effect } from "effect"
import type { LinkProofId, PersonId, ProjectId, RequestId } from "../../../schemas/BrandedIds.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { Links } from "../../../services/links/Links.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { reason } from "../../support/Fixtures.ts"
import { tokenFor } from "../../support/TestTokens.ts"
import { decided } from "../decisions/RequestFixture.ts"

export const prove = (personId: PersonId, token: string) =>
  Effect.flatMap(Links, (links) => decided(links.prove({ personId, token })))
export const ask = (personId: PersonId, proof_id: LinkProofId) =>
  Effect.flatMap(Links, (links) => decided(links.request({ personId, proof_id, reason })))
export const object = (personId: PersonId, linkRequestId: RequestId) =>
  Effect.flatMap(Links, (links) => decided(links.object({ personId, linkRequestId, reason: null })))

/** Marks the other side's notice as sent or failed, as the mailer does. */
export const noticed = Effect.fnUntraced(function* (linkRequestId: RequestId, state: "sent" | "failed" = "sent") {
  const { sql } = yield* Database
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    update mails set state = ${state}, sent_at = ${state === "sent" ? now : null}, ended_at = ${now}, not_before = null
    where subject_id = ${linkRequestId}`
})

/** A link that `one` requests with a token of `other`; the notice to `other` is sent at once. */
export const asked = Effect.fnUntraced(function* (one: PersonId, other: PersonId) {
  const { proof_id } = yield* prove(one, yield* tokenFor(other))
  const link = yield* ask(one, proof_id)
  yield* noticed(link.link_request_id)
  return link
})

export const identitiesOf = Effect.fnUntraced(function* (personId: PersonId) {
  const { sql } = yield* Database
  const rows = yield* sql<{ subject: string }>`
    select subject from identities where person_id = ${personId} order by subject`
  return rows.map(({ subject }) => subject)
})

export const mailsAbout = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const rows = yield* sql<{ recipient: string }>`select recipient from mails where subject_id = ${id}`
  return rows.map(({ recipient }) => recipient)
})

/** The identity-linked events of these projects: project, the subject that it knows, and the subject linked to it. */
export const linksTold = Effect.fnUntraced(function* (projects: ReadonlyArray<string>) {
  const { sql } = yield* Database
  const rows = yield* sql<{ project_id: ProjectId; of: string; linked: string }>`
    select project_id, sub_id ->> 'sub' as of, payload -> 'linked' ->> 'sub' as linked
    from lifecycle_events where kind = 'identity-linked' and project_id = any(${[...projects]}::text[])`
  return rows.map(({ linked, of, project_id }) => [project_id, of, linked])
})

/** Makes an approved link effective, as if the day to object were over. */
export const settledNow = Effect.fnUntraced(function* (linkRequestId: RequestId) {
  const { sql } = yield* Database
  const long = 3 * 24 * 3_600_000
  const now = yield* Clock.currentTimeMillis
  yield* noticed(linkRequestId)
  yield* sql`update mails set sent_at = ${new Date(now - long)} where subject_id = ${linkRequestId}`
  yield* sql`update requests set effective_at = ${new Date(now - 1)} where id = ${linkRequestId}::uuid
    and state = 'pending_review' and effective_at is not null`
  yield* run((yield* PolicyDecisions).settle(linkRequestId))
})
