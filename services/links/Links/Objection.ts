/**
 * The time until which the other side of a link may object: a day after its notice was sent. While the notice has not
 * been sent, the day has not begun; a notice that never will be sent, or that has no address, holds up nothing: then
 * the operator's check and signature are enough.
 *
 * A restored or failed-over database may have lost an objection, which is on no stream: for requests from before that
 * the other side is notified again, and has another day.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { RequestId } from "../../../schemas/BrandedIds.ts"
import { linkNoticeKind } from "../../requests/RequestMail.ts"
import { objectionWindow, type RequestRow } from "../../requests/RequestRows.ts"
import type { Mails, NewMail } from "../../platform/mail/Mails.ts"

interface Notice {
  readonly created_at: Date | null
  readonly sent_at: Date | null
  readonly ended_at: Date | null
  /** When the installation was opened after the last restore or failover. */
  readonly opened_at: Date | null
}

/** The mail that notifies the other side. */
export const noticeTo = (requestId: RequestId, recipient: string): NewMail => ({
  kind: linkNoticeKind,
  subjectId: requestId,
  recipient,
  args: {},
})

/**
 * Computes, in the current transaction, until when the other side may object; sends another notice where one is due.
 */
export const objection = (sql: PgClient.PgClient, mails: Mails["Service"]) => {
  /** Mails a notice; returns false where the other side has no verified address. */
  const notify = Effect.fnUntraced(function* (
    { id, person_id }: Pick<RequestRow, "id" | "person_id">,
  ): Effect.fn.Return<boolean, SqlError.SqlError> {
    const [other] = yield* sql<{ email: string }>`
      select email from people where id = ${person_id} and email is not null and email_verified`
    if (other === undefined) return false
    yield* mails.add(noticeTo(id, other.email))
    return true
  })

  return Effect.fnUntraced(function* (
    row: RequestRow,
    now: number,
  ): Effect.fn.Return<number, SqlError.SqlError> {
    const [notice] = yield* sql<Notice>`
      select m.created_at, m.sent_at, m.ended_at, i.opened_at
      from installation i left join lateral (
        select created_at, sent_at, ended_at from mails where kind = ${linkNoticeKind} and subject_id = ${row.id}
        order by created_at desc limit 1) m on true`
    const { created_at: noticedAt, ended_at, opened_at, sent_at } = notice!
    const asked = row.created_at.getTime()
    const opened = row.person_id === null ? asked : opened_at?.getTime() ?? asked
    if (asked < opened && (noticedAt?.getTime() ?? asked) < opened && (yield* notify(row))) return now + objectionWindow
    const toldAt = sent_at?.getTime() ?? (noticedAt !== null && ended_at === null ? now : asked)
    return Math.max(toldAt, opened) + objectionWindow
  })
}
