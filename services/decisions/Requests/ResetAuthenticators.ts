/**
 * Removes all authenticators of a person, as an approved request asks, and tells the person by mail. In the current
 * transaction: it locks the person, as every action on authenticators does, so that none is added meanwhile.
 */
import { Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { type Authenticator, credentialTypeOf, removing } from "../../people/Authenticators.ts"
import { tellLater } from "../../people/SecurityEventFanout.ts"
import { Database } from "../../platform/database/Database.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { Mails } from "../../platform/mail/Mails.ts"
import { Jobs } from "../../platform/messaging/Jobs.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { resetKind } from "../../requests/RequestMail.ts"
import { requestRows } from "../../requests/RequestRows.ts"
import { namesOf } from "./Filing.ts"

type Gone = Pick<Authenticator, "kind" | "platform" | "aaguid">

export const resettingAuthenticators = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const mails = yield* Mails
  const timers = yield* Timers
  const rows = requestRows(sql)
  const remove = yield* removing
  const tell = tellLater(yield* Jobs)

  return Effect.fn("Requests.resetAuthenticators")(function* ({ request }: Decision) {
    const [person] = yield* sql<{ id: PersonId; email: string | null }>`
      select id, case when email_verified then email end as email from people
      where id = canonical_person(${request.person_id}) for no key update`
    const personId = person!.id
    const whose = sql`person_id in ${namesOf(sql, personId)}`
    const gone = yield* sql<Gone>`select kind, platform, aaguid from authenticators where ${whose} order by id`
    yield* remove(whose)
    yield* tell(
      personId,
      gone.map((one) => ({
        kind: "credential-change" as const,
        credentialType: credentialTypeOf(one),
        changeType: "delete" as const,
        aaguid: one.aaguid,
      })),
    )
    yield* audit.append({
      action: "authenticators.reset",
      actor: `person:${request.author}`,
      subject: `person:${personId}`,
      outcome: "done",
      decision: true,
      details: { request: request.id, institution: request.institution_id, removed: gone.length },
    })
    if (person!.email !== null) {
      yield* mails.add({ kind: resetKind, subjectId: request.id, recipient: person!.email, args: {} })
    }
    const { id } = yield* rows.change(request, { state: "approved" })
    yield* timers.set(id, [])
  })
})
