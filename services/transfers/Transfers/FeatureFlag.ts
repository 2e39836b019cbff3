/**
 * DOMAIN_TRANSFERS_ENABLED over time. While it is off, no transfer completes, since its owner cannot reach the page
 * that stops it. When it is on again, every accepted transfer can be stopped for at least another hour, and its parties
 * are mailed. The table stores the last start's setting, so that each starting process notices a change.
 */
import { Clock, Context, Effect, Layer, Result } from "effect"
import type { Statement } from "effect/sql"
import { CommandId, type DomainId, type TransferId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../platform/database/Database.ts"
import { run } from "../../platform/database/UnitOfWork.ts"
import { Ids } from "../../platform/Ids.ts"
import { TransitionWriter } from "./TransitionWriter.ts"
import { rows } from "./Rows.ts"
import { transition } from "./TransferTransition.ts"

const graceMillis = 3_600_000
const chunk = 50

interface Flag {
  readonly enabled: boolean
  readonly resuming_until: Date | null
}

export class FeatureFlag extends Context.Service<FeatureFlag, {
  /** SQL: whether transfers may complete now. */
  readonly allowed: Statement.Fragment
  /** Reads `allowed`; to be called in the deciding transaction, after its locks. */
  readonly on: Effect.Effect<boolean>
}>()("bailiwick/services/transfers/Transfers/FeatureFlag") {
  static readonly layer = (enabled: boolean) =>
    Layer.effect(
      FeatureFlag,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const changes = yield* TransitionWriter
        const ids = yield* Ids
        const { lockByIds } = rows(sql)

        const extend = Effect.fnUntraced(function* (transferIds: ReadonlyArray<TransferId>, until: number) {
          const stored = yield* lockByIds(transferIds)
          const now = yield* Clock.currentTimeMillis
          const commandIds = yield* ids.batch(stored.length)
          return yield* changes.write(...stored.map((before, i) => ({
            before,
            after: Result.getOrThrow(transition(before.state, { _tag: "Extend", until }, now)),
            actor: "system",
            commandId: CommandId.make(commandIds[i]!),
            revision: null,
            now,
          })))
        })

        /** Extends one chunk of the transfers with less than an hour left; true when none is left. */
        const resume = run(
          Effect.gen(function* () {
            const [flag] = yield* sql<Flag>`select enabled, resuming_until from transfer_feature for update`
            if (flag!.enabled) return true
            const now = yield* Clock.currentTimeMillis
            const begun = flag!.resuming_until?.getTime() ?? 0
            // All chunks get the same time, in any process; unless an earlier start began long ago and did not finish.
            const until = begun > now + graceMillis / 2 ? begun : now + graceMillis
            const short = yield* sql<{ id: TransferId; domain_id: DomainId }>`
            select id::text as id, domain_id::text as domain_id from transfers
            where status = 'accepted' and cooloff_until < ${new Date(until)} order by domain_id limit ${chunk}`
            yield* sql`
            select from domains where id = any(${short.map(({ domain_id }) => domain_id)}::uuid[])
            order by id for update`
            const notices = yield* extend(short.map(({ id }) => id), until)
            const done = short.length < chunk
            yield* sql`update transfer_feature
            set enabled = ${done}, resuming_until = ${done ? null : new Date(until)}`
            yield* changes.tell(notices)
            return done
          }),
          { finds: true, faults: "transfer.clock" },
        )

        if (enabled) yield* Effect.repeat(resume, { until: (done) => done })
        else yield* sql`update transfer_feature set enabled = false, resuming_until = null`

        // Also not while the installation is paused: after a restore it is unknown which transfers were stopped.
        const allowed = enabled
          ? sql`(select f.enabled and i.state = 'open' from transfer_feature f cross join installation i)`
          : sql`false`
        return FeatureFlag.of({
          allowed,
          on: Effect.map(sql<{ allowed: boolean }>`select ${allowed} as allowed`, ([row]) => row!.allowed).pipe(
            Effect.orDie,
          ),
        })
      }),
    )
}
