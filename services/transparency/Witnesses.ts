/**
 * Asks the configured witnesses to cosign the newest published checkpoint (C2SP tlog-witness), and keeps their lines,
 * which are served below it. One turn asks all that are due for the same checkpoint, each for a bounded time, so that
 * their lines come together. Checkpoints are published without waiting for them.
 *
 * A witness's word alone changes nothing but its own row: a line is kept only where its key has signed, and a witness
 * that says that it knows a larger log, or another one, is reported (`fault`), since the answer is not signed.
 *
 * Killed here: a witness that has cosigned and whose answer was lost answers 409 with its size, and is asked once more.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../platform/database/Database.ts"
import { Outbound, type OutboundError } from "../platform/Outbound.ts"
import { readSteps } from "./DecisionLog/StoredLog.ts"
import { consistencySteps } from "./MerkleTree.ts"
import type { ConfiguredWitness, WitnessKey } from "./WitnessKey.ts"

/** One request. Two go to a witness in a turn, where it names another size than the one that it was believed to have. */
const askMillis = 5_000
/** A turn ends before others may ask the same witnesses again. */
const claimMillis = 30_000
/** A busy log has four checkpoints a second: a witness is asked for the newest one only, and not for all of them. */
const pacedMillis = 1_000
const [firstPauseMillis, longestPauseMillis] = [2_000, 10 * 60_000]
const mostBytes = 16 * 1_024

interface Claimed {
  readonly verifier_key: string
  readonly known_size: number
  readonly failures: number
  readonly size: number
  readonly checkpoint: string
}

/** What came of asking a witness. */
type Answered =
  | { readonly line: string }
  | { readonly fault: string; readonly known?: number }

/** What an operator is told of a witness. */
export interface WitnessStatus {
  readonly name: string
  /** The size of the newest checkpoint that it has cosigned; null before the first. */
  readonly cosigned: number | null
  /** Why it has not cosigned the newest checkpoint; null where nothing is wrong. */
  readonly fault: string | null
}

/** The witnesses that are asked. */
export const witnessStatus = Effect.flatMap(Database, ({ sql }) =>
  sql<WitnessStatus>`
    select split_part(verifier_key, '+', 1) as name, cosigned_size::float8 as cosigned, fault
    from log_witnesses order by verifier_key`)

/** The size in the body of a 409; null for any other text. */
const sizeIn = (body: string): number | null => /^(0|[1-9]\d{0,15})\n$/.test(body) ? Number(body) : null

/** The text that is signed: all before the empty line. */
const textOf = (checkpoint: string) => checkpoint.slice(0, checkpoint.lastIndexOf("\n\n") + 1)

