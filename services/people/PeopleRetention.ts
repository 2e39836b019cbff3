/**
 * Prunes sessions that were not used for ninety days, and credential actions and link proofs that were begun so long
 * ago; the audit keeps what they did. A receipt is kept as long as the result of its command, so receipts of actions
 * and proofs go with them; the results of all other commands are never deleted, and neither are their receipts.
 *
 * Rows are read in the order of their ids, which tell when they were made, so that only the oldest rows are read.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../platform/database/Database.ts"
import { prune } from "../platform/database/Prune.ts"
import { leastIdAt } from "../platform/Ids.ts"

/** How long a session is shown after its last use, and how long the other rows are kept. */
export const keptMillis = 90 * 86_400_000

const atOnce = 10_000

/**
 * SQL of the receipts that go with rows pruned here: the exact condition of the index `idempotency_receipts_ending`.
 */
const ending = "(path = '/v1/me/link-proofs' or path like '/v1/me/credential-actions%')"

export class PeopleRetention extends Context.Service<PeopleRetention, {
  /** Prunes everything that is old enough; returns how many rows went. Any number of processes may call it. */
  readonly prune: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/people/PeopleRetention") {
  /** `page`: rows that one statement reads. */
  static readonly layer = ({ page }: { readonly page: number } = { page: atOnce }) =>
    Layer.effect(
      PeopleRetention,
      Effect.gen(function* () {
        const { sql } = yield* Database

        // Revoked sessions are kept: their issuer does not know of the revocation and may issue tokens for them at any
        // time.
        const sessions = Effect.fnUntraced(function* (before: Date) {
          let [after, gone] = [leastIdAt(0), 0]
          for (;;) {
            const [row] = yield* sql<{ n: number; last: string | null }>`
              with old as materialized (
                select id from sessions where id > ${after}::uuid and id < ${leastIdAt(before.getTime())}::uuid
                order by id limit ${page}
              ), ended as (
                delete from sessions s using old where s.id = old.id
                  and s.expires_at < ${before} and s.last_seen_at < ${before} and s.revoked_at is null returning 1
              )
              select (select count(*) from ended)::int as n, (select id::text from old order by id desc limit 1) as last`
            gone += row!.n
            if (row!.last === null) return gone
            after = row!.last
          }
        })

        const pruneOld = Effect.gen(function* () {
          const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
          const made = sql`id < ${leastIdAt(before.getTime())}::uuid`
          const ended = sql`${sql.literal(ending)} and created_at < ${before}`
          const counts = yield* Effect.all([
            sessions(before),
            prune(sql, {
              table: "credential_intents",
              where: sql`${made} and state <> 'pending'`,
              order: "id",
              batch: page,
            }),
            prune(sql, { table: "link_proofs", where: made, order: "id", batch: page }),
            // At the age at which the rows that they refer to go.
            prune(sql, { table: "idempotency_receipts", where: ended, order: "created_at", batch: page }),
          ])
          return counts.reduce((sum, n) => sum + n, 0)
        }).pipe(Effect.withSpan("Retention.prune"))

        return PeopleRetention.of({ prune: pruneOld })
      }),
    )
}
