/**
 * What decisions read, locked until they commit. The global order is accounts, workspaces, memberships, domains,
 * transfers, ids ascending; callers keep to it. Addresses are compared in ASCII lower case.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { domainLimits, type Plan, type WorkspaceRole } from "../../../schemas/mail/Account.ts"
import type { Blocker } from "../../../schemas/mail/Transfer.ts"
import type { DomainFacts } from "./commands.ts"

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

export const facts = (sql: PgClient.PgClient) => {
  const columns = sql.literal(domainColumns)

  const lockAccounts = Effect.fnUntraced(function* (ids: ReadonlyArray<string>, strength: "share" | "no key update") {
    const found = yield* sql<Account>`
      select id::text as id, coalesce(email, '') as email, coalesce(name, '') as name, coalesce(plan, 'free') as plan,
        domain_limit, status = 'active' and not removed as active
      from accounts where id = any(${[...new Set(ids)]}::uuid[]) order by id for ${sql.literal(strength)}`
    return new Map(found.map((account) => [account.id, account]))
  })

  return {
    lockAccounts,

    /** The id of the account that an address belongs to; the oldest where the feed gave it to several. */
    activeByEmail: (email: string) =>
      Effect.map(
        sql<{ id: string }>`
          select id::text as id from accounts
          where lower(email collate "C") = lower(${email} collate "C") and not removed and status = 'active'
          order by id limit 1`,
        ([row]) => row?.id ?? null,
      ),

    /** The account's workspaces, the oldest first, with its memberships in them. */
    lockWorkspaces: Effect.fnUntraced(function* (accountId: string) {
      const known = yield* sql<{ id: string; created_at: Date }>`
        select id::text as id, created_at from workspaces
        where not removed and id in (
          select workspace_id from workspace_memberships where account_id = ${accountId}::uuid and not removed)
        order by id for share`
      const seats = yield* sql<{ workspace_id: string }>`
        select workspace_id::text as workspace_id from workspace_memberships
        where account_id = ${accountId}::uuid and not removed order by id for share`
      const mine = new Set(seats.map(({ workspace_id }) => workspace_id))
      return known.filter(({ id }) => mine.has(id))
        .sort((a, b) => a.created_at.getTime() - b.created_at.getTime() || (a.id < b.id ? -1 : 1))
        .map(({ id }) => id)
    }),

    /** What the account may do in a workspace, or null where it has no part in it. */
    lockRole: (accountId: string, workspaceId: string) =>
      Effect.map(
        sql<{ role: WorkspaceRole }>`
          select role from workspace_memberships
          where account_id = ${accountId}::uuid and workspace_id = ${workspaceId}::uuid and not removed
          order by id for share`,
        (seats) => seats.find(({ role }) => role !== "member")?.role ?? seats[0]?.role ?? null,
      ),

    /** Unlocked, for what is to be locked before it. */
    domain: (id: string) =>
      Effect.map(
        sql<DomainRow>`select ${columns} from domains where id = ${id}::uuid and not removed`,
        ([row]) => row === undefined ? null : domainOf(row),
      ),

    lockDomain: (id: string) =>
      Effect.map(
        sql<DomainRow & { removed: boolean }>`
          select ${columns}, removed from domains where id = ${id}::uuid for update`,
        ([row]) => row === undefined || row.removed ? null : domainOf(row),
      ),

    /** Domains owned, and transfers accepted and under way; one statement, so a completion is counted once. */
    domainsOf: (accountId: string) =>
      Effect.map(
        sql<{ owned: number; coming: number }>`
          select (select count(*)::int from domains where account_id = ${accountId}::uuid and not removed) as owned,
            (select count(*)::int from transfers
              where target_user_id = ${accountId}::uuid and status = 'accepted') as coming`,
        ([row]) => row!,
      ),

    /** What stands in the way of an offer, by kind. */
    blockers: (domainId: string) =>
      Effect.map(
        sql<Blocker>`
          (select 'broadcast' as kind, id::text as id, name, status,
            to_char(scheduled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as scheduled_at
          from broadcasts b where domain_id = ${domainId}::uuid and not removed and status in ('scheduled', 'sending')
          order by b.id limit ${namedBlockers})
          union all
          (select 'scheduled_email' as kind, id::text as id, subject as name, status,
            to_char(scheduled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as scheduled_at
          from scheduled_emails e where domain_id = ${domainId}::uuid and not removed and status = 'scheduled'
          order by e.id limit ${namedBlockers})`,
        (found) => ({
          broadcasts: found.filter(({ kind }) => kind === "broadcast"),
          scheduledEmails: found.filter(({ kind }) => kind === "scheduled_email"),
        }),
      ),
  }
}
export type Facts = ReturnType<typeof facts>
