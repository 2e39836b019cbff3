/**
 * Jobs: work too long for a request, in chunks. Each chunk is a transaction of its own that also moves the job's
 * cursor, so a killed job goes on where its last chunk committed. A failing job backs off alone. A chunk runs only
 * under its claim: where the lease ended while other jobs of the batch took long, the job is left to the next claim.
 */
import { Cause, Clock, Context, Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import { WakeUps } from "./WakeUps.ts"
import { Database } from "../database/Database.ts"
import { Ids } from "../Ids.ts"
import {
  backoffMillis,
  claimDue,
  claimed,
  freeExpired,
  type LeasedTable,
  release,
  settleFailed,
} from "../database/Leases.ts"
import { prune } from "../database/Prune.ts"
import { reasonOf } from "../database/SqlErrors.ts"

/** A kind of job: its name and the shape of its arguments, which are JSON. */
export interface JobKind<Args> {
  readonly kind: string
  readonly _args?: (args: Args) => void
}

/** The result of a chunk. `next` null: the job is done; else it goes on from there, after `afterMillis`. */
export interface Chunk {
  readonly done: number
  readonly next: { readonly cursor: unknown; readonly afterMillis?: number } | null
}

export interface JobWorker {
  readonly kind: string
  /** Does the next chunk in the current transaction; `cursor` is null at first. */
  readonly chunk: (args: unknown, cursor: unknown) => Effect.Effect<Chunk, SqlError.SqlError>
}

/** Pairs a kind with its worker. */
export const worker = <Args>(
  kind: JobKind<Args>,
  chunk: (args: Args, cursor: unknown) => Effect.Effect<Chunk, SqlError.SqlError>,
): JobWorker => ({ kind: kind.kind, chunk: (args, cursor) => chunk(args as Args, cursor) })

interface JobRow {
  readonly id: string
  readonly kind: string
  readonly args: unknown
  readonly cursor: unknown
  readonly attempts: number
}

export const jobsTopic = "jobs"

const table: LeasedTable = { table: "jobs", key: "id", keyType: "uuid" }
const leaseMillis = 20_000
/** How long finished jobs are kept. */
const keptMillis = 30 * 24 * 3_600_000
/** Rows that one statement deletes. */
const forgotten = 1_000

/** The reason why a job failed. A defect counts as well: it must not hold up the other jobs of the claim. */
const whyOf = (cause: Cause.Cause<SqlError.SqlError>): string => {
  const error = Cause.squash(cause)
  if (SqlError.isSqlError(error)) return reasonOf(error)
  return error instanceof Error ? error.message : String(error)
}

export class Jobs extends Context.Service<Jobs, {
  /** Adds a job in the current transaction. */
  readonly add: <Args>(kind: JobKind<Args>, args: Args) => Effect.Effect<string, SqlError.SqlError>
  /** Does one chunk of each due job whose kind is known here; returns whether there may be more. */
  readonly work: (workers: ReadonlyArray<JobWorker>) => Effect.Effect<boolean, SqlError.SqlError>
  readonly free: Effect.Effect<void, SqlError.SqlError>
  /** Deletes jobs that were done more than 30 days ago; returns how many. */
  readonly prune: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/platform/messaging/Jobs") {
  static readonly layer = Layer.effect(
    Jobs,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const wakeUps = yield* WakeUps

      const add = Effect.fnUntraced(function* <Args>(kind: JobKind<Args>, args: Args) {
        const id = yield* (yield* Ids).next
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`insert into jobs (id, kind, args, created_at, not_before)
          values (${id}::uuid, ${kind.kind}, ${sql.json(args)}, ${now}, ${now})`
        yield* sql.afterCommit(wakeUps.notify(jobsTopic))
        return id
      })

      const step = Effect.fnUntraced(function* (job: JobRow & { readonly claim: bigint }, worker: JobWorker) {
        // Locked to the chunk's end, so that no process frees the claim meanwhile; no row where the claim is lost.
        const own = yield* sql`select from jobs where id = ${job.id}::uuid and claim = ${job.claim} for update`
        if (own.length === 0) return
        const { done, next } = yield* worker.chunk(job.args, job.cursor)
        const due = new Date((yield* Clock.currentTimeMillis) + (next?.afterMillis ?? 0))
        yield* sql`
          update jobs set done = done + ${done}, cursor = ${sql.json(next?.cursor ?? null)}, claim = null,
            lease_until = null, attempts = 0, last_error = null, not_before = ${due},
            state = ${next === null ? "effective" : "pending"}
          where id = ${job.id}::uuid and claim = ${job.claim}`
      }, sql.withTransaction)

      const batch = Effect.fnUntraced(function* (
        due: ReadonlyArray<JobRow & { readonly claim: bigint }>,
        known: ReadonlyMap<string, JobWorker>,
      ) {
        for (const job of due) {
          yield* step(job, known.get(job.kind)!).pipe(
            Effect.catchCause((cause) =>
              Cause.hasInterruptsOnly(cause) ? Effect.failCause(cause) : settleFailed(sql, table, job.claim, [
                { key: job.id, afterMillis: backoffMillis(job.attempts), error: whyOf(cause) },
              ])
            ),
          )
        }
        return due.length > 0
      })

      // A stop rolls back the chunk that it cuts off.
      const work = (workers: ReadonlyArray<JobWorker>) => {
        const known = new Map(workers.map((w) => [w.kind, w]))
        return claimed({
          claim: claimDue<JobRow>(sql, table, {
            leaseMillis,
            limit: 10,
            also: sql`and t.state = 'pending' and t.kind = any(${[...known.keys()]}::text[])`,
          }),
          work: (due) => batch(due, known),
          giveBack: ([first]) => first === undefined ? Effect.void : release(sql, table, first.claim),
        })
      }

      const pruneDone = Effect.gen(function* () {
        // `not_before` of a finished job is the time at which it was done.
        const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
        const where = sql`state = 'effective' and not_before < ${before}`
        return yield* prune(sql, { table: "jobs", where, order: "not_before", batch: forgotten })
      })

      return Jobs.of({ add, work, free: Effect.asVoid(freeExpired(sql, table)), prune: pruneDone })
    }),
  )
}
