/** Fixture of tests of people's notices: the services of requests and of reviews, and what mails say when they are sent. */
import { Effect, Layer } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import type { NoticeDelivery } from "../../../schemas/identity/NoticeDelivery.ts"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { NoticeMails } from "../../../services/decisions/NoticeMails.ts"
import { noticesKind, noticeTemplate } from "../../../services/decisions/NoticeMails/NoticeTemplate.ts"
import { NoticeSettings } from "../../../services/decisions/NoticeSettings.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { services } from "./RequestFixture.ts"

export const noticeServices = Layer.mergeAll(
  ...[NoticeMails.layer, NoticeSettings.layer, AccessReviews.layer],
  ServiceGrants.layer({ issuers: ["https://services.example"] }),
).pipe(
  Layer.provideMerge(services),
)

/** Calls signers, as the worker does. */
export const callSigners = Effect.gen(function* () {
  const notices = yield* NoticeMails
  yield* Effect.forEach(yield* notices.calls(1_000), notices.call, { discard: true })
})

/** Settles the due notices of all people, as the worker does; returns of how many people. */
export const settleAll = Effect.gen(function* () {
  const notices = yield* NoticeMails
  const due = yield* notices.due(1_000)
  yield* Effect.forEach(due, (personId) => run(notices.settle(personId)), { discard: true })
  return due.length
})

interface Mail {
  readonly id: string
  readonly subject_id: string
  readonly recipient: string
}

/** The mails of notices to a person so far, oldest first, as they would be sent now; null where nothing would be. */
export const mailsTo = Effect.fnUntraced(function* (personId: PersonId) {
  const { sql } = yield* Database
  const { render } = yield* noticeTemplate(new URL("https://bailiwick.example"))
  const mails = yield* sql<Mail>`
    select id::text as id, subject_id, recipient from mails
    where kind = ${noticesKind} and recipient = ${`${personId}@example.com`} order by id`
  return yield* Effect.forEach(
    mails,
    ({ id, recipient, subject_id }) => render({ id, subjectId: subject_id, recipient, args: {} }),
  )
})

/** Sets how a person wants to be told. */
export const wants = Effect.fnUntraced(function* (personId: PersonId, delivery: NoticeDelivery) {
  yield* run((yield* NoticeSettings).setDelivery(personId, delivery))
})
