/**
 * The shared parts of the loads of commands on transfers. A load is one statement, outside a transaction and without
 * locks, which reads the facts of a decision with the versions that the write fences. Addresses are compared in ASCII
 * lower case.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { AccountId, DomainId, TransferId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import type { WorkspaceRole } from "../../../schemas/mail/MailAccount.ts"
import { type Reach, type Reachable, reachColumns } from "../../notifications/Notifications.ts"
import { held, raised, type Version } from "../../platform/database/FencedWrite.ts"
import type { Fence } from "../../platform/database/UnitOfWork.ts"
import { type Account, type Domain, domainColumns, domainOf, type DomainRow } from "./DecisionReads.ts"
import { type Row, type Stored, storedOf, transferColumns } from "./Rows.ts"

/** An account in a command: its facts, and its addresses for notices. */
export interface Person extends Omit<Account, "email">, Reachable {
  /** The directory's version. */
  readonly version: number
  /** A fence, raised by each write that counts against the account's limit of domains. */
  readonly arrivals: number
}

/** A membership in a workspace. */
export interface Seat extends Version {
  readonly role: WorkspaceRole
}

export interface WorkspaceSeat extends Seat {
  readonly workspace: Version & { readonly id: WorkspaceId }
}

/** A domain's row as JSON. */
interface DomainJson extends Omit<DomainRow, "revision"> {
  readonly revision: number
  readonly removed: boolean
}

export interface Loaded {
  /** Null if the domain is unknown or removed. */
  readonly domain: Domain | null
  /** The domain's fence, also of a removed one. */
  readonly revision: bigint
  readonly installationHeld: boolean
  readonly people: ReadonlyMap<AccountId, Person>
  readonly reach: Reach
}

export interface LoadedTransfer extends Loaded {
  readonly stored: Stored
}

/** The columns that every load has. */
export type Common = {
  readonly domain: DomainJson | null
  readonly held: boolean
  readonly people: ReadonlyArray<Person> | null
}

export const commonOf = ({ domain, held, people }: Common): Loaded => {
  const byId = new Map((people ?? []).map((person) => [person.id, person]))
  // An unknown domain has revision 0, which no fence matches.
  const revision = BigInt(domain?.revision ?? 0)
  return {
    domain: domain === null || domain.removed ? null : domainOf({ ...domain, revision }),
    revision,
    installationHeld: held,
    people: byId,
    reach: byId,
  }
}

/** The seat with the strongest role. */
export const strongest = (seats: ReadonlyArray<Seat>): Seat | null =>
  seats.find(({ role }) => role !== "member") ?? seats[0] ?? null

/** SQL of the parts of a load. */
export const loadParts = (sql: PgClient.PgClient) => {
  const columns = sql.literal(transferColumns)
  const isHeld = sql`(select state = 'held' from installation) as held`
  const domain = (id: Statement.Fragment) =>
    sql`(select row_to_json(d) from (
      select ${sql.literal(domainColumns)}, removed from domains where id = ${id}) d) as domain`
  const people = (ids: Statement.Fragment) =>
    sql`(select json_agg(a) from (
      select a.id::text as id, coalesce(a.name, '') as name, coalesce(a.plan, 'free') as plan, a.domain_limit,
        a.version, a.arrivals, ${sql.literal(reachColumns)}
      from accounts a left join notification_preferences p on p.account_id = a.id where a.id in (${ids})) a) as people`

  /** SQL: the account's seats with their workspaces, oldest workspace first. */
  const workspaceSeats = (accountId: Statement.Fragment) =>
    sql`(select json_agg(m) from (
      select m.id, m.version, m.role, json_build_object('id', w.id, 'version', w.version) as workspace
      from workspace_memberships m join workspaces w on w.id = m.workspace_id
      where m.account_id = ${accountId} and not m.removed and not w.removed
      order by w.created_at, w.id, m.id) m) as seats`

  /**
   * CTEs: `x` has the domain's owner and the account with the address, the oldest if the directory gave it to several;
   * `t` has the domain's live transfer. (With `limit 1` instead of the array, the planner walks through all accounts by
   * id.)
   */
  const opening = (domainId: DomainId, email: string) =>
    sql`x as materialized (
        select (array(select a.id from accounts a
            where lower(a.email collate "C") = lower(${email} collate "C") and not a.removed and a.status = 'active'
            order by a.id))[1] as target_id,
          (select account_id from domains where id = ${domainId}::uuid) as owner_id,
          (select workspace_id from domains where id = ${domainId}::uuid) as workspace_id
      ), t as materialized (
        select ${columns} from transfers where domain_id = ${domainId}::uuid and status in ('pending', 'accepted')
      )`

  const seatsIn = (callerId: AccountId, workspaceId: Statement.Fragment) =>
    sql`(select json_agg(m) from (
      select id, version, role from workspace_memberships
      where account_id = ${callerId}::uuid and workspace_id = ${workspaceId} and not removed order by id) m) as seats`

  return { domain, isHeld, opening, people, seatsIn, workspaceSeats }
}

/** Loads a transfer, its domain, its parties and the caller, if any, with `more` columns. */
export const transferLoad = (sql: PgClient.PgClient) => {
  const columns = sql.literal(transferColumns)
  const { domain, isHeld, people } = loadParts(sql)

  return <More>(id: TransferId, callerId: AccountId | null, more: Statement.Fragment) =>
    Effect.map(
      sql<Row & Common & More>`
        with t as materialized (select ${columns} from transfers where id = ${id}::uuid)
        select t.*, ${domain(sql`t.domain_id::uuid`)}, ${isHeld}, ${
        people(sql`${callerId}::uuid, t.source_user_id::uuid, t.initiated_by::uuid, t.target_user_id::uuid`)
      }${more} from t`,
      ([row]): (LoadedTransfer & { readonly row: More }) | null =>
        row === undefined ? null : { ...commonOf(row), stored: storedOf(row), row },
    )
}

/** The rows beside domain and transfer that a decision depends on; a write fences them in the global order of locks. */
export interface Standing {
  /** Accounts that must not have changed. */
  readonly accounts: ReadonlyArray<Person>
  /** The account that gets a domain: must not have changed, and its `arrivals` is raised. */
  readonly arrival?: Person | undefined
  readonly workspaces?: ReadonlyArray<Version>
  readonly seats?: ReadonlyArray<Version>
}

export const standing = (
  sql: PgClient.PgClient,
  { accounts, arrival, seats = [], workspaces = [] }: Standing,
): ReadonlyArray<Fence> => {
  const hold = (table: string, rows: ReadonlyArray<Version>) => rows.length === 0 ? [] : [held(sql, table, rows)]
  const others = hold("workspaces", workspaces).concat(hold("workspace_memberships", seats))
  if (arrival === undefined) return [...hold("accounts", accounts), ...others]
  const { arrivals, id, version } = arrival
  return [
    ...hold("accounts", accounts.filter((account) => account.id < id)),
    raised(sql, "accounts", "arrivals", { id, version: arrivals }, sql`version = ${version}`),
    ...hold("accounts", accounts.filter((account) => account.id > id)),
    ...others,
  ]
}
