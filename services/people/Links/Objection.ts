/**
 * Until when the other side of a link may object: a day from when it was told. A notice that has not left yet, for
 * whatever reason, tells nobody, so the day has not begun; one that never will, or that there is no address for, holds up
 * nothing: what an operator looked at and signed has to do then.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { linkNoticeKind } from "../../access/RequestLetters.ts"
import { objectionWindow, type RequestRow } from "../../access/RequestRows.ts"

export const objection = (sql: PgClient.PgClient) =>
  Effect.fnUntraced(function* (row: RequestRow, now: number): Effect.fn.Return<number, SqlError.SqlError> {
    const [notice] = yield* sql<{ sent_at: Date | null; ended_at: Date | null }>`
      select sent_at, ended_at from mails where kind = ${linkNoticeKind} and subject_id = ${row.id}
      order by created_at limit 1`
    const toldAt = notice?.sent_at?.getTime() ??
      (notice?.ended_at === null ? now : row.created_at.getTime())
    return toldAt + objectionWindow
  })
