/**
 * Work too long for a request, in chunks: each chunk is a transaction of its own that also moves the job's cursor, so a
 * job that is killed goes on where its last chunk committed. A failing job backs off alone. A chunk runs under its claim
 * alone: where its lease ended while others of its batch took their time, it is left to whoever claims it next.
 */
import { Cause, Clock, Context, Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import { Bells } from "./Bells.ts"
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
import { reasonOf } from "../database/SqlFaults.ts"

/** A kind of job: its name and the shape of its arguments, which are JSON. */
export interface JobKind<Args> {
  readonly kind: string
  readonly _args?: (args: Args) => void
}

/** What a chunk did. `next` null: the job is done; else go on from there, no earlier than `afterMillis` from now. */
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
/** How long it can be seen that a job was done. */
const keptMillis = 30 * 24 * 3_600_000
/** By one statement. */
const forgotten = 1_000

/** A defect is the job's own, too: it must not hold up those that were claimed beside it. */
const whyOf = (cause: Cause.Cause<SqlError.SqlError>): string => {
  const error = Cause.squash(cause)
  if (SqlError.isSqlError(error)) return reasonOf(error)
  return error instanceof Error ? error.message : String(error)
}

export class Jobs extends Context.Service<Jobs, {
  /** Adds a job in the current transaction. */
  readonly add: <Args>(kind: JobKind<Args>, args: Args) => Effect.Effect<string, SqlError.SqlError>
  /** Does one chunk of each due job whose kind is known here; gives whether there may be more. */
  readonly work: (workers: ReadonlyArray<JobWorker>) => Effect.Effect<boolean, SqlError.SqlError>
  readonly free: Effect.Effect<void, SqlError.SqlError>
  /** Deletes the jobs that were done more than 30 days ago; gives how many. */
  readonly prune: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/platform/messaging/Jobs") {
  static readonly layer = Layer.effect(
    Jobs,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const bells = yield* Bells

      const add = Effect.fnUntraced(function* <Args>(kind: JobKind<Args>, args: Args) {
        const id = yield* (yield* Ids).next
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`insert into jobs (id, kind, args, created_at, not_before)
          values (${id}::uuid, ${kind.kind}, ${sql.json(args)}, ${now}, ${now})`
        yield* sql.afterCommit(bells.ring(jobsTopic))
        return id
      })

      const step = Effect.fnUntraced(function* (job: JobRow & { readonly claim: bigint }, worker: JobWorker) {
        // Locked to the chunk's end, so that nobody frees it meanwhile; whose turn came after its lease has none.
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

      const prune = Effect.gen(function* () {
        // Who was done is due no more: it says when that was.
        const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
        let gone = 0
        let found = forgotten
        while (found === forgotten) {
          const rows = yield* sql`
            delete from jobs where id in (
              select id from jobs where state = 'effective' and not_before < ${before} limit ${forgotten}
              for update skip locked
            ) returning 1`
          found = rows.length
          gone += found
        }
        return gone
      })

      return Jobs.of({ add, work, free: Effect.asVoid(freeExpired(sql, table)), prune })
    }),
  )
}
