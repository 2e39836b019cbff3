/** Proofs that decisions are in the log, each with the parts of its entry (docs/transparency.md). */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../platform/database/Database.ts"
import type { AuditRecord } from "../platform/observability/AuditRecord.ts"
import { readCosigned, readSteps } from "./DecisionLog/StoredLog.ts"
import { inclusionNote } from "./InclusionNote.ts"
import { inclusionSteps } from "./MerkleTree.ts"

export interface DecisionProof {
  /** Null where the audit keeps it no more. */
  readonly record: AuditRecord | null
  readonly salt: Uint8Array
  readonly entry: Uint8Array
  /** Null while the entry is in no published checkpoint, or the log is held. */
  readonly proved: { readonly index: number; readonly proof: string } | null
}

interface Found {
  readonly salt: Uint8Array
  readonly digest: Uint8Array
  readonly index: number | null
  readonly published_size: number | null
  readonly checkpoint: string | null
}

export class DecisionProofs extends Context.Service<DecisionProofs, {
  /** The proof of the decision that has this audit record; null where the log has no such decision. */
  readonly of: (recordId: string) => Effect.Effect<DecisionProof | null, SqlError.SqlError>
}>()("bailiwick/services/transparency/DecisionProofs") {
  static readonly layer = Layer.effect(
    DecisionProofs,
    Effect.gen(function* () {
      const { sql } = yield* Database

      const find = (recordId: string) =>
        Effect.map(
          sql<Found>`
            select l.salt, l.digest, l.index, h.published_size::float8 as published_size, h.checkpoint from (
              select salt, digest, index::float8 as index from log_entries where record_id = ${recordId}::uuid
              union all select salt, digest, null from log_pending where record_id = ${recordId}::uuid
            ) l left join log_head h on h.held_reason is null`,
          ([row]) => row ?? null,
        )

      const recordOf = (recordId: string) =>
        Effect.map(
          sql<AuditRecord>`
            select id::text as id, at, request_id, route, action, actor, subject, outcome, status, code, details
            from audit_records where id = ${recordId}::uuid`,
          ([row]) => row ?? null,
        )

      const of = Effect.fn("DecisionProofs.of")(function* (recordId: string) {
        const found = yield* find(recordId)
        if (found === null) return null
        const { checkpoint, digest: entry, index, published_size: size, salt } = found
        const record = yield* recordOf(recordId)
        if (index === null || size === null || checkpoint === null || index >= size) {
          return { record, salt, entry, proved: null } satisfies DecisionProof
        }
        const cosigned = yield* readCosigned(sql)
        const by = cosigned !== null && index < cosigned.size ? cosigned : { size, checkpoint }
        const hashes = yield* readSteps(sql, inclusionSteps(index, by.size), by.size)
        const proof = inclusionNote({ index, proof: hashes, checkpoint: by.checkpoint })
        return { record, salt, entry, proved: { index, proof } } satisfies DecisionProof
      })

      return DecisionProofs.of({ of })
    }),
  )
}
