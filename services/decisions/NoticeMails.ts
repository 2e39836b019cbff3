/**
 * Gathers the notices of a person into one mail (docs/requests.md): at most one an hour, or each as it comes, or none, by
 * the person's setting. A mail is made in the transaction that marks its notices as told, so a kill at any moment
 * neither loses nor repeats one. Order of locks: the person's setting, its notices.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { NoticeDelivery } from "../../schemas/identity/NoticeDelivery.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import { Mails } from "../platform/mail/Mails.ts"
import type { SignatureCall } from "../requests/SignatureCalls.ts"
import { noticesKind } from "./NoticeMails/NoticeTemplate.ts"
import { callingSigners } from "./NoticeMails/CallSigners.ts"
import { type DueNotice, isSignature, trueNotices } from "./NoticeMails/TrueNotices.ts"

/** The time between two mails of notices to a person who wants them gathered. */
export const pauseMillis = 3_600_000

interface Setting {
  readonly person_id: PersonId
  readonly delivery: NoticeDelivery
  readonly mailed_at: Date | null
  /** A verified address of an active person. */
  readonly email: string | null
}

const scanned = 1_000

export class NoticeMails extends Context.Service<NoticeMails, {
  /** Due calls, the longest due first. */
  readonly calls: (limit: number) => Effect.Effect<ReadonlyArray<SignatureCall>, SqlError.SqlError>
  /** Adds notices for the people who may sign the review, and sets when the call is due again. */
  readonly call: (call: SignatureCall) => Effect.Effect<void, SqlError.SqlError>
  /** People with due notices, the longest due first. */
  readonly due: (limit: number) => Effect.Effect<ReadonlyArray<PersonId>, SqlError.SqlError>
  /** Mails the person's due notices, or puts them off to the end of the pause; does nothing where none is due. */
  readonly settle: (personId: PersonId) => Effect.Effect<void, SqlError.SqlError, InTransaction>
  /** Puts off the person's due notices after a failure to make their mail, so that they do not block other people's. */
  readonly putOff: (personId: PersonId) => Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/decisions/NoticeMails") {
  static readonly layer = Layer.effect(
    NoticeMails,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const mails = yield* Mails
      const trueOnes = trueNotices(sql)

      const due = Effect.fn("NoticeMails.due")(function* (limit: number) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const rows = yield* sql<{ person_id: PersonId }>`
          select person_id from (
            select person_id, due_at from person_notices where due_at <= ${now} order by due_at limit ${scanned}) n
          group by person_id order by min(due_at), person_id limit ${limit}`
        return rows.map(({ person_id }) => person_id)
      })

      /** Locks the setting of the person, or of the person into whom it was merged. */
      const lockSetting = Effect.fnUntraced(function* (personId: PersonId) {
        const [setting] = yield* sql<Setting>`
          insert into notice_settings as s (person_id) values (canonical_person(${personId}))
          on conflict (person_id) do update set person_id = excluded.person_id
          returning person_id, delivery, mailed_at, (
            select email from people
            where id = s.person_id and status = 'active' and not removed and email_verified) as email`
        return setting!
      })

      const lockDue = (personId: PersonId, now: Date) =>
        sql<DueNotice>`
          select person_id, kind, subject_id::text as subject_id from person_notices
          where due_at <= ${now}
            and person_id in (select id from people where id = ${personId} or merged_into = ${personId}
              union select ${personId})
          order by created_at, subject_id, kind for update`

      /** The rows of these notices, for the end of an UPDATE or DELETE of `n`. */
      const of = (notices: ReadonlyArray<DueNotice>) =>
        sql`json_to_recordset(${
          JSON.stringify(notices)
        }::json) d(person_id text, kind text, subject_id uuid) where n.subject_id = d.subject_id and n.kind = d.kind
          and n.person_id = d.person_id`

      const settle = Effect.fn("NoticeMails.settle")(function* (personId: PersonId) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const { delivery, email, mailed_at, person_id } = yield* lockSetting(personId)
        const notices = yield* lockDue(person_id, now)
        if (notices.length === 0) return
        const next = delivery === "digest" && mailed_at !== null ? mailed_at.getTime() + pauseMillis : 0
        if (next > now.getTime()) {
          yield* sql`update person_notices n set due_at = ${new Date(next)} from ${of(notices)}`
          return
        }
        const told = yield* trueOnes(person_id, notices, now)
        const untrue = notices.filter((one) => !told.includes(one))
        if (untrue.length > 0) yield* sql`delete from person_notices n using ${of(untrue)}`
        if (told.length === 0) return
        // A person without a verified address is called again: the next call adds the notice anew.
        const asking = email === null && delivery !== "off" ? told.filter(isSignature) : []
        if (asking.length > 0) yield* sql`delete from person_notices n using ${of(asking)}`
        const wanted = email !== null && delivery !== "off"
        const [mailId = null] = wanted
          ? yield* mails.add({ kind: noticesKind, subjectId: person_id, recipient: email, args: {} })
          : []
        yield* sql`update person_notices n set due_at = null, mail_id = ${mailId}::uuid from ${of(told)}`
        if (wanted) yield* sql`update notice_settings set mailed_at = ${now} where person_id = ${person_id}`
      })

      const putOff = Effect.fnUntraced(function* (personId: PersonId) {
        const now = yield* Clock.currentTimeMillis
        yield* sql`update person_notices set due_at = ${new Date(now + 60_000)}
          where person_id = ${personId} and due_at <= ${new Date(now)}`
      })

      const calls = Effect.fn("NoticeMails.calls")(function* (limit: number) {
        const now = new Date(yield* Clock.currentTimeMillis)
        return yield* sql<SignatureCall>`
          select review_id::text as review_id, kind from signature_calls where due_at <= ${now}
          order by due_at limit ${limit}`
      })

      return NoticeMails.of({ calls, call: callingSigners(sql), due, settle, putOff })
    }),
  )
}
