/**
 * What decisions read, locked until they commit. The global order is accounts, workspaces, memberships, domains,
 * transfers, ids ascending; callers keep to it. Addresses are compared in ASCII lower case.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { domainLimits, type Plan } from "../../../schemas/mail/Account.ts"
import type { Blocker } from "../../../schemas/mail/Transfer.ts"
import type { DomainFacts } from "./TransferCommands.ts"

export interface Account {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly plan: Plan
  readonly domain_limit: number | null
  readonly active: boolean
}

export interface Domain extends DomainFacts {
  /** The fence: every change of the row raises it. */
  readonly revision: bigint
}

export interface DomainRow {
  readonly id: string
  readonly name: string
  readonly account_id: string
  readonly workspace_id: string
  readonly verified: boolean
  readonly revision: bigint
}

/** At most so many blockers are named in one answer. */
const namedBlockers = 100

export const limitOf = ({ domain_limit, plan }: Pick<Account, "domain_limit" | "plan">): number =>
  domain_limit ?? domainLimits[plan]

/** Of a `DomainRow`. */
export const domainColumns = `id::text as id, name, account_id::text as account_id,
  workspace_id::text as workspace_id, verified_at is not null as verified, revision`

export const domainOf = (row: DomainRow): Domain => ({
  id: row.id,
  name: row.name,
  accountId: row.account_id,
  workspaceId: row.workspace_id,
  verified: row.verified,
  revision: row.revision,
})

/** Selects what stands in the way of an offer. */
export const blockersOf = (sql: PgClient.PgClient, domainId: string) =>
  sql<Blocker>`
    (select 'broadcast' as kind, id::text as id, name, status,
      to_char(scheduled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as scheduled_at
    from broadcasts b where domain_id = ${domainId}::uuid and not removed and status in ('scheduled', 'sending')
    order by b.id limit ${namedBlockers})
    union all
    (select 'scheduled_email' as kind, id::text as id, subject as name, status,
      to_char(scheduled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as scheduled_at
    from scheduled_emails e where domain_id = ${domainId}::uuid and not removed and status = 'scheduled'
    order by e.id limit ${namedBlockers})`

/** A domain as it stands before anything is locked. */
export interface Seen extends Domain {
  /** When the clock ends what its live transfer is in; null where none is live. */
  readonly dueAt: number | null
}

const seenOf = (row: DomainRow & { readonly due_at: Date | null }): Seen => ({
  ...domainOf(row),
  dueAt: row.due_at?.getTime() ?? null,
})

/** How many domains an account owns, and how many come to it: in one snapshot a completion is counted once. */
export const counts = (sql: PgClient.PgClient, accountId: Statement.Fragment) =>
  sql`(select count(*)::int from domains x where x.account_id = ${accountId} and not x.removed) as owned,
    (select count(*)::int from transfers x
      where x.target_user_id = ${accountId} and x.status = 'accepted') as coming`

export const facts = (sql: PgClient.PgClient) => {
  const columns = sql.literal(domainColumns)

  const lockAccounts = Effect.fnUntraced(function* (ids: ReadonlyArray<string>, strength: "share" | "no key update") {
    // Each a parameter of its own: of an array the planner does not know how long it is, and plans each time anew.
    const named = sql.join(", ", false)([...new Set(ids)].map((id) => sql`${id}::uuid`))
    const found = yield* sql<Account>`
      select id::text as id, coalesce(email, '') as email, coalesce(name, '') as name, coalesce(plan, 'free') as plan,
        domain_limit, status = 'active' and not removed as active
      from accounts where id in (${named}) order by id for ${sql.literal(strength)}`
    return new Map(found.map((account) => [account.id, account]))
  })

  /** Workspaces first, then memberships: counting the ones comes before looking for the others. */
  const seats = (accountId: string) =>
    sql`with w as materialized (
        select id, created_at from workspaces
        where not removed and id in (
          select workspace_id from workspace_memberships where account_id = ${accountId}::uuid and not removed)
        order by id for share
      ), m as materialized (
        select workspace_id from workspace_memberships
        where account_id = ${accountId}::uuid and not removed and (select count(*) from w) >= 0 order by id for share
      )`
  const workspaces = sql.literal(`coalesce((select json_agg(w.id order by w.created_at, w.id) from w
    where w.id in (select workspace_id from m)), '[]')`)

  const dueAt = (domainId: string) =>
    sql`select case t.status when 'pending' then t.expires_at else t.cooloff_until end from transfers t
      where t.domain_id = ${domainId}::uuid and t.status in ('pending', 'accepted')`

  return {
    lockAccounts,

    /** The account's workspaces, the oldest first, with its memberships in them. */
    lockWorkspaces: (accountId: string) =>
      Effect.map(
        sql<{ workspaces: ReadonlyArray<string> }>`${seats(accountId)} select ${workspaces} as workspaces`,
        ([row]) => row!.workspaces,
      ),

    /**
     * Unlocked, for what is to be locked before it: the domain, and the id of the account that an address belongs to, the
     * oldest where the feed gave it to several. (Of a limit the planner would make a walk through all accounts by id.)
     */
    opening: (domainId: string, email: string) =>
      Effect.map(
        sql<DomainRow & { due_at: Date | null; target_id: string | null }>`
          select ${columns}, (${dueAt(domainId)}) as due_at,
            (array(select a.id::text from accounts a
              where lower(a.email collate "C") = lower(${email} collate "C") and not a.removed and a.status = 'active'
              order by a.id))[1] as target_id
          from domains where id = ${domainId}::uuid and not removed`,
        ([row]) => row === undefined ? null : { ...seenOf(row), targetId: row.target_id },
      ),

    lockDomain: (id: string) =>
      Effect.map(
        sql<DomainRow & { removed: boolean }>`
          select ${columns}, removed from domains where id = ${id}::uuid for update`,
        ([row]) => row === undefined || row.removed ? null : domainOf(row),
      ),
  }
}
export type Facts = ReturnType<typeof facts>
