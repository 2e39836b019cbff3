/** The statements that store notices: where an account is reached, the inbox's next positions, and the rows. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, NotificationId } from "../../schemas/BrandedIds.ts"
import type { Kind } from "../platform/database/UnitOfWork.ts"
import type { Notice } from "./Notice.ts"

const hourMillis = 3_600_000

/** The notices of one call, merged by key: the last notice of a key, and their number. */
export interface Said {
  readonly notice: Notice
  readonly key: string | null
  readonly count: number
}

export const merged = (notices: ReadonlyArray<Notice>, now: number): ReadonlyArray<Said> => {
  const hour = Math.floor(now / hourMillis)
  const byKey = new Map<string, Said>()
  for (const [i, notice] of notices.entries()) {
    const key = notice.coalesceKey === undefined ? null : `${notice.coalesceKey}.${hour}`
    const slot = key === null ? String(i) : `${notice.accountId} ${key}`
    byKey.set(slot, { notice, key, count: (byKey.get(slot)?.count ?? 0) + 1 })
  }
  return [...byKey.values()]
}

/** The channels by which an account is reached, and its preferences. */
export interface Reachable {
  /** The address from the feed, whatever the account's status. */
  readonly email: string | null
  /** An account that is not active gets notices in the app only. */
  readonly active: boolean
  readonly slack: boolean
  readonly choices: unknown
}

/** SQL of the columns of a `Reachable`, of `accounts a left join notification_preferences p`. */
export const reachColumns = `a.email, a.status = 'active' and not a.removed as active,
  a.slack_webhook_url is not null as slack, p.choices`

/** The accounts among these that are known. */
export const reachable = (
  sql: PgClient.PgClient,
  accountIds: ReadonlyArray<AccountId>,
): Effect.Effect<ReadonlyMap<AccountId, Reachable>, SqlError.SqlError> =>
  Effect.map(
    sql<Reachable & { readonly id: AccountId }>`
      select a.id::text as id, ${sql.literal(reachColumns)}
      from accounts a left join notification_preferences p on p.account_id = a.id
      where a.id = any(${[...new Set(accountIds)]}::uuid[])`,
    (rows) => new Map(rows.map((row) => [row.id, row])),
  )

/**
 * Locks the accounts' inboxes, ids ascending, to the commit, and raises the version of each by how often its account is
 * named. Returns the first new position of each.
 */
export const raise = (
  sql: PgClient.PgClient,
  accountIds: ReadonlyArray<AccountId>,
): Effect.Effect<ReadonlyMap<AccountId, bigint>, SqlError.SqlError> => {
  const named = new Map<AccountId, number>()
  for (const id of accountIds) named.set(id, (named.get(id) ?? 0) + 1)
  return accountIds.length === 0 ? Effect.succeed(new Map()) : Effect.map(
    sql<{ id: AccountId; version: bigint }>`
      insert into inboxes as i (account_id, epoch, version, total, unread)
      select account_id, left(md5(random()::text), 12), times, 0, 0
      from unnest(${[...named.keys()]}::uuid[], ${[...named.values()]}::int[]) a(account_id, times) order by account_id
      on conflict (account_id) do update set version = i.version + excluded.version
      returning account_id::text as id, version`,
    (rows) => new Map(rows.map(({ id, version }) => [id, version - BigInt(named.get(id)!) + 1n])),
  )
}

export interface Entry {
  readonly id: NotificationId
  readonly notice: Notice
  readonly key: string | null
  readonly count: number
  readonly web: boolean
}

