/**
 * Applies the directory: accounts, domains, people and their like, which their owner outside sends in versioned lines.
 * One applier serves all kinds.
 *
 * - A line writes only where its version is newer than the row's, so any order and any repetition of the same lines
 *   ends in the same rows: for each id the line of the highest version. A removal is such a line: it leaves a tombstone
 *   with its version (and the last fields, for rows that still refer to it), which only a newer line replaces.
 * - The feed cannot undo decisions that were made here; each kind says which columns hold them (`Kind.set`).
 * - At most 100 lines a transaction. In it, kinds go in the order of their registration, which is the global order of
 *   locks, and ids ascending. Lines of kinds with a history are applied one by one in their order, by one applier at a
 *   time in the whole installation; a line that touches several projects is a transaction of its own.
 * - A batch that is refused is halved down to the line at fault, which is rejected. Where the database does not answer
 *   the call fails, and nothing of that batch is kept.
 */
import { Array, Clock, Context, Effect, Layer, Result, Schedule, Stream } from "effect"
import { SqlError } from "effect/sql"
import { Audit } from "../platform/observability/Audit.ts"
import { lock } from "../platform/database/AdvisoryLocks.ts"
import { Database } from "../platform/database/Database.ts"
import { runOnce } from "../platform/database/UnitOfWork.ts"
import type { Guard, Kind, LineRefused, Trust } from "./Kind.ts"
import { reader, type Reason, type Rejection } from "./Lines.ts"
import { applyEach, old, written } from "./ApplyWithHistory.ts"
import { aloneIn, linesOf, type Read, runsOf } from "./BatchPlanner.ts"
import { upsert } from "./Upsert.ts"

export { LineRefused } from "./Kind.ts"
export type { DirectoryRow, Guard, History, Kind, Trust } from "./Kind.ts"
export type { Reason, Rejection } from "./Lines.ts"

export type LineResult =
  /** `setAside` names the fields that the line was not allowed to change, where it differs from the row. */
  | { readonly _tag: "applied"; readonly kind: string; readonly id: string; readonly setAside: ReadonlyArray<string> }
  /** `because`: the column that was decided here and overrides the line; null: the line is not newer than the row. */
  | { readonly _tag: "ignored"; readonly because: string | null }
  | ({ readonly _tag: "rejected" } & Rejection)

export interface FileProgress {
  readonly applied: number
  readonly ignored: number
  readonly rejected: number
}

/** A rejected line of a file, or a newer line that is ignored; `line` counts from 1. */
export interface RefusedLine {
  readonly line: number
  readonly reason: Reason | "decided_here"
  /** For an ignored line, the field that was decided here. */
  readonly detail: string
}

/** Lines of one transaction at most. */
export const batchSize = 100

const ignored: LineResult = { _tag: "ignored", because: null }
const rejected = (rejection: Rejection): LineResult => ({ _tag: "rejected", ...rejection })

const transient = new Set(["ConnectionError", "AuthenticationError", "LockTimeoutError", "StatementTimeoutError"])
const conflicts = new Set(["DeadlockError", "SerializationError", "LockTimeoutError"])

const untold = (kind: string): LineResult => rejected({ reason: "not_followed", detail: `kind ${kind}` })

const faultOf = (error: SqlError.SqlError | LineRefused): Rejection => ({
  reason: "refused",
  detail: error._tag === "LineRefused" ? error.detail : `by the database: ${error.reason._tag}`,
})

