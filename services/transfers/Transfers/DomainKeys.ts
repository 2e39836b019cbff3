/** The DKIM keys of a domain for its parties: the active one, and the one that an accepted transfer has prepared. */
import { Effect } from "effect"
import type { AccountId, DomainId, TransferId } from "../../../schemas/BrandedIds.ts"
import type { DkimKeyView, DomainDkim } from "../../../schemas/mail/Transfer.ts"
import { TransferNotFound } from "../../../schemas/problems/TransferProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { type DkimAlgorithm, recordName, recordOf } from "../DkimKeys.ts"
import type { Settling } from "./DueTransition.ts"

interface Row {
  readonly name: string
  readonly active: string
  readonly transfer_id: TransferId | null
  readonly cooloff_until: Date | null
  readonly keys: ReadonlyArray<{
    readonly selector: string
    readonly algorithm: DkimAlgorithm
    readonly public_key: string
    readonly transfer_id: TransferId
  }>
}

const viewsOf = ({ active, cooloff_until, keys, name, transfer_id }: Row): ReadonlyArray<DkimKeyView> => {
  const own = keys.find(({ selector }) => selector === active)
  const prepared = keys.find((key) => key.selector !== active && key.transfer_id === transfer_id)
  const view = (status: DkimKeyView["status"], key: Row["keys"][number]): DkimKeyView => {
    const record = recordOf(name, { ...key, publicKey: key.public_key })
    return {
      selector: key.selector,
      status,
      algorithm: key.algorithm,
      public_key: key.public_key,
      record_name: record.name,
      record_value: record.value,
      transfer_id: key.transfer_id,
      effective_at: status === "prepared" ? cooloff_until!.toISOString() : null,
    }
  }
  // For a selector from the directory the public key is unknown.
  const unknown = { algorithm: null, public_key: null, record_value: null, transfer_id: null, effective_at: null }
  return [
    own === undefined
      ? { selector: active, status: "active", record_name: recordName(name, active), ...unknown }
      : view("active", own),
    ...(prepared === undefined ? [] : [view("prepared", prepared)]),
  ]
}

export const domainKeys = Effect.fnUntraced(function* (settle: Settling) {
  const { reads } = yield* Database
  return Effect.fn("Transfers.dkim")(function* (accountId: AccountId, domainId: DomainId) {
    yield* settle.domain(domainId)
    const [row] = yield* reads<Row>`
      select d.name, d.dkim_selector as active, t.id::text as transfer_id, t.cooloff_until, coalesce((
        select json_agg(json_build_object('selector', k.selector, 'algorithm', k.algorithm, 'public_key', k.public_key,
          'transfer_id', k.transfer_id))
        from dkim_keys k where k.domain_id = d.id and (k.selector = d.dkim_selector or k.transfer_id = t.id)
      ), '[]') as keys
      from domains d left join transfers t on t.domain_id = d.id and t.status = 'accepted'
      where d.id = ${domainId}::uuid and not d.removed and (d.account_id = ${accountId}::uuid
        or t.target_user_id = ${accountId}::uuid
        or exists (select from workspace_memberships m
          where m.account_id = ${accountId}::uuid and m.workspace_id = d.workspace_id and not m.removed))`.pipe(
      Effect.orDie,
    )
    if (row === undefined) return yield* new TransferNotFound()
    return { domain_id: domainId, domain_name: row.name, keys: viewsOf(row) } satisfies DomainDkim
  })
})
