/**
 * The webhooks by account and event type, active and paused ones apart, cached. An entry has the account's listeners
 * version (`accounts.listeners`), which each change of its webhooks raises. A statement that uses an entry names its version
 * and does nothing if it has changed; the caller then reads again. So a change is never missed after it was answered,
 * although no event reads the webhooks from the database.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, WebhookId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { counted } from "../platform/MapSizes.ts"
import { arrayOf } from "./Deliveries/PgArray.ts"
import type { EndpointKey } from "./Endpoints.ts"

/** The webhooks of an account. */
export interface Listening {
  /** The value of `accounts.listeners`. */
  readonly version: bigint
  /** The webhooks that listen to events of this type. */
  readonly to: (event: string) => ReadonlyArray<EndpointKey>
  /** The paused webhooks that subscribe to events of this type. */
  readonly missing: (event: string) => ReadonlyArray<WebhookId>
  /** Entries in memory. */
  readonly size: number
}

interface Row {
  readonly account_id: AccountId
  readonly version: bigint
  readonly webhooks: ReadonlyArray<readonly [WebhookId, number, ReadonlyArray<string>, isActive: boolean]> | null
}

/** Size of the cache: webhooks, counted once per event type, and accounts. */
const memory = 100_000

const none: ReadonlyArray<never> = []

const add = <A>(to: Map<string, Array<A>>, event: string, item: A) => {
  const items = to.get(event)
  if (items === undefined) to.set(event, [item])
  else items.push(item)
}

const listeningOf = ({ version, webhooks }: Row): Listening => {
  const active = new Map<string, Array<EndpointKey>>()
  const paused = new Map<string, Array<WebhookId>>()
  let size = 1
  for (const [webhookId, version, events, isActive] of webhooks ?? []) {
    for (const event of events) {
      if (isActive) add(active, event, { webhookId, version })
      else add(paused, event, webhookId)
      size++
    }
  }
  return { version, size, to: (event) => active.get(event) ?? none, missing: (event) => paused.get(event) ?? none }
}

export class Listeners extends Context.Service<Listeners, {
  /** The listeners of these accounts, cached if possible; unknown and removed accounts are left out. */
  readonly of: (accountIds: Iterable<AccountId>) => Effect.Effect<ReadonlyMap<AccountId, Listening>, SqlError.SqlError>
  /** The same, read now with the accounts locked: changes wait until the end of the current transaction. */
  readonly locked: (
    accountIds: Iterable<AccountId>,
  ) => Effect.Effect<ReadonlyMap<AccountId, Listening>, SqlError.SqlError>
  /** Removes accounts from the cache whose version has changed. */
  readonly forget: (accountIds: Iterable<AccountId>) => void
}>()("bailiwick/services/webhooks/Listeners") {
  static readonly layer = Layer.effect(
    Listeners,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const known = new Map<AccountId, Listening>()
      let size = 0
      yield* counted("listening webhooks", () => size)

      const forget = (accountId: AccountId) => {
        size -= known.get(accountId)?.size ?? 0
        known.delete(accountId)
      }

      const remember = (accountId: AccountId, listening: Listening) => {
        forget(accountId)
        if (listening.size > memory) return
        known.set(accountId, listening)
        size += listening.size
        for (const oldest of known.keys()) {
          if (size <= memory) break
          forget(oldest)
        }
      }

      const read = Effect.fnUntraced(function* (accountIds: ReadonlyArray<AccountId>) {
        // One snapshot for the number and the webhooks.
        const rows = yield* sql<Row>`
          select a.id as account_id, a.listeners as version, w.webhooks from unnest(${
          arrayOf(accountIds)
        }::uuid[]) i(id)
          cross join lateral (select id, listeners from accounts where id = i.id and not removed offset 0) a
          cross join lateral (
            select jsonb_agg(jsonb_build_array(id, version, events, is_active)) as webhooks from webhooks
            where account_id = a.id and deleted_at is null
          ) w`
        return rows.map((row) => [row.account_id, listeningOf(row)] as const)
      })

      const of = Effect.fnUntraced(function* (accountIds: Iterable<AccountId>) {
        const found = new Map<AccountId, Listening>()
        const missing: Array<AccountId> = []
        for (const accountId of accountIds) {
          const listening = known.get(accountId)
          if (listening === undefined) missing.push(accountId)
          else found.set(accountId, listening)
        }
        for (const [accountId, listening] of missing.length === 0 ? [] : yield* read(missing)) {
          remember(accountId, listening)
          found.set(accountId, listening)
        }
        return found
      })

      const locked = Effect.fnUntraced(function* (accountIds: Iterable<AccountId>) {
        const ids = [...accountIds].sort()
        // In a separate statement: one that waited for the lock would read the webhooks of its older snapshot.
        yield* sql`select from accounts where id = any(${arrayOf(ids)}::uuid[]) order by id for share`
        return new Map(yield* read(ids))
      })

      return Listeners.of({
        of,
        locked,
        forget: (accountIds) => {
          for (const accountId of accountIds) forget(accountId)
        },
      })
    }),
  )
}
