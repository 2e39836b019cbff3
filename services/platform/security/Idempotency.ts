/**
 * Idempotency receipts: a request with an idempotency key is done once and answered the same each time
 * (docs/api/identity.md).
 *
 * The receipt is the first row of the transaction that does the work, or a row of the one statement that writes it, and
 * commits with it, so a crash leaves both or neither. Only a request that was done has a receipt: a refused request may
 * be tried again with the same key. A second request with the key of a request under way waits for that one, in the
 * same process before it takes a connection, otherwise at the row; after two seconds it is answered with
 * IdempotencyInProgress. A replay checks no rights and sends nothing again.
 */
import { Clock, Context, Effect, Layer, Redacted, Semaphore } from "effect"
import { SqlError } from "effect/sql"
import { Buffer } from "node:buffer"
import { createHmac, timingSafeEqual } from "node:crypto"
import type { PendingReceipt } from "../../../schemas/identity/PendingReceipt.ts"
import { IdempotencyInProgress, IdempotencyKeyReused } from "../../../schemas/problems/IdempotencyProblems.ts"
import { canonical } from "./CanonicalJson.ts"
import { Database } from "../database/Database.ts"
import { faultPoint } from "../Failpoints.ts"
import { type Admission, fence, type Fenced, fenced, NotAdmitted } from "../database/FencedCommand.ts"
import { counted } from "../MapSizes.ts"
import { waitedFor } from "../database/SqlErrors.ts"
import { type InTransaction, type Kind, type Repeatedly, run, type UnitOfWork, write } from "../database/UnitOfWork.ts"
import { receiptFence } from "./ReceiptFence.ts"
import { Vault } from "./Vault.ts"

const purpose = "idempotency"
const patienceMillis = 2_000
/**
 * A request that waited for less has only the database's lock timeout of 2 s; after a longer wait it gets what is left.
 */
const briefMillis = 100
const momentMillis = 250

/** The parts of a request by which two requests are the same. */
export interface Asked {
  /** `person:<id>`, or a service's issuer and client: never a token's subject, which may change hands. */
  readonly principal: string
  readonly method: string
  /** The route with its decoded ids filled in, however the client spelled it. */
  readonly path: string
  /** Null: no receipt; only the state protects from a repetition. */
  readonly key: string | null
  /** The body as it was sent, parsed; undefined where there was none. */
  readonly body: unknown
  readonly ifMatch?: string | undefined
  readonly portalBinding?: string | undefined
  /**
   * Whether the command is decided only: what it wrote is taken back, its key is not used, and the answer is a 204
   * without a body.
   */
  readonly dryRun?: boolean | undefined
}

/** How a result is answered. `keep` makes the receipt's body where that must hold less than the answer. */
export interface AnswerForm<A> {
  readonly status: number | ((result: A) => number)
  readonly encode: (result: A) => string
  readonly keep?: (result: A) => string
}

export interface Answer {
  readonly status: number
  readonly body: string
  readonly replayed: boolean
}

interface Kept {
  readonly receipt_fingerprint: Uint8Array
  readonly receipt_kid: string
  readonly receipt_status: number
  readonly receipt_body: string
}

/** Takes a transaction back whose command was only to be decided. */
class DryRunDone {
  readonly _tag = "DryRunDone"
}

const dryRunAnswer: Answer = { status: 204, body: "", replayed: false }

/** The answer of an admission that found a receipt: the command was decided before. */
class Known {
  readonly row: Kept
  constructor(row: Kept) {
    this.row = row
  }
}

/** Makes SQL errors defects, as `run` of UnitOfWork.ts does. */
const sqlDies = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, SqlError.SqlError>, R> =>
  Effect.catch(
    effect,
    (error) => SqlError.isSqlError(error) ? Effect.die(error) : Effect.fail(error as Exclude<E, SqlError.SqlError>),
  )

const inProgress = Effect.fail(new IdempotencyInProgress({ retry_after: 1 }))

