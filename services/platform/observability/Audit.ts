/**
 * The audit: one row for every change and for every failed request, which `cli audit` finds by `X-Request-ID`. An id
 * that the client chose is marked as such (CurrentRequest).
 *
 * Redacted by construction: an entry holds names of actions, typed ids and codes. There is no member for a body, a
 * header, a token or a whole address (refusals name its network), and `details` takes only scalars that the caller
 * names one by one.
 * `append` runs in the caller's transaction where there is one, so an audited change and its record commit together. The
 * record of a decision is written with a leaf of the transparency log, by the same statement.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { CurrentRequest } from "./CurrentRequest.ts"
import { Database } from "../database/Database.ts"
import { insertion, type Kind, write } from "../database/UnitOfWork.ts"
import { Ids } from "../Ids.ts"
import { type EvidenceRecord, leafOf } from "./DecisionLeaf.ts"

export interface AuditEntry {
  /** The action that was done or tried, `noun.verb`: `api-key.created`, `request.failed`. */
  readonly action: string
  /** The actor: `account:<id>`, `service:<id>`, `system`, or null where no caller was recognised. */
  readonly actor: string | null
  /** The object of the action: `webhook:<id>`. */
  readonly subject: string | null
  readonly outcome: "done" | "refused" | "failed"
  readonly status?: number
  readonly code?: string
  readonly details?: Readonly<Record<string, string | number | boolean | null>>
  /** The record is a decision's: it gets a leaf in the transparency log (docs/transparency.md). */
  readonly decision?: boolean
}

interface Recorded {
  readonly record: EvidenceRecord
  readonly decision: boolean
}

/** Records, and the leaves of those that are decisions. */
const recordsAndLeaves = (sql: PgClient.PgClient): Kind<Recorded> => {
  const records = insertion(sql, "audit_records", {
    id: "uuid",
    at: "timestamptz",
    request_id: "text",
    route: "text",
    action: "text",
    actor: "text",
    subject: "text",
    outcome: "text",
    status: "integer",
    code: "text",
    details: "jsonb",
  })
  const leaves = insertion(sql, "log_pending", {
    record_id: "uuid",
    decided_at: "timestamptz",
    salt: "bytea",
    digest: "bytea",
  })
  return {
    name: records.name,
    parts: (items) => {
      const decided = items.filter(({ decision }) => decision).map(({ record }) => leafOf(record))
      return [
        ...records.parts(Array.map(items, ({ record }) => record)),
        ...(Array.isArrayNonEmpty(decided) ? leaves.parts(decided) : []),
      ]
    },
  }
}

export class Audit extends Context.Service<Audit, {
  /** Writes the entries in the current transaction (UnitOfWork.ts); returns their ids in order. */
  readonly append: (...entries: ReadonlyArray<AuditEntry>) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
}>()("bailiwick/services/platform/observability/Audit") {
  static readonly layer = Layer.effect(
    Audit,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const records = recordsAndLeaves(sql)
      const append = Effect.fnUntraced(function* (...entries: ReadonlyArray<AuditEntry>) {
        const ids = yield* (yield* Ids).batch(entries.length)
        const now = new Date(yield* Clock.currentTimeMillis).toISOString()
        const { requestId, route } = yield* CurrentRequest
        if (entries.length === 0) return ids
        const rows = entries.map((entry, i) => ({
          decision: entry.decision ?? false,
          record: {
            id: ids[i]!,
            at: now,
            request_id: requestId,
            route,
            action: entry.action,
            actor: entry.actor,
            subject: entry.subject,
            outcome: entry.outcome,
            status: entry.status ?? null,
            code: entry.code ?? null,
            details: entry.details ?? {},
          },
        }))
        yield* write(sql, records, rows)
        return ids
      })
      return Audit.of({ append })
    }),
  )
}
