/**
 * The reads of an account: itself, its workspaces and the domains that it may see: its own, and those of workspaces
 * that it belongs to. Each read is one short statement that finds its rows by the account.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import type { AccountId, DomainId, TransferId, WorkspaceId } from "../../schemas/BrandedIds.ts"
import type {
  AccountView,
  DomainPage,
  DomainView,
  WorkspacePage,
  WorkspaceView,
} from "../../schemas/mail/AccountView.ts"
import { apiKeyLimits, domainLimits, type Plan, type WorkspaceRole } from "../../schemas/mail/MailAccount.ts"
import { DomainNotFound } from "../../schemas/problems/AccountProblems.ts"
import { InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Database } from "../platform/database/Database.ts"

/** At most `limit` items after the item `afterId`; null: from the beginning. */
export interface CursorPage {
  readonly limit: number
  readonly afterId: string | null
}

interface AccountRow {
  readonly id: AccountId
  readonly email: string
  readonly name: string
  readonly plan: Plan
  readonly platform_admin: boolean
  readonly domain_limit: number | null
  readonly api_keys: number
  readonly webhooks: number
  readonly domains: number
}

interface DomainRow {
  readonly id: DomainId
  readonly name: string
  readonly account_id: AccountId
  readonly account_email: string | null
  readonly workspace_id: WorkspaceId
  readonly workspace_role: WorkspaceRole | null
  readonly verified_at: Date | null
  readonly dkim_selector: string
  readonly transfer_id: TransferId | null
  readonly transfer_status: "pending" | "accepted" | null
}

/** Of several roles in one workspace, the one that may do more comes first. */
const strongestFirst = "array_position(array['owner', 'admin', 'member'], m.role)"

/** `tellsOwner`: whether the owner's address is shown. */
const domainOf = (accountId: AccountId, row: DomainRow, tellsOwner = false): DomainView => ({
  id: row.id,
  name: row.name,
  account_id: row.account_id,
  account_email: tellsOwner ? row.account_email : null,
  workspace_id: row.workspace_id,
  workspace_role: row.workspace_role,
  may_transfer: row.account_id === accountId || row.workspace_role === "owner" || row.workspace_role === "admin",
  verified_at: row.verified_at?.toISOString() ?? null,
  dkim_selector: row.dkim_selector,
  transfer: row.transfer_id === null ? null : { id: row.transfer_id, status: row.transfer_status! },
})

/** A page of the first `limit` of the items; one item more than `limit` says that another page follows. */
const pageOf = <A extends { readonly id: string }>(items: ReadonlyArray<A>, limit: number) => ({
  items: items.slice(0, limit),
  next_after_id: items.length > limit ? items[limit - 1]!.id : null,
})

export interface AccountReadsConfig {
  /** Webhooks that an account may have. */
  readonly webhooksPerAccount: number
}

export class AccountReads extends Context.Service<AccountReads, {
  /** InvalidCredentials where the account was disabled after its credential was checked. */
  readonly account: (accountId: AccountId) => Effect.Effect<AccountView, InvalidCredentials>
  /** The oldest first: the first is the one that is meant where none is named. */
  readonly workspaces: (accountId: AccountId, page: CursorPage) => Effect.Effect<WorkspacePage>
  /** The domains that the account may see, ascending by id; with `name`, only those of that name in any letter case. */
  readonly domains: (accountId: AccountId, page: CursorPage, name?: string | null) => Effect.Effect<DomainPage>
  /** The domains of this name in every account, as this one sees them. Checks nothing: for platform administrators. */
  readonly domainsNamed: (accountId: AccountId, page: CursorPage, name: string) => Effect.Effect<DomainPage>
  /** DomainNotFound also for a domain that the account may not see, and for a text that is no id. */
  readonly domain: (accountId: AccountId, domainId: DomainId) => Effect.Effect<DomainView, DomainNotFound>
}>()("bailiwick/services/accounts/AccountReads") {
  static readonly layer = (config: AccountReadsConfig) => Layer.effect(AccountReads, make(config))
}

