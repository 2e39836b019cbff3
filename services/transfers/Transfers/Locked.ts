/**
 * A domain and its transfer, locked in this order by one statement. Its snapshot is older than the locks that it waits
 * for: of a row that it locks it gives what stands there now, and a row that was made meanwhile it does not see. So who
 * reads a domain's live transfer here holds the domain's fence against what was read by a statement before.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Blocker } from "../../../schemas/mail/Transfer.ts"
import { blockersOf, type Domain, domainColumns, domainOf, type DomainRow } from "./Facts.ts"
import { type Row, type Stored, storedOf, transferColumns } from "./Rows.ts"

/** As JSON has it. */
interface DomainJson extends Omit<DomainRow, "revision"> {
  readonly revision: number
  readonly removed: boolean
}

/** Null where it is unknown or removed. */
const known = (domain: DomainJson | null): Domain | null =>
  domain === null || domain.removed ? null : domainOf({ ...domain, revision: BigInt(domain.revision) })

export const locked = (sql: PgClient.PgClient) => {
  const columns = sql.literal(transferColumns)
  const domain = sql`select ${sql.literal(domainColumns)}, removed from domains`
  // Counted before the transfer is looked for: that is what orders the two locks.
  const after = sql.literal("(select count(*) from d) >= 0")
  const held = sql.literal("(select state = 'held' from installation)")

  return {
    /** A transfer and its domain, and whether the installation is held; null where there is no such transfer. */
    lockTransfer: (id: string) =>
      Effect.map(
        sql<Row & { readonly domain: DomainJson | null; readonly held: boolean }>`
          with d as materialized (
            ${domain} where id = (select domain_id from transfers where id = ${id}::uuid) for update
          ), t as materialized (
            select ${columns} from transfers where id = ${id}::uuid and ${after} for update
          )
          select t.*, (select row_to_json(d) from d) as domain, ${held} as held from t`,
        ([row]): { readonly domain: Domain | null; readonly stored: Stored; readonly held: boolean } | null =>
          row === undefined ? null : { domain: known(row.domain), stored: storedOf(row), held: row.held },
      ),

    /**
     * A domain, its live transfer where it has one, whether the installation is held, and what stands in the way of an
     * offer, which is not locked.
     */
    lockDomain: (id: string) =>
      Effect.map(
        sql<
          Row & {
            readonly domain: DomainJson | null
            readonly held: boolean
            readonly blockers: ReadonlyArray<Blocker> | null
          }
        >`
          with d as materialized (
            ${domain} where id = ${id}::uuid for update
          ), t as materialized (
            select ${columns} from transfers
            where domain_id = ${id}::uuid and status in ('pending', 'accepted') and ${after} for update
          )
          select t.*, (select row_to_json(d) from d) as domain, ${held} as held,
            (select json_agg(b) from (${blockersOf(sql, id)}) b) as blockers
          from (select) one left join t on true`,
        ([row]) => {
          const { blockers, domain, held, ...transfer } = row!
          const of = (kind: Blocker["kind"]) => (blockers ?? []).filter((one) => one.kind === kind)
          return {
            domain: known(domain),
            held,
            live: transfer.id === null ? null : storedOf(transfer),
            blockers: { broadcasts: of("broadcast"), scheduledEmails: of("scheduled_email") },
          }
        },
      ),
  }
}