export class Idempotency extends Context.Service<Idempotency, {
  /**
   * Runs `command` in a transaction, once for each key; returns its answer. Fails as the command fails;
   * IdempotencyKeyReused where the key came with another request; IdempotencyInProgress after 2 s of waiting. Rows that
   * the command only adds are gathered and written with the receipt, at its end (UnitOfWork.ts).
   */
  readonly run: <A, E, R>(
    asked: Asked,
    form: AnswerForm<A>,
    command: Effect.Effect<A, E, R>,
  ) => Effect.Effect<
    Answer,
    Repeatedly<E> | IdempotencyKeyReused | IdempotencyInProgress,
    Exclude<R, InTransaction>
  >
  /**
   * The same for a command of two round trips (FencedCommand.ts), which has no transaction before its write: its load
   * looks for the receipt, and its write inserts it. `turn` names what such commands lose races about; by default the
   * path.
   */
  readonly fenced: <A, E, R, F = never>(
    asked: Asked & Partial<Fenced<F>>,
    form: AnswerForm<A>,
    command: Effect.Effect<A, E, R>,
  ) => Effect.Effect<
    Answer,
    Repeatedly<E | F> | NotAdmitted | IdempotencyKeyReused | IdempotencyInProgress,
    Exclude<R, UnitOfWork>
  >
  /**
   * The same for a command that first has to ask another system, outside any transaction: `asking` returns the command,
   * and does not run where there is a receipt already.
   */
  readonly runAfter: <A, E, R, E2, R2>(
    asked: Asked,
    form: AnswerForm<A>,
    asking: Effect.Effect<Effect.Effect<A, E, R>, E2, R2>,
  ) => Effect.Effect<
    Answer,
    Repeatedly<E> | Exclude<E2, SqlError.SqlError> | IdempotencyKeyReused | IdempotencyInProgress,
    Exclude<R, InTransaction> | R2
  >
  /**
   * The same for a command that an actor runs, maybe in another process: `command` hands the receipt on to the statement
   * that writes its result (ReceiptFence.ts); null where there is no key. A command that fails because another one with
   * its key was done meanwhile is answered as a repetition.
   */
  readonly handedOn: <A, E, R>(
    asked: Asked,
    form: AnswerForm<A> & { readonly status: number },
    command: (receipt: PendingReceipt | null) => Effect.Effect<A, E, R>,
  ) => Effect.Effect<Answer, E | IdempotencyKeyReused | IdempotencyInProgress, R>
}>()("bailiwick/services/platform/security/Idempotency") {
  static readonly layer = Layer.effect(
    Idempotency,
    Effect.gen(function* () {
      const database = yield* Database
      const vault = yield* Vault
      const { sql } = database
      const flights = new Map<string, { readonly one: Semaphore.Semaphore; waiting: number }>()
      yield* counted("idempotency keys in flight", () => flights.size)

      const fingerprint = ({ body, ifMatch, method, path, portalBinding }: Asked, kid?: string) => {
        const key = vault.derive(purpose, kid)
        const text = canonical([method, path, body ?? null, ifMatch ?? null, portalBinding ?? null])
        return {
          kid: key.kid,
          hash: new Uint8Array(createHmac("sha256", Redacted.value(key.key)).update(text).digest()),
        }
      }

      /** Runs `effect` once no other request with the key runs in this process; tells it how long it waited. */
      const alone = <A, E, R>(asked: Asked, effect: (waited: number) => Effect.Effect<A, E, R>) =>
        Effect.flatMap(Clock.currentTimeMillis, (began) => {
          const name = JSON.stringify([asked.principal, asked.method, asked.path, asked.key])
          const enter = Effect.sync(() => {
            const flight = flights.get(name) ?? { one: Semaphore.makeUnsafe(1), waiting: 0 }
            flights.set(name, flight)
            flight.waiting++
            return flight
          })
          const use = Effect.flatMap(Clock.currentTimeMillis, (now) => effect(now - began))
          return Effect.acquireUseRelease(enter, ({ one }) => {
            const turn = Effect.timeoutOrElse(one.take(1), { duration: patienceMillis, orElse: () => inProgress })
            return Effect.acquireUseRelease(turn, () => use, () => one.release(1))
          }, (flight) =>
            Effect.sync(() => {
              if (--flight.waiting === 0) flights.delete(name)
            }))
        })

      const open = Effect.fnUntraced(function* (asked: Asked, waited: number) {
        const { hash, kid } = fingerprint(asked)
        const now = new Date(yield* Clock.currentTimeMillis)
        const begun = sql<{ one: number }>`
          insert into idempotency_receipts (principal, method, path, key, fingerprint, kid, created_at)
          values (${asked.principal}, ${asked.method}, ${asked.path}, ${asked.key}, ${hash}, ${kid}, ${now})
          on conflict do nothing returning 1 as one`.pipe(
          Effect.catchReason("SqlError", "LockTimeoutError", () => inProgress),
        )
        const duration = Math.max(patienceMillis - waited, momentMillis)
        const [made] = yield* waited < briefMillis
          ? begun
          : Effect.timeoutOrElse(begun, { duration, orElse: () => inProgress })
        return made !== undefined
      })

      /** Completes the receipt, in the one statement before COMMIT that also writes the command's gathered rows. */
      const closing: Kind<{ readonly asked: Asked; readonly status: number; readonly kept: string }> = {
        name: "idempotency_receipts",
        parts: ([{ asked, kept, status }]) => [{
          name: "closed_receipt",
          statement: sql`
            update idempotency_receipts set status = ${status}, body = ${kept}
            where principal = ${asked.principal} and method = ${asked.method} and path = ${asked.path}
              and key = ${asked.key}`,
        }],
      }

      const kept = (asked: Asked) =>
        sql`select fingerprint as receipt_fingerprint, kid as receipt_kid, status as receipt_status, body as receipt_body
          from idempotency_receipts
          where principal = ${asked.principal} and method = ${asked.method} and path = ${asked.path}
            and key = ${asked.key}`

      const replayOf = (asked: Asked, row: Kept): Effect.Effect<Answer, IdempotencyKeyReused> =>
        timingSafeEqual(row.receipt_fingerprint, fingerprint(asked, row.receipt_kid).hash)
          ? Effect.succeed({ status: row.receipt_status, body: row.receipt_body, replayed: true })
          : Effect.fail(new IdempotencyKeyReused())

      const receipt = Effect.fnUntraced(function* (asked: Asked) {
        const [row] = yield* sql<Kept>`${kept(asked)}`
        return row === undefined ? undefined : yield* replayOf(asked, row)
      })

      /** The admission that refuses a command whose key has a receipt. */
      const unreceived = (asked: Asked): Admission => ({
        statement: kept(asked),
        judge: (row) =>
          row["receipt_kid"] === null
            ? faultPoint("decision.opened")
            : Effect.fail(new NotAdmitted(new Known(row as unknown as Kept))),
      })

      const done = <A>({ encode, keep, status }: AnswerForm<A>, result: A) => ({
        answer: {
          status: typeof status === "number" ? status : status(result),
          body: encode(result),
          replayed: false,
        } satisfies Answer,
        kept: (keep ?? encode)(result),
      })

      const once = Effect.fnUntraced(function* <A, E, R>(
        asked: Asked,
        form: AnswerForm<A>,
        command: Effect.Effect<A, E, R>,
        waited: number,
      ) {
        if (!(yield* open(asked, waited))) return (yield* receipt(asked)) ?? (yield* inProgress)
        yield* faultPoint("decision.opened")
        const { answer, kept } = done(form, yield* command)
        yield* write(sql, closing, [{ asked, status: answer.status, kept }])
        return answer
      })

      const committed = <A, E, R>(asked: Asked, form: AnswerForm<A>, command: Effect.Effect<A, E, R>, waited = 0) => {
        const work = asked.key === null
          ? Effect.map(command, (result) => done(form, result).answer)
          : once(asked, form, command, waited)
        return Effect.provideService(run(work, { faults: "decision" }), Database, database)
      }

      /** Runs `command` in a transaction that is rolled back. */
      const takenBack = <A, E, R>(command: Effect.Effect<A, E, R>) =>
        run(Effect.andThen(command, Effect.fail(new DryRunDone()))).pipe(
          Effect.provideService(Database, database),
          Effect.catchIf((error) => error instanceof DryRunDone, () => Effect.succeed(dryRunAnswer)),
        )

      const runKeyed: Idempotency["Service"]["run"] = (asked, form, command) =>
        asked.dryRun === true
          ? takenBack(command)
          : asked.key === null
          ? committed(asked, form, command)
          : alone(asked, (waited) => committed(asked, form, command, waited))

      const pendingOf = (asked: Asked, key: string, status: number): PendingReceipt => {
        const { hash, kid } = fingerprint(asked)
        const { method, path, principal } = asked
        return { principal, method, path, key, fingerprint: Buffer.from(hash).toString("hex"), kid, status }
      }

      const fencedOnce = Effect.fnUntraced(function* <A, E, R>(
        asked: Asked,
        form: AnswerForm<A>,
        command: Effect.Effect<A, E, R>,
      ) {
        const { answer, kept } = done(form, yield* command)
        if (asked.key === null) return answer
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* fence(sql, receiptFence(sql, pendingOf(asked, asked.key, answer.status), kept, now))
        return answer
      })

      const runFenced = <A, E, R, F = never>(
        asked: Asked & Partial<Fenced<F>>,
        form: AnswerForm<A>,
        command: Effect.Effect<A, E, R>,
      ): Effect.Effect<
        Answer,
        Repeatedly<E | F> | NotAdmitted | IdempotencyKeyReused | IdempotencyInProgress,
        Exclude<R, UnitOfWork>
      > => {
        const { admissions = [], turn = asked.path } = asked
        if (asked.dryRun === true) {
          const decided = fenced(sql, { admissions, refused: asked.refused, turn, dryRun: true }, command)
          return Effect.as(decided, dryRunAnswer).pipe(Effect.provideService(Database, database))
        }
        const refused = (error: SqlError.SqlError) =>
          asked.key !== null && waitedFor(error, "idempotency_receipts")
            ? new IdempotencyInProgress({ retry_after: 1 })
            : asked.refused?.(error) ?? null
        const all = asked.key === null ? admissions : [...admissions, unreceived(asked)]
        const decided = fenced(sql, { admissions: all, refused, turn }, fencedOnce(asked, form, command)).pipe(
          Effect.tap(() => faultPoint("decision.committed")),
          Effect.provideService(Database, database),
        )
        if (asked.key === null) return decided
        return alone(
          asked,
          () =>
            Effect.catch(
              decided,
              (
                error,
              ): Effect.Effect<
                Answer,
                Repeatedly<E | F | IdempotencyInProgress> | NotAdmitted | IdempotencyKeyReused
              > =>
                error instanceof NotAdmitted && error.answer instanceof Known
                  ? replayOf(asked, error.answer.row)
                  : Effect.fail(error),
            ),
        )
      }

      const runAfter: Idempotency["Service"]["runAfter"] = (asked, form, asking) => {
        const answer = (waited: number) =>
          Effect.flatMap(sqlDies(asking), (command) => committed(asked, form, command, waited))
        if (asked.key === null) return answer(0)
        return alone(asked, (waited) =>
          Effect.flatMap(
            sqlDies(receipt(asked)),
            (known): ReturnType<typeof answer> => known === undefined ? answer(waited) : Effect.succeed(known),
          ))
      }

      const handedOn: Idempotency["Service"]["handedOn"] = <A, E, R>(
        asked: Asked,
        form: AnswerForm<A> & { readonly status: number },
        command: (receipt: PendingReceipt | null) => Effect.Effect<A, E, R>,
      ) => {
        const answered = (receipt: PendingReceipt | null): Effect.Effect<Answer, E, R> =>
          Effect.map(command(receipt), (result) => done(form, result).answer)
        const { key } = asked
        if (key === null) return answered(null)
        const known = sqlDies(receipt(asked))
        const once = Effect.catch(
          answered(pendingOf(asked, key, form.status)),
          (error): Effect.Effect<Answer, E | IdempotencyKeyReused> =>
            Effect.flatMap(known, (since) => since === undefined ? Effect.fail(error) : Effect.succeed(since)),
        )
        return alone(
          asked,
          () =>
            Effect.flatMap(
              known,
              (before): Effect.Effect<Answer, E | IdempotencyKeyReused, R> =>
                before === undefined ? once : Effect.succeed(before),
            ),
        )
      }
      return Idempotency.of({ run: runKeyed, fenced: runFenced, runAfter, handedOn })
    }),
  )
}
