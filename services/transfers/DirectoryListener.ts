/**
 * Ends the live transfer of a domain that the directory removed or gave another owner or workspace, in the transaction
 * of the directory's batch. A pending transfer becomes cancelled, an accepted one reversed; both sides are notified.
 */
import { Clock, Effect, Result } from "effect"
import { CommandId, DomainId, type TransferId } from "../../schemas/BrandedIds.ts"
import type { Kind } from "../directory/Directory.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { last } from "../platform/database/UnitOfWork.ts"
import { TransitionWriter } from "./Transfers/TransitionWriter.ts"
import { rows } from "./Transfers/Rows.ts"
import { transition } from "./Transfers/TransferTransition.ts"

const watch = Effect.gen(function* () {
  const { sql } = yield* Database
  const changes = yield* TransitionWriter
  const ids = yield* Ids
  const { lockByIds } = rows(sql)

  return Effect.fnUntraced(function* (domainIds: ReadonlyArray<DomainId>) {
    const ended = yield* sql<{ id: TransferId }>`
      select t.id::text as id from transfers t join domains d on d.id = t.domain_id
      where t.domain_id = any(${[...domainIds]}::uuid[]) and t.status in ('pending', 'accepted')
        and (d.removed or d.account_id <> t.source_user_id or d.workspace_id <> t.source_org_id)`
    if (ended.length === 0) return
    const stored = yield* lockByIds(ended.map(({ id }) => id))
    const now = yield* Clock.currentTimeMillis
    const commandIds = yield* ids.batch(stored.length)
    const notices = yield* changes.write(...stored.map((before, i) => ({
      before,
      after: Result.getOrThrow(transition(before.state, { _tag: "End", by: "directory" }, now)),
      actor: "system",
      commandId: CommandId.make(commandIds[i]!),
      revision: null,
      now,
    }))).pipe(
      // The rows are locked, so no other transaction can have changed them.
      Effect.catchTag("Conflict", Effect.die),
    )
    // The batch locks further rows after these, and inboxes are locked last (docs/lock-order.md).
    yield* last("inboxes", notices, changes.tell)
  })
})

/** The directory's kinds, with this listener on the kind `domain`: `Directory.layer(watchingTransfers(mailKinds))`. */
export const watchingTransfers = <R>(register: Effect.Effect<ReadonlyArray<Kind>, never, R>) =>
  Effect.gen(function* () {
    const kinds = yield* register
    const endForeign = yield* watch
    return kinds.map((kind): Kind =>
      kind.kind === "domain"
        ? {
          ...kind,
          after: (ids, now) =>
            Effect.andThen(kind.after?.(ids, now) ?? Effect.void, endForeign(ids.map((id) => DomainId.make(id)))),
        }
        : kind
    )
  }).pipe(Effect.provide(TransitionWriter.layer))
