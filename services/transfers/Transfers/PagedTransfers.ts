/**
 * Pages of transfers, most recent first: what an account received before, and the transfers of all accounts for platform
 * administrators. Reads write no due transition: a timer does. An offer whose time is over is shown, and found, as expired.
 */
import { Clock, Effect } from "effect"
import type { AccountId, TransferId } from "../../../schemas/BrandedIds.ts"
import type { DomainTransferPage, PlatformTransferPage, TransferStatus } from "../../../schemas/mail/Transfer.ts"
import { Database } from "../../platform/database/Database.ts"
import { type Row, storedOf, transferColumns } from "./Rows.ts"
import { viewOf } from "./TransferState.ts"

export interface TransferPage {
  readonly limit: number
  /** The last transfer of the page before; null: from the newest on. */
  readonly afterId: string | null
}

export interface TransferFilter {
  readonly status: TransferStatus | null
  /** Of the domain, in any letter case. */
  readonly name: string | null
}

const newest = "ffffffff-ffff-ffff-ffff-ffffffffffff"

/** A page of the first `limit` of the items; one item more than `limit` says that another page follows. */
const pageOf = <A extends { readonly id: TransferId }>(items: ReadonlyArray<A>, limit: number) => ({
  items: items.slice(0, limit),
  next_after_id: items.length > limit ? items[limit - 1]!.id : null,
})

export const transferPages = Effect.gen(function* () {
  const { reads } = yield* Database
  const columns = reads.literal(transferColumns)

  const received = Effect.fn("Transfers.received")(
    function* (accountId: AccountId, { afterId, limit }: TransferPage): Effect.fn.Return<DomainTransferPage> {
      const now = yield* Clock.currentTimeMillis
      const rows = yield* reads<Row>`
        select ${columns} from transfers
        where target_user_id = ${accountId}::uuid and id < ${afterId ?? newest}::uuid
          and status <> 'accepted' and not (status = 'pending' and expires_at > ${new Date(now)})
        order by id desc limit ${limit + 1}`.pipe(Effect.orDie)
      return pageOf(rows.map((row) => viewOf(storedOf(row).state, now)), limit)
    },
  )

  const matching = (status: TransferStatus | null, now: Date) => {
    switch (status) {
      case null:
        return reads`true`
      case "pending":
        return reads`t.status = 'pending' and t.expires_at > ${now}`
      case "expired":
        return reads`t.status in ('expired', 'pending') and (t.status = 'expired' or t.expires_at <= ${now})`
      default:
        return reads`t.status = ${status}`
    }
  }

  const all = Effect.fn("Transfers.all")(
    function* (
      { name, status }: TransferFilter,
      { afterId, limit }: TransferPage,
    ): Effect.fn.Return<PlatformTransferPage> {
      const now = yield* Clock.currentTimeMillis
      const named = name === null ? reads`true` : reads`lower(t.domain_name collate "C") = lower(${name} collate "C")`
      const rows = yield* reads<Row & { readonly source_email: string | null }>`
        select ${columns}, (
          select a.email from accounts a where a.id = page.source_user_id and not a.removed) as source_email
        from (
          select t.* from transfers t
          where t.id < ${afterId ?? newest}::uuid and ${named} and ${matching(status, new Date(now))}
          order by t.id desc limit ${limit + 1}
        ) page order by page.id desc`.pipe(Effect.orDie)
      const items = rows.map((row) => ({
        ...viewOf(storedOf(row).state, now),
        source_email: row.source_email,
        forced: row.forced,
      }))
      return pageOf(items, limit)
    },
  )

  return { received, all }
})