/** Inserts notices without keys: always new rows, so that the counts are known before the write. */
export const newEntries = (sql: PgClient.PgClient): Kind<Entry & { readonly now: string }> => ({
  name: "notifications",
  parts: (entries) => {
    const times = new Map<string, number>()
    // Counts from the last: a row's position is the inbox's version less the number of rows that follow in the same
    // inbox.
    const rows = entries.toReversed().map(({ count, id, notice, now, web }) => {
      const { accountId: account_id, body, category, href, severity, title } = notice
      const following = times.get(account_id) ?? 0
      if (web) times.set(account_id, following + 1)
      const back = web ? following : null
      return { id, account_id, back, category, severity, title, body, href, count, created_at: now }
    }).reverse()
    const inboxes = [...times].map(([account_id, times]) => ({ account_id, times }))
    return [
      {
        name: "held_inboxes",
        statement: sql`
          insert into inboxes as i (account_id, epoch, version, total, unread)
          select account_id, left(md5(random()::text), 12), times, times, times
          from json_to_recordset(${JSON.stringify(inboxes)}::json) r(account_id uuid, times int) order by account_id
          on conflict (account_id) do update set version = i.version + excluded.version,
            total = i.total + excluded.total, unread = i.unread + excluded.unread
          returning account_id, version`,
      },
      {
        name: "new_notifications",
        statement: sql`
          insert into notifications (id, account_id, shown, version, category, severity, title, body, href, count,
            created_at)
          select r.id, r.account_id, r.back is not null, h.version - r.back, r.category, r.severity, r.title, r.body,
            r.href, r.count, r.created_at
          from json_to_recordset(${JSON.stringify(rows)}::json) r(id uuid, account_id uuid, back int, category text,
              severity text, title text, body text, href text, count int, created_at timestamptz)
            left join held_inboxes h on h.account_id = r.account_id`,
      },
    ]
  },
})

/**
 * Writes the rows and counts them, once their inboxes are locked. Returns the ids of new rows; the others were merged
 * into a row of the same key and hour, which becomes unread again and moves to the top of the list.
 */
export const store = (
  sql: PgClient.PgClient,
  entries: ReadonlyArray<Entry>,
  first: ReadonlyMap<AccountId, bigint>,
  now: Date,
): Effect.Effect<ReadonlySet<NotificationId>, SqlError.SqlError> => {
  const next = new Map(first)
  const rows = entries.map(({ count, id, key, notice, web }) => {
    const version = web ? next.get(notice.accountId)! : null
    if (version !== null) next.set(notice.accountId, version + 1n)
    const { accountId: account_id, body, category, href, severity, title } = notice
    const coalesce_key = key
    return { id, account_id, version: version?.toString(), category, severity, title, body, href, count, coalesce_key }
  })
  // The insert's own result tells whether a row is new, not a read before: for a row that is not shown no inbox is
  // locked.
  return Effect.map(
    sql<{ id: NotificationId }>`
      with input as materialized (
        select * from json_to_recordset(${JSON.stringify(rows)}::json) r(id uuid, account_id uuid, version bigint,
          category text, severity text, title text, body text, href text, count int, coalesce_key text)
      ), old as materialized (
        select n.id, n.read_at is not null as was_read
        from input i join notifications n on n.account_id = i.account_id and n.coalesce_key = i.coalesce_key
      ), put as (
        insert into notifications as n (id, account_id, shown, version, category, severity, title, body, href, count,
          coalesce_key, created_at)
        select id, account_id, version is not null, version, category, severity, title, body, href, count,
          coalesce_key, ${now}
        from input order by account_id, coalesce_key, version
        on conflict (account_id, coalesce_key) where coalesce_key is not null do update
        set count = n.count + excluded.count, severity = excluded.severity, title = excluded.title,
          body = excluded.body, href = excluded.href,
          created_at = case when n.shown and excluded.shown then excluded.created_at else n.created_at end,
          version = case when n.shown and excluded.shown then excluded.version else n.version end,
          read_at = case when n.shown and excluded.shown then null else n.read_at end
        returning n.id, n.account_id, n.shown, n.read_at is null as unread, n.xmax = 0 as fresh
      ), counted as (
        update inboxes i set total = i.total + c.added, unread = i.unread + c.added + c.again
        from (
          select p.account_id, count(*) filter (where p.fresh)::int as added,
            count(*) filter (where not p.fresh and p.unread and o.was_read)::int as again
          from put p left join old o on o.id = p.id where p.shown group by p.account_id
        ) c
        where i.account_id = c.account_id
      )
      select id::text from put where fresh`,
    (written) => new Set(written.map(({ id }) => id)),
  )
}
