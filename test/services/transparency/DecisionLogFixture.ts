/** A database and a broker with a log, decisions that are written to it, and the kit's view of what it published. */
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { CheckpointMessage, logSubject } from "../../../schemas/bus/LogMessage.ts"
import { DecisionLog } from "../../../services/transparency/DecisionLog.ts"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { type TreeHead, verifyCheckpoint } from "../../../sdk/TransparencyLog.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { vault } from "../../support/TestVault.ts"

export const origin = "log.example.org/log"

export const decisionLog = Layer.fresh(
  DecisionLog.layer(origin).pipe(
    Layer.provideMerge(Layer.merge(vault, Layer.unwrap(Effect.map(TestBus, ({ url }) => Bus.layer({ url }))))),
    Layer.provideMerge(TestBus.layer),
    Layer.provideMerge(Audit.layer),
    Layer.provideMerge(TestDatabase.layer),
  ),
)

/** Records decisions, each in a transaction of its own; returns the ids of their records. */
export const decide = Effect.fnUntraced(function* (count: number) {
  const audit = yield* Audit
  const made = Effect.map(
    run(audit.append({
      action: "service-grant.approved",
      actor: "person:ada",
      subject: `service-grant:${randomUUID()}`,
      outcome: "done",
      decision: true,
    })),
    ([id]) => id!,
  )
  return yield* Effect.all(Array.from({ length: count }, () => made), { concurrency: 4 })
})

/** Advances until there is nothing left to do. */
export const settled = Effect.flatMap(DecisionLog, ({ advance }) => Effect.repeat(advance, { while: (more) => more }))

/** Leaves that wait. */
export const waiting = Effect.flatMap(
  Database,
  ({ sql }) => Effect.map(sql`select from log_pending`, ({ length }) => length),
)

export interface EntryRow {
  readonly index: number
  readonly record_id: string
  readonly digest: Uint8Array
}

export const entries = Effect.flatMap(
  Database,
  ({ sql }) =>
    sql<EntryRow>`select index::float8 as index, record_id::text as record_id, digest from log_entries order by index`,
)

export const head = Effect.flatMap(Database, ({ sql }) =>
  Effect.map(
    sql<{ checkpoint: string | null; held_reason: string | null; size: number }>`
      select checkpoint, held_reason, size::float8 as size from log_head`,
    ([row]) => row!,
  ))

export const policy = Effect.flatMap(
  Database,
  ({ sql }) =>
    Effect.map(sql<{ key: string }>`select verifier_key as key from log_keys`, (keys) => ({
      origin,
      logKeys: keys.map(({ key }) => key),
    })),
)

/** The checkpoint that is served, verified by the kit. */
export const served: Effect.Effect<TreeHead, unknown, Database> = Effect.gen(function* () {
  const { checkpoint } = yield* head
  return verifyCheckpoint(checkpoint!, yield* policy)
})

/** All messages of the log on the broker, oldest first. */
export const published = Effect.gen(function* () {
  const found: Array<CheckpointMessage> = []
  yield* (yield* Bus).history("DECISION_LOG", 0, (messages) =>
    Effect.sync(() => {
      for (const { data, subject } of messages) {
        if (subject === logSubject) found.push(JSON.parse(new TextDecoder().decode(data)))
      }
    }))
  return found
})
