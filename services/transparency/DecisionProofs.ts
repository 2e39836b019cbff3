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

/** The id in `access-review:<id>`: the audit's index of objects has it (AuditIndexes.ts). */
const idOf = (subject: string): string => subject.split(":")[1]!

interface Found {
  readonly record_id: string
  readonly salt: Uint8Array
  readonly digest: Uint8Array
  readonly index: number | null
}

interface Head {
  readonly published_size: number
  readonly checkpoint: string
}

export class DecisionProofs extends Context.Service<DecisionProofs, {
  /** The proof of the decision that has this audit record; null where the log has no such decision. */
  readonly of: (recordId: string) => Effect.Effect<DecisionProof | null, SqlError.SqlError>
  /**
   * The proofs of an institution's decisions on these objects (`access-review:<id>`) before `until`, in the order of their
   * records; those whose record the audit keeps no more are left out.
   */
  readonly about: (
    institutionId: string,
    subjects: ReadonlyArray<string>,
    until: Date,
  ) => Effect.Effect<ReadonlyArray<DecisionProof & { readonly record: AuditRecord }>, SqlError.SqlError>
  /**
   * The proofs of decisions on these objects, at most `limit`, the newest first, from before the record `beforeId` on;
   * those whose record the audit keeps no more are left out.
   */
  readonly newest: (
    subjects: ReadonlyArray<string>,
    limit: number,
    beforeId: string | null,
  ) => Effect.Effect<ReadonlyArray<DecisionProof & { readonly record: AuditRecord }>, SqlError.SqlError>
}>()("bailiwick/services/transparency/DecisionProofs") {
  static readonly layer = Layer.effect(
    DecisionProofs,
    Effect.gen(function* () {
      const { sql } = yield* Database

      const leavesOf = (recordIds: ReadonlyArray<string>) =>
        sql<Found>`
          select record_id::text as record_id, salt, digest, index::float8 as index from log_entries
          where record_id = any(${[...recordIds]}::uuid[])
          union all
          select record_id::text, salt, digest, null from log_pending where record_id = any(${[...recordIds]}::uuid[])`

      const recordOf = (recordId: string) =>
        Effect.map(
          sql<AuditRecord>`
            select id::text as id, at, request_id, route, action, actor, subject, outcome, status, code, details
            from audit_records where id = ${recordId}::uuid`,
          ([row]) => row ?? null,
        )

      const recordsAbout = (institutionId: string, subjects: ReadonlyArray<string>, until: Date) =>
        sql<AuditRecord>`
          select id::text as id, at, request_id, route, action, actor, subject, outcome, status, code, details
          from audit_records
          where subject is not null and split_part(subject, ':', 2) = any(${subjects.map(idOf)}::text[])
            and subject = any(${[...subjects]}::text[]) and outcome = 'done' and at < ${until}
            and coalesce(details->>'institution', ${institutionId}) = ${institutionId}
          order by id`

      const newestRecords = (subjects: ReadonlyArray<string>, limit: number, beforeId: string | null) =>
        sql<AuditRecord>`
          select id::text as id, at, request_id, route, action, actor, subject, outcome, status, code, details
          from audit_records r
          where subject is not null and split_part(subject, ':', 2) = any(${subjects.map(idOf)}::text[])
            and subject = any(${[...subjects]}::text[]) and outcome = 'done'
            and (${beforeId}::uuid is null or id < ${beforeId}::uuid)
            and (exists (select from log_entries e where e.record_id = r.id)
              or exists (select from log_pending p where p.record_id = r.id))
          order by id desc limit ${limit}`

      const published = Effect.map(
        sql<Head>`
          select published_size::float8 as published_size, checkpoint from log_head
          where held_reason is null and published_size is not null and checkpoint is not null`,
        ([row]) => row ?? null,
      )

      /** The proofs of leaves, in their order; null for those that no checkpoint has. */
      const proving = Effect.fnUntraced(function* (leaves: ReadonlyArray<Found>) {
        const head = yield* published
        const cosigned = head === null ? null : yield* readCosigned(sql)
        const ways = leaves.map(({ index }) => {
          if (head === null || index === null || index >= head.published_size) return null
          const { checkpoint, size } = cosigned !== null && index < cosigned.size
            ? cosigned
            : { size: head.published_size, checkpoint: head.checkpoint }
          return { index, checkpoint, size, steps: inclusionSteps(index, size) }
        })
        const made: Array<DecisionProof["proved"]> = leaves.map(() => null)
        const sizes = new Set(ways.flatMap((way) => way === null ? [] : [way.size]))
        for (const size of sizes) {
          const ofSize = ways.flatMap((way, n) => way?.size === size ? [{ ...way, n }] : [])
          const hashes = yield* readSteps(sql, ofSize.flatMap(({ steps }) => steps), size)
          let from = 0
          for (const { checkpoint, index, n, steps } of ofSize) {
            const proof = hashes.slice(from, from += steps.length)
            made[n] = { index, proof: inclusionNote({ index, proof, checkpoint }) }
          }
        }
        return made
      })

      const of = Effect.fn("DecisionProofs.of")(function* (recordId: string) {
        const [leaf] = yield* leavesOf([recordId])
        if (leaf === undefined) return null
        const [proved] = yield* proving([leaf])
        return { record: yield* recordOf(recordId), salt: leaf.salt, entry: leaf.digest, proved: proved ?? null }
      })

      /** The proofs of decisions by their records, in their order; records that are no decision are left out. */
      const ofRecords = Effect.fnUntraced(function* (records: ReadonlyArray<AuditRecord>) {
        const leaves = new Map(
          (yield* leavesOf(records.map(({ id }) => id))).map((leaf) => [leaf.record_id, leaf]),
        )
        const decisions = records.flatMap((record) => {
          const leaf = leaves.get(record.id)
          return leaf === undefined ? [] : [{ record, leaf }]
        })
        const proofs = yield* proving(decisions.map(({ leaf }) => leaf))
        return decisions.map(({ leaf, record }, n) => ({
          record,
          salt: leaf.salt,
          entry: leaf.digest,
          proved: proofs[n] ?? null,
        }))
      })

      const about = Effect.fn("DecisionProofs.about")(function* (
        institutionId: string,
        subjects: ReadonlyArray<string>,
        until: Date,
      ) {
        return yield* ofRecords(yield* recordsAbout(institutionId, subjects, until))
      })

      const newest = Effect.fn("DecisionProofs.newest")(function* (
        subjects: ReadonlyArray<string>,
        limit: number,
        beforeId: string | null,
      ) {
        return subjects.length === 0 ? [] : yield* ofRecords(yield* newestRecords(subjects, limit, beforeId))
      })

      return DecisionProofs.of({ of, about, newest })
    }),
  )
}
