/**
 * What the feed does to a domain ends its live transfer, in the feed's own transaction: an owner or workspace that we
 * did not decide, or a removal. Pending becomes cancelled, accepted becomes reversed, both sides are told.
 */
import { Clock, Effect, Result } from "effect"
import type { Kind } from "../directory/Directory.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { atTheEnd } from "../platform/database/Transact.ts"
import { TransitionWriter } from "./Transfers/TransitionWriter.ts"
import { rows } from "./Transfers/Rows.ts"
import { transition } from "./Transfers/TransferTransition.ts"

const watch = Effect.gen(function* () {
  const { sql } = yield* Database
  const changes = yield* TransitionWriter
  const ids = yield* Ids
  const { lockByIds } = rows(sql)

  return Effect.fnUntraced(function* (domainIds: ReadonlyArray<string>) {
    const ended = yield* sql<{ id: string }>`
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
      commandId: commandIds[i]!,
      revision: null,
      now,
    }))).pipe(
      // The rows are locked, so nobody else can have been there.
      Effect.catchTag("Conflict", Effect.die),
    )
    // What else the batch holds is locked after these rows, and inboxes come after all of it.
    yield* atTheEnd("inboxes", notices, changes.tell)
  })
})

/** The same kinds, with an eye on the domains: `Directory.layer(watchingTransfers(mailKinds))`. */
export const watchingTransfers = <R>(register: Effect.Effect<ReadonlyArray<Kind>, never, R>) =>
  Effect.gen(function* () {
    const kinds = yield* register
    const endForeign = yield* watch
    return kinds.map((kind): Kind =>
      kind.kind === "domain"
        ? { ...kind, after: (ids, now) => Effect.andThen(kind.after?.(ids, now) ?? Effect.void, endForeign(ids)) }
        : kind
    )
  }).pipe(Effect.provide(TransitionWriter.layer))