export class Witnesses extends Context.Service<Witnesses, {
  /** Asks the witnesses that are due; returns whether one was. */
  readonly ask: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/transparency/Witnesses") {
  static readonly layer = (configured: ReadonlyArray<ConfiguredWitness>, timeoutMillis = askMillis) =>
    Layer.effect(
      Witnesses,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const outbound = yield* Outbound
        const keys = JSON.stringify(configured.map(({ key }) => ({ key: key.key })))
        const configuredKeys = sql`select key from json_to_recordset(${keys}::json) t(key text)`

        let listed = false
        const list = Effect.gen(function* () {
          const now = new Date(yield* Clock.currentTimeMillis)
          yield* sql`delete from log_witnesses where verifier_key not in (${configuredKeys})`
          yield* sql`
            insert into log_witnesses (verifier_key, next_at) select key, ${now} from (${configuredKeys}) t
            on conflict do nothing`
          listed = true
        })

        const claim = Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          return yield* sql<Claimed>`
            update log_witnesses w set next_at = ${new Date(now + claimMillis)} from log_head h
            where w.verifier_key in (${configuredKeys}) and w.next_at <= ${new Date(now)}
              and h.held_reason is null and h.checkpoint is not null
              and (w.cosigned_size is distinct from h.published_size
                or split_part(w.checkpoint, E'\n\n', 1) <> split_part(h.checkpoint, E'\n\n', 1))
            returning w.verifier_key, w.known_size::float8 as known_size, w.failures,
              h.published_size::float8 as size, h.checkpoint`
        })

        /** One request, with the proof that the checkpoint continues the tree of `old` leaves. */
        const request = Effect.fnUntraced(function* (url: string, { checkpoint, size }: Claimed, old: number) {
          const proof = yield* readSteps(sql, consistencySteps(old, size), size)
          const lines = proof.map((hash) => Buffer.from(hash).toString("base64"))
          const { body, status } = yield* outbound.ask(`${url.replace(/\/$/, "")}/add-checkpoint`, {
            trusted: true,
            method: "POST",
            headers: { "content-type": "text/plain" },
            body: [`old ${old}`, ...lines, "", checkpoint].join("\n"),
            maxBytes: mostBytes,
          })
          return { status, body: new TextDecoder().decode(body) }
        })

        const lineOf = (key: WitnessKey, checkpoint: string, body: string): Answered => {
          const line = body.split("\n").find((line) => key.hasSigned(textOf(checkpoint), line))
          return line === undefined ? { fault: "answered without a cosignature of its key" } : { line: `${line}\n` }
        }

        const answerOf = Effect.fnUntraced(function* ({ key, url }: ConfiguredWitness, claimed: Claimed) {
          const old = Math.min(claimed.known_size, claimed.size)
          const first = yield* request(url, claimed, old)
          if (first.status === 200) return lineOf(key, claimed.checkpoint, first.body)
          const known = first.status === 409 ? sizeIn(first.body) : null
          if (known === null || known === old) {
            return { fault: `answered ${first.status}, from size ${old}` } satisfies Answered
          }
          if (known > claimed.size) {
            return { fault: `has cosigned ${known} entries, of a log of ${claimed.size}` } satisfies Answered
          }
          const second = yield* request(url, claimed, known)
          if (second.status === 200) return lineOf(key, claimed.checkpoint, second.body)
          return { fault: `answered ${second.status}, from size ${known}`, known } satisfies Answered
        })

        const keep = Effect.fnUntraced(function* (claimed: Claimed, answered: Answered) {
          const { checkpoint, failures, size, verifier_key } = claimed
          const now = yield* Clock.currentTimeMillis
          if ("line" in answered) {
            yield* sql`
              update log_witnesses set known_size = ${size}, cosigned_size = ${size}, checkpoint = ${checkpoint},
                line = ${answered.line}, cosigned_at = ${new Date(now)}, next_at = ${new Date(now + pacedMillis)},
                failures = 0, fault = null
              where verifier_key = ${verifier_key}`
            return
          }
          const pause = Math.min(firstPauseMillis * 2 ** Math.min(failures, 20), longestPauseMillis)
          yield* sql`
            update log_witnesses set known_size = ${answered.known ?? claimed.known_size}, fault = ${answered.fault},
              failures = failures + 1, next_at = ${new Date(now + pause)}
            where verifier_key = ${verifier_key}`
        })

        const askOne = Effect.fnUntraced(function* (claimed: Claimed) {
          const witness = configured.find(({ key }) => key.key === claimed.verifier_key)!
          const answered = yield* answerOf(witness, claimed).pipe(
            Effect.catchTag(
              "OutboundError",
              ({ reason }: OutboundError) => Effect.succeed<Answered>({ fault: `cannot be asked: ${reason}` }),
            ),
            Effect.timeoutOrElse({
              duration: 2 * timeoutMillis,
              orElse: () => Effect.succeed<Answered>({ fault: "cannot be asked: timeout" }),
            }),
          )
          if ("fault" in answered && claimed.failures === 0) {
            yield* Effect.logWarning(`the witness ${witness.key.name} has not cosigned`, answered.fault)
          }
          yield* keep(claimed, answered)
        })

        const ask = Effect.gen(function* () {
          if (!listed) yield* list
          const claimed = yield* claim
          yield* Effect.forEach(claimed, askOne, { concurrency: "unbounded", discard: true })
          return claimed.length > 0
        }).pipe(Effect.withSpan("Witnesses.ask"))

        return Witnesses.of({ ask })
      }),
    )
}