const make = Effect.fnUntraced(function* (config: AccountReadsConfig) {
  const { reads } = yield* Database
  const strongest = reads.literal(strongestFirst)

  const account = Effect.fn("AccountReads.account")(function* (accountId: AccountId) {
    const [row] = yield* reads<AccountRow>`
      select a.id::text as id, a.email, a.name, a.plan, a.platform_admin, a.domain_limit,
        (select count(*)::int from api_keys k where k.account_id = a.id and k.is_active) as api_keys,
        (select count(*)::int from webhooks w where w.account_id = a.id and w.deleted_at is null) as webhooks,
        (select count(*)::int from domains d where d.account_id = a.id and not d.removed) as domains
      from accounts a where a.id = ${accountId}::uuid and a.status = 'active' and not a.removed`.pipe(Effect.orDie)
    if (row === undefined) return yield* new InvalidCredentials()
    const { api_keys, domain_limit, domains, webhooks, ...rest } = row
    return {
      ...rest,
      api_keys: { used: api_keys, limit: apiKeyLimits[row.plan] },
      webhooks: { used: webhooks, limit: config.webhooksPerAccount },
      domains: { used: domains, limit: domain_limit ?? domainLimits[row.plan] },
    } satisfies AccountView
  })

  const workspaces = Effect.fn("AccountReads.workspaces")(
    function* (accountId: AccountId, { afterId, limit }: CursorPage) {
      const rows = yield* reads<Omit<WorkspaceView, "created_at"> & { readonly created_at: Date }>`
        select w.id::text as id, w.name, m.role, w.created_at from (
          select distinct on (m.workspace_id) m.workspace_id, m.role from workspace_memberships m
          where m.account_id = ${accountId}::uuid and not m.removed order by m.workspace_id, ${strongest}
        ) m join workspaces w on w.id = m.workspace_id and not w.removed
        where ${afterId}::uuid is null
          or (w.created_at, w.id) > (select created_at, id from workspaces where id = ${afterId}::uuid)
        order by w.created_at, w.id limit ${limit + 1}`.pipe(Effect.orDie)
      return pageOf(rows.map((row) => ({ ...row, created_at: row.created_at.toISOString() })), limit)
    },
  )

  /** SQL of the domains among `ids`, which selects ids of domains that the account may see. */
  const shown = (accountId: AccountId, now: Date) =>
    reads`d.id::text as id, d.name, d.account_id::text as account_id, (
        select a.email from accounts a where a.id = d.account_id and not a.removed
      ) as account_email, d.workspace_id::text as workspace_id,
      d.verified_at, d.dkim_selector, t.id::text as transfer_id, t.status as transfer_status, (
        select m.role from workspace_memberships m
        where m.account_id = ${accountId}::uuid and m.workspace_id = d.workspace_id and not m.removed
        order by ${strongest} limit 1
      ) as workspace_role
      from domains d left join transfers t on t.domain_id = d.id
        and (t.status = 'accepted' or t.status = 'pending' and t.expires_at > ${now})`

  /** A page of the domains that `seen` selects: their id and name. */
  const domainPage = Effect.fnUntraced(
    function* (
      accountId: AccountId,
      { afterId, limit }: CursorPage,
      name: string | null,
      seen: Statement.Fragment,
      tellsOwner = false,
    ) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const rows = yield* reads<DomainRow>`
        with page as (
          select id from (${seen}) seen
          where (${afterId}::uuid is null or id > ${afterId}::uuid)
            and (${name}::text is null or lower(name collate "C") = lower(${name} collate "C"))
          order by id limit ${limit + 1}
        )
        select ${shown(accountId, now)} where d.id in (select id from page) order by d.id`.pipe(Effect.orDie)
      return pageOf(rows.map((row) => domainOf(accountId, row, tellsOwner)), limit)
    },
  )

  const domains = Effect.fn("AccountReads.domains")(
    (accountId: AccountId, page: CursorPage, name: string | null = null) =>
      domainPage(
        accountId,
        page,
        name,
        reads`select id, name from domains where account_id = ${accountId}::uuid and not removed
          union
          select x.id, x.name from workspace_memberships m
          join domains x on x.workspace_id = m.workspace_id and not x.removed
          where m.account_id = ${accountId}::uuid and not m.removed`,
      ),
  )

  const domainsNamed = Effect.fn("AccountReads.domainsNamed")(
    (accountId: AccountId, page: CursorPage, name: string) =>
      domainPage(
        accountId,
        page,
        name,
        // Reads by the index of names.
        reads`select id, name from domains where lower(name collate "C") = lower(${name} collate "C") and not removed`,
        true,
      ),
  )

  const domain = Effect.fn("AccountReads.domain")(function* (accountId: AccountId, domainId: DomainId) {
    if (!isUuid(domainId)) return yield* new DomainNotFound()
    const now = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* reads<DomainRow>`
      select ${shown(accountId, now)}
      where d.id = ${domainId}::uuid and not d.removed and (d.account_id = ${accountId}::uuid or exists (
        select from workspace_memberships m
        where m.account_id = ${accountId}::uuid and m.workspace_id = d.workspace_id and not m.removed))`
      .pipe(Effect.orDie)
    return row === undefined ? yield* new DomainNotFound() : domainOf(accountId, row)
  })

  return AccountReads.of({ account, workspaces, domains, domainsNamed, domain })
})
