/**
 * The directory: one applier over a table of kinds, for what the platform around us tells in versioned lines.
 *
 * - A line writes only where its version is newer than the row's, so any order and any repetition of the same lines
 *   ends in the same rows: for each id the line of the highest version. A removal is such a line: it leaves a tombstone
 *   with its version (and the last fields, for what still refers to them), and only a newer line speaks after it.
 * - What we decided ourselves is not the feed's to undo; each kind says which columns those are (`Kind.set`).
 * - At most 100 lines a transaction. Within one, kinds go in the order of their registration, which is the global order
 *   of locks, and ids ascending. A batch that PostgreSQL refuses is halved down to the line at fault, which is rejected;
 *   a database that does not answer fails the call and nothing of that batch stays.
 */
import { Array, Clock, Context, Effect, Layer, Result, Schedule, Stream } from "effect"
import { SqlError } from "effect/sql"
import { Audit } from "../platform/Audit.ts"
import { Database } from "../platform/Database.ts"
import type { Kind } from "./Kind.ts"
import { type Line, reader, type Rejection } from "./Lines.ts"
import { upsert } from "./Upsert.ts"

export type { Kind } from "./Kind.ts"
export type { Reason, Rejection } from "./Lines.ts"

export type LineResult =
  | { readonly _tag: "applied"; readonly kind: string; readonly id: string }
  | { readonly _tag: "ignored" }
  | ({ readonly _tag: "rejected" } & Rejection)

export interface FileProgress {
  readonly applied: number
  readonly ignored: number
  readonly rejected: number
}

/** A rejected line of a file; `line` counts from 1. */
export interface RejectedLine extends Rejection {
  readonly line: number
}

/** Lines of one transaction at most. */
export const batchSize = 100

type Read = Result.Result<Line, Rejection>
const ignored: LineResult = { _tag: "ignored" }
const rejected = (rejection: Rejection): LineResult => ({ _tag: "rejected", ...rejection })

const transient = new Set(["ConnectionError", "AuthenticationError", "LockTimeoutError", "StatementTimeoutError"])
const conflicts = new Set(["DeadlockError", "SerializationError"])

export class Directory extends Context.Service<Directory, {
  /**
   * Applies JSON texts in order and gives one result a line. `kinds`, where given, names the kind that each line must be
   * of: who may publish what is decided by subject. Fails only where the database does not answer.
   */
  readonly apply: (
    lines: ReadonlyArray<string>,
    kinds?: ReadonlyArray<string>,
  ) => Effect.Effect<ReadonlyArray<LineResult>, SqlError.SqlError>
  /** Applies an NDJSON file's lines (blank ones count as lines and are passed over). `tell` hears of each transaction. */
  readonly applyFile: <E, R>(
    lines: Stream.Stream<string, E, R>,
    tell: (progress: FileProgress, rejected: ReadonlyArray<RejectedLine>) => Effect.Effect<void>,
  ) => Effect.Effect<FileProgress, E | SqlError.SqlError, R>
}>()("bailiwick/services/directory/Directory") {
  /** The directory of these kinds, in the order in which their rows may be locked. */
  static readonly layer = <R>(register: Effect.Effect<ReadonlyArray<Kind>, never, R>) =>
    Layer.effect(
      Directory,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const audit = yield* Audit
        const kinds = yield* register
        const read = reader(new Map(kinds.map((kind) => [kind.kind, kind])))

        const transact = Effect.fnUntraced(function* (batch: ReadonlyArray<Read>) {
          const now = new Date(yield* Clock.currentTimeMillis)
          const results = batch.map((line): LineResult => Result.isFailure(line) ? rejected(line.failure) : ignored)
          for (const kind of kinds) {
            const own = batch.flatMap((line, at) =>
              Result.isSuccess(line) && line.success.kind === kind ? [{ at, line: line.success }] : []
            )
            if (!Array.isReadonlyArrayNonEmpty(own)) continue
            const written = yield* upsert(sql, kind, own.map(({ line }) => line), now)
            own.forEach(({ at, line }, i) => {
              if (written[i]) results[at] = { _tag: "applied", kind: kind.kind, id: line.id }
            })
            const ids = Array.dedupe(own.flatMap(({ line }, i) => written[i] ? [line.id] : []))
            if (kind.after !== undefined && ids.length > 0) yield* kind.after(ids, now)
          }
          const applied = results.filter(({ _tag }) => _tag === "applied").length
          if (applied > 0) {
            yield* audit.append({
              action: "directory.applied",
              actor: "system",
              subject: null,
              outcome: "done",
              details: { lines: batch.length, applied },
            })
          }
          return results
        }, sql.withTransaction)

        const settle = (batch: ReadonlyArray<Read>): Effect.Effect<ReadonlyArray<LineResult>, SqlError.SqlError> =>
          transact(batch).pipe(
            Effect.retry({
              times: 3,
              while: (error) => conflicts.has(error.reason._tag),
              schedule: Schedule.jittered(Schedule.spaced("20 millis")),
            }),
            Effect.catch((error) => {
              if (transient.has(error.reason._tag) || conflicts.has(error.reason._tag)) return Effect.fail(error)
              if (batch.length === 1) {
                return Effect.succeed([
                  rejected({ reason: "refused", detail: `by the database: ${error.reason._tag}` }),
                ])
              }
              const half = batch.length >> 1
              return Effect.zipWith(settle(batch.slice(0, half)), settle(batch.slice(half)), (a, b) => [...a, ...b])
            }),
          )

        const apply = Effect.fn("Directory.apply")(
          function* (lines: ReadonlyArray<string>, expected?: ReadonlyArray<string>) {
            const all = lines.map((text, i) => read(text, expected?.[i]))
            const results: Array<LineResult> = []
            for (const batch of Array.chunksOf(all, batchSize)) results.push(...(yield* settle(batch)))
            return results
          },
        )

        const applyFile: Directory["Service"]["applyFile"] = Effect.fn("Directory.applyFile")(
          function* (lines, tell) {
            const total = { applied: 0, ignored: 0, rejected: 0 }
            yield* lines.pipe(
              Stream.zipWithIndex,
              Stream.filter(([text]) => text.trim() !== ""),
              Stream.grouped(batchSize),
              Stream.runForEach(Effect.fnUntraced(function* (batch) {
                const results = yield* apply(batch.map(([text]) => text))
                const faulty: Array<RejectedLine> = []
                results.forEach((result, i) => {
                  total[result._tag]++
                  if (result._tag === "rejected") {
                    faulty.push({ line: batch[i]![1] + 1, reason: result.reason, detail: result.detail })
                  }
                })
                yield* tell({ ...total }, faulty)
              })),
            )
            return total
          },
        )

        return Directory.of({ apply, applyFile })
      }),
    )
}