export class Directory extends Context.Service<Directory, {
  /**
   * Applies JSON texts in order; returns one result for each line. `kinds`, where given, names the kind that each line
   * must have: the broker's permissions are by subject, and the subject names the kind. `trust` is `follow` by default.
   * Fails only where the database does not answer.
   */
  readonly apply: (
    lines: ReadonlyArray<string>,
    kinds?: ReadonlyArray<string>,
    trust?: Trust,
  ) => Effect.Effect<ReadonlyArray<LineResult>, SqlError.SqlError>
  /** Applies the lines of an NDJSON file (blank lines are counted and skipped). Calls `tell` after each batch. */
  readonly applyFile: <E, R>(
    lines: Stream.Stream<string, E, R>,
    tell: (progress: FileProgress, refused: ReadonlyArray<RefusedLine>) => Effect.Effect<void>,
    trust?: Trust,
  ) => Effect.Effect<FileProgress, E | SqlError.SqlError, R>
}>()("bailiwick/services/directory/Directory") {
  /** The directory of these kinds, in the order in which their rows may be locked. */
  static readonly layer = <R>(register: Effect.Effect<ReadonlyArray<Kind>, never, R>) =>
    Layer.effect(
      Directory,
      Effect.gen(function* () {
        const database = yield* Database
        const { sql } = database
        const audit = yield* Audit
        const kinds = yield* register
        const read = reader(new Map(kinds.map((kind) => [kind.kind, kind])))

        const applyKind = Effect.fnUntraced(function* (
          kind: Kind,
          batch: ReadonlyArray<Read>,
          now: Date,
          trust: Trust,
          results: Array<LineResult>,
        ) {
          const own = linesOf(batch, kind)
          if (own.length === 0) return
          const lines = own.map(({ line }) => line)
          const guard = kind.history?.guard
          if (guard !== undefined && (trust === "none" || trust === "plain" && guard === "kind")) {
            for (const { at } of own) results[at] = untold(kind.kind)
            return
          }
          if (kind.lock !== undefined) yield* kind.lock(lines)
          const outcomes = kind.history === undefined
            ? (yield* upsert(sql, kind, lines, now)).map((newer) => newer ? written : old)
            : yield* applyEach(sql, kind, lines, now, trust === "plain" ? guard as Guard : null)
          own.forEach(({ at, line: { id } }, i) => {
            const outcome = outcomes[i]!
            if (outcome._tag === "unfollowed") results[at] = untold(kind.kind)
            if (outcome._tag === "outvoted") results[at] = { _tag: "ignored", because: outcome.by }
            if (outcome._tag !== "written") return
            results[at] = { _tag: "applied", kind: kind.kind, id, setAside: outcome.setAside }
          })
          const ids = Array.dedupe(own.flatMap(({ line }, i) => outcomes[i]!._tag === "written" ? [line.id] : []))
          if (kind.after !== undefined && ids.length > 0) yield* kind.after(ids, now)
        })

        const applyBatch = Effect.fnUntraced(function* (batch: ReadonlyArray<Read>, trust: Trust) {
          const now = new Date(yield* Clock.currentTimeMillis)
          const results = batch.map((line): LineResult => Result.isFailure(line) ? rejected(line.failure) : ignored)
          if (batch.some((line) => Result.isSuccess(line) && line.success.kind.history !== undefined)) {
            yield* lock(sql, "directoryHistory")
          }
          for (const kind of kinds) yield* applyKind(kind, batch, now, trust, results)
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
        }, (command) => Effect.provideService(runOnce(command), Database, database))

        const settle = (
          batch: ReadonlyArray<Read>,
          trust: Trust,
        ): Effect.Effect<ReadonlyArray<LineResult>, SqlError.SqlError> =>
          applyBatch(batch, trust).pipe(
            Effect.retry({
              times: 3,
              while: (error) => error._tag === "SqlError" && conflicts.has(error.reason._tag),
              schedule: Schedule.jittered(Schedule.spaced("20 millis")),
            }),
            Effect.catch((error) => {
              if (error._tag === "SqlError" && (transient.has(error.reason._tag) || conflicts.has(error.reason._tag))) {
                return Effect.fail(error)
              }
              if (batch.length === 1) return Effect.succeed([rejected(faultOf(error))])
              const half = batch.length >> 1
              return Effect.zipWith(
                settle(batch.slice(0, half), trust),
                settle(batch.slice(half), trust),
                (a, b) => [...a, ...b],
              )
            }),
          )

        /** Cuts a run into transactions: a line that may touch several projects gets one of its own. */
        const partsOf = Effect.fnUntraced(function* (run: ReadonlyArray<Read>) {
          const alone = new Set<string>()
          for (const kind of kinds) {
            const own = kind.history?.several === undefined ? [] : linesOf(run, kind)
            if (own.length < 2) continue
            const ids = yield* kind.history!.several!(own.map(({ line }) => line))
            for (const id of ids) alone.add(`${kind.kind} ${id}`)
          }
          return aloneIn(run, ({ id, kind }) => alone.has(`${kind.kind} ${id}`))
        })

        const apply = Effect.fn("Directory.apply")(
          function* (lines: ReadonlyArray<string>, expected?: ReadonlyArray<string>, trust: Trust = "follow") {
            const all = lines.map((text, i) => read(text, expected?.[i]))
            const results: Array<LineResult> = []
            for (const batch of Array.chunksOf(all, batchSize)) {
              for (const run of runsOf(batch, kinds)) {
                for (const part of yield* partsOf(run)) results.push(...(yield* settle(part, trust)))
              }
            }
            return results
          },
        )

        const applyFile: Directory["Service"]["applyFile"] = Effect.fn("Directory.applyFile")(
          function* (lines, tell, trust) {
            const total = { applied: 0, ignored: 0, rejected: 0 }
            yield* lines.pipe(
              Stream.zipWithIndex,
              Stream.filter(([text]) => text.trim() !== ""),
              Stream.grouped(batchSize),
              Stream.runForEach(Effect.fnUntraced(function* (batch) {
                const results = yield* apply(batch.map(([text]) => text), undefined, trust)
                const faulty: Array<RefusedLine> = []
                results.forEach((result, i) => {
                  total[result._tag]++
                  const line = batch[i]![1] + 1
                  if (result._tag === "rejected") faulty.push({ line, reason: result.reason, detail: result.detail })
                  if (result._tag === "ignored" && result.because !== null) {
                    faulty.push({ line, reason: "decided_here", detail: result.because })
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
