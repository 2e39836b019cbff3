/** Reads the changes of many inboxes since their positions: one statement, one snapshot. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import type { Change } from "./Change.ts"
import { notificationJson, time } from "../InboxShape.ts"
import { beginning } from "./Events.ts"

export interface Asked {
  readonly accountId: AccountId
  /** Null: read only the counts. */
  readonly epoch: string | null
  readonly since: number
  /** Return a change even if nothing has changed. */
  readonly owed: boolean
}

interface Row {
  readonly n: number
  readonly epoch: string | null
  readonly version: bigint | null
  readonly total: number | null
  readonly unread: number | null
  readonly read_all_version: bigint | null
  readonly read_all_at: string | null
  readonly versions: ReadonlyArray<bigint> | null
  readonly bodies: ReadonlyArray<string> | null
}

const changeOf = (row: Row): Change => ({
  epoch: row.epoch ?? beginning.epoch,
  version: Number(row.version ?? 0),
  total: row.total ?? 0,
  unread: row.unread ?? 0,
  read_all_version: Number(row.read_all_version ?? 0),
  read_all_at: row.read_all_at,
  rows: (row.versions ?? []).map((version, i) => ({ version: Number(version), body: row.bodies![i]! })),
})

/** The changes by their index in `asked`; none where nothing changed and nothing is owed. */
export const changes = (
  sql: PgClient.PgClient,
  asked: ReadonlyArray<Asked>,
  page: number,
): Effect.Effect<ReadonlyMap<number, Change>, SqlError.SqlError> =>
  Effect.map(
    sql<Row>`
      select s.n::int, i.epoch, i.version, i.total, i.unread, i.read_all_version,
        ${sql.literal(time("i.read_all_at"))} as read_all_at, x.versions, x.bodies
      from unnest(${asked.map((a) => a.accountId)}::uuid[], ${asked.map((a) => a.epoch ?? "")}::text[], ${
      asked.map((a) => String(a.since))
    }::bigint[], ${asked.map((a) => a.owed)}::bool[]) with ordinality s(account_id, epoch, since, owed, n)
      left join inboxes i on i.account_id = s.account_id
      left join lateral (
        select array_agg(n.version order by n.version) as versions,
          array_agg(${sql.literal(notificationJson)}::text order by n.version) as bodies
        from (
          select * from notifications
          where account_id = s.account_id and shown and version > s.since and s.epoch <> ''
          order by version limit ${page}
        ) n
      ) x on true
      where s.owed or i.version <> s.since or i.epoch <> s.epoch and s.since > 0`,
    (rows) => new Map(rows.map((row) => [row.n - 1, changeOf(row)])),
  )
