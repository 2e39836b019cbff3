/**
 * A domain and its transfer, locked in this order by one statement. Its snapshot is older than the locks that it waits
 * for: of a row that it locks it gives what stands there now, and a row that was made meanwhile it does not see. So who
 * reads a domain's live transfer here holds the domain's fence against what was read by a statement before.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { type Domain, domainColumns, domainOf, type DomainRow } from "./Facts.ts"
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

  return {
    /** A transfer and its domain; null where there is no such transfer. */
    lockTransfer: (id: string) =>
      Effect.map(
        sql<Row & { readonly domain: DomainJson | null }>`
          with d as materialized (
            ${domain} where id = (select domain_id from transfers where id = ${id}::uuid) for update
          ), t as materialized (
            select ${columns} from transfers where id = ${id}::uuid and ${after} for update
          )
          select t.*, (select row_to_json(d) from d) as domain from t`,
        ([row]): { readonly domain: Domain | null; readonly stored: Stored } | null =>
          row === undefined ? null : { domain: known(row.domain), stored: storedOf(row) },
      ),

    /** A domain, its live transfer where it has one, and whether the installation is held. */
    lockDomain: (id: string) =>
      Effect.map(
        sql<Row & { readonly domain: DomainJson | null; readonly held: boolean }>`
          with d as materialized (
            ${domain} where id = ${id}::uuid for update
          ), t as materialized (
            select ${columns} from transfers
            where domain_id = ${id}::uuid and status in ('pending', 'accepted') and ${after} for update
          )
          select t.*, (select row_to_json(d) from d) as domain, (select state = 'held' from installation) as held
          from (select) one left join t on true`,
        ([row]) => {
          const { domain, held, ...transfer } = row!
          return { domain: known(domain), held, live: transfer.id === null ? null : storedOf(transfer) }
        },
      ),
  }
}
