/**
 * Loads the facts for the commands on transfers: one statement each, outside a transaction and without locks, with the
 * versions that the write fences. Addresses are compared in ASCII lower case.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import type { WorkspaceRole } from "../../../schemas/mail/MailAccount.ts"
import type { Blocker } from "../../../schemas/mail/Transfer.ts"
import { type Reach, type Reachable, reachColumns } from "../../notifications/Notifications.ts"
import { held, raised, type Version } from "../../platform/database/FencedWrite.ts"
import type { Fence } from "../../platform/database/UnitOfWork.ts"
import { type RateLimit, type RateWindow, windowOf } from "../../platform/security/RateLimits.ts"
import type { DkimKey } from "../DkimKeys.ts"
import { type Credential, foreignTo } from "./DomainMove.ts"
import {
  type Account,
  blockersOf,
  counts,
  type Domain,
  domainColumns,
  domainOf,
  type DomainRow,
} from "./DecisionReads.ts"
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
  readonly workspace: Version
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
  readonly people: ReadonlyMap<string, Person>
  readonly reach: Reach
}

export interface LoadedTransfer extends Loaded {
  readonly stored: Stored
}

type Common = {
  readonly domain: DomainJson | null
  readonly held: boolean
  readonly people: ReadonlyArray<Person> | null
}

const commonOf = ({ domain, held, people }: Common): Loaded => {
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

export const loads = (sql: PgClient.PgClient) => {
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

  const transfer = <More>(id: string, callerId: string | null, more: Statement.Fragment) =>
    Effect.map(
      sql<Row & Common & More>`
        with t as materialized (select ${columns} from transfers where id = ${id}::uuid)
        select t.*, ${domain(sql`t.domain_id::uuid`)}, ${isHeld}, ${
        people(sql`${callerId}::uuid, t.source_user_id::uuid, t.initiated_by::uuid, t.target_user_id::uuid`)
      }${more} from t`,
      ([row]): (LoadedTransfer & { readonly row: More }) | null =>
        row === undefined ? null : { ...commonOf(row), stored: storedOf(row), row },
    )

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
  const opening = (domainId: string, email: string) =>
    sql`x as materialized (
        select (array(select a.id from accounts a
            where lower(a.email collate "C") = lower(${email} collate "C") and not a.removed and a.status = 'active'
            order by a.id))[1] as target_id,
          (select account_id from domains where id = ${domainId}::uuid) as owner_id,
          (select workspace_id from domains where id = ${domainId}::uuid) as workspace_id
      ), t as materialized (
        select ${columns} from transfers where domain_id = ${domainId}::uuid and status in ('pending', 'accepted')
      )`

  const seatsIn = (callerId: string, workspaceId: Statement.Fragment) =>
    sql`(select json_agg(m) from (
      select id, version, role from workspace_memberships
      where account_id = ${callerId}::uuid and workspace_id = ${workspaceId} and not removed order by id) m) as seats`

  return {
    /**
     * A domain and its live transfer; the caller's seat in its workspace; what blocks an offer; the account with the
     * address; the used part of the rate limit.
     */
    forInitiate: Effect.fnUntraced(function* (domainId: string, callerId: string, email: string, limit: RateLimit) {
      const now = yield* Clock.currentTimeMillis
      const [row] = yield* sql<
        Row & Common & {
          readonly blockers: ReadonlyArray<Blocker> | null
          readonly seats: ReadonlyArray<Seat> | null
          readonly taken: RateWindow
          readonly target_id: string | null
        }
      >`
        with ${opening(domainId, email)}
        select t.*, x.target_id::text as target_id, ${domain(sql`${domainId}::uuid`)}, ${isHeld},
          ${people(sql`${callerId}::uuid, x.owner_id, x.target_id`)}, ${seatsIn(callerId, sql`x.workspace_id`)},
          (select json_agg(b) from (${blockersOf(sql, domainId)}) b) as blockers,
          ${windowOf(sql, limit, now)} as taken
        from x left join t on true`
      const { blockers, seats, taken, target_id: targetId, ...found } = row!
      const of = (kind: Blocker["kind"]) => (blockers ?? []).filter((one) => one.kind === kind)
      return {
        ...commonOf(found),
        live: found.id === null ? null : storedOf(found),
        ...{ seat: strongest(seats ?? []), targetId, taken },
        blockers: { broadcasts: of("broadcast"), scheduledEmails: of("scheduled_email") },
      }
    }),

    /**
     * A domain and its live transfer; the account with the address, with its workspaces; the SMTP credentials that the
     * move revokes.
     */
    forForce: Effect.fnUntraced(function* (domainId: string, callerId: string, email: string) {
      const [row] = yield* sql<
        Row & Common & {
          readonly credentials: ReadonlyArray<Credential>
          readonly seats: ReadonlyArray<WorkspaceSeat> | null
          readonly target_id: string | null
        }
      >`
        with ${opening(domainId, email)}
        select t.*, x.target_id::text as target_id, ${domain(sql`${domainId}::uuid`)}, ${isHeld},
          ${
        people(sql`${callerId}::uuid, x.owner_id, x.target_id, t.source_user_id::uuid, t.initiated_by::uuid,
            t.target_user_id::uuid`)
      }, ${workspaceSeats(sql`x.target_id`)}, ${foreignTo(sql, sql`${domainId}::uuid`, sql`x.target_id`)} as credentials
        from x left join t on true`
      const { credentials, seats, target_id: targetId, ...found } = row!
      return {
        ...{ ...commonOf(found), credentials, targetId, seats: seats ?? [] },
        live: found.id === null ? null : storedOf(found),
      }
    }),

    /**
     * A transfer, its domain and its parties; the recipient's workspaces; the SMTP credentials that the move revokes;
     * the transfer's DKIM key; the value of `allowed`.
     */
    forClock: (id: string, allowed: Statement.Fragment) =>
      Effect.map(
        transfer<{
          readonly allowed: boolean
          readonly credentials: ReadonlyArray<Credential>
          readonly key: DkimKey | null
          readonly seats: ReadonlyArray<WorkspaceSeat> | null
        }>(
          id,
          null,
          sql`, ${workspaceSeats(sql`t.target_user_id::uuid`)}, ${allowed} as allowed,
            ${foreignTo(sql, sql`t.domain_id::uuid`, sql`t.target_user_id::uuid`)} as credentials,
            (select row_to_json(k) from (
              select algorithm, selector, public_key as "publicKey" from dkim_keys
              where domain_id = t.domain_id::uuid and transfer_id = t.id::uuid) k) as key`,
        ),
        (found) => {
          if (found === null) return null
          const { allowed, credentials, key, seats } = found.row
          return { ...found, allowed, credentials, key, seats: seats ?? [] }
        },
      ),

    /** A transfer, its domain and its parties. */
    forStop: (id: string) => transfer(id, null, sql``),

    /** The same, with the caller and the caller's seat in the source workspace. */
    forParty: (id: string, callerId: string) =>
      Effect.map(
        transfer<{ readonly seats: ReadonlyArray<Seat> | null }>(
          id,
          callerId,
          sql`, ${seatsIn(callerId, sql`t.source_org_id::uuid`)}`,
        ),
        (found) => found && { ...found, seat: strongest(found.row.seats ?? []) },
      ),

    /**
     * The same, with the caller's workspaces (oldest first), the number of the caller's domains, and of accepted
     * transfers to the caller. One snapshot, so that a completion counts once.
     */
    forAccept: (id: string, callerId: string) =>
      Effect.map(
        transfer<{
          readonly seats: ReadonlyArray<WorkspaceSeat> | null
          readonly owned: number
          readonly coming: number
        }>(
          id,
          callerId,
          sql`, ${workspaceSeats(sql`${callerId}::uuid`)}, ${counts(sql, sql`${callerId}::uuid`)}`,
        ),
        (found) => {
          if (found === null) return null
          const { coming, owned, seats } = found.row
          return { ...found, coming, owned, seats: seats ?? [] }
        },
      ),
  }
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
