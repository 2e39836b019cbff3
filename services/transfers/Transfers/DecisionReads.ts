/** The rows of accounts and domains that transfer decisions read, and the SQL that selects them. */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"
import type { AccountId, DomainId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import { domainLimits, type Plan } from "../../../schemas/mail/MailAccount.ts"
import type { Blocker } from "../../../schemas/mail/Transfer.ts"
import type { DomainFacts } from "./TransferCommands.ts"

export interface Account {
  readonly id: AccountId
  readonly email: string
  readonly name: string
  readonly plan: Plan
  readonly domain_limit: number | null
  readonly active: boolean
}

export interface Domain extends DomainFacts {
  /** The fence: each change of the row, and each directory line about its SMTP credentials, raises it. */
  readonly revision: bigint
  /** The selector of its DKIM key. */
  readonly selector: string
}

export interface DomainRow {
  readonly id: DomainId
  readonly name: string
  readonly account_id: AccountId
  readonly workspace_id: WorkspaceId
  readonly verified: boolean
  readonly selector: string
  readonly revision: bigint
}

/** Maximum number of blockers of one kind in a response. */
const namedBlockers = 100

export const limitOf = ({ domain_limit, plan }: Pick<Account, "domain_limit" | "plan">): number =>
  domain_limit ?? domainLimits[plan]

/** The columns of a `DomainRow`. */
export const domainColumns = `id::text as id, name, account_id::text as account_id,
  workspace_id::text as workspace_id, verified_at is not null as verified, dkim_selector as selector,
  revision`

export const domainOf = (row: DomainRow): Domain => ({
  id: row.id,
  name: row.name,
  accountId: row.account_id,
  workspaceId: row.workspace_id,
  verified: row.verified,
  selector: row.selector,
  revision: row.revision,
})

/** Selects what blocks an offer: broadcasts and scheduled emails of the domain. */
export const blockersOf = (sql: PgClient.PgClient, domainId: DomainId) =>
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

/** SQL: domains that an account owns, and accepted transfers to it. In one snapshot a completion counts once. */
export const counts = (sql: PgClient.PgClient, accountId: Statement.Fragment) =>
  sql`(select count(*)::int from domains x where x.account_id = ${accountId} and not x.removed) as owned,
    (select count(*)::int from transfers x
      where x.target_user_id = ${accountId} and x.status = 'accepted') as coming`
