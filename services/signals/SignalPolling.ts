/**
 * Polls the transmitters that are configured so (RFC 8936). One process at a time polls a transmitter, by a lease on its
 * row. A turn asks for tokens and takes each in a transaction of its own; the next request of the turn acknowledges what
 * was taken and names what was refused, so a token is acknowledged after its commit only. Killed between the two, the
 * transmitter gives the token again, and it is known (SignalReceiver). A token that cannot be taken now is neither.
 *
 * After an empty answer the transmitter is asked again in some seconds; after a failure later and later.
 */
import { Clock, Context, Effect, Layer, Redacted, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../platform/database/Database.ts"
import {
  backoffMillis,
  claimDue,
  claimed,
  freeExpired,
  type LeasedTable,
  release,
  settleFailed,
} from "../platform/database/Leases.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Outbound } from "../platform/Outbound.ts"
import type { Transmitter } from "./ConfiguredTransmitter.ts"
import type { SetErrorCode } from "./SignalDecision.ts"
import { SignalReceiver } from "./SignalReceiver.ts"

const table: LeasedTable = { table: "signal_polls", key: "transmitter", keyType: "text" }

const leaseMillis = 120_000
/** A turn begins no further request after this time, so that it ends before its lease. */
const turnMillis = 60_000
const askMillis = 20_000
const pauseMillis = 5_000
const longestPauseMillis = 5 * 60_000
const mostEvents = 50
const mostBytes = 4 * 1_024 * 1_024

const Answer = Schema.fromJsonString(Schema.Struct({
  sets: Schema.Record(Schema.String, Schema.String),
  moreAvailable: Schema.optionalKey(Schema.Boolean),
}))
const decodeAnswer = Schema.decodeUnknownEffect(Answer)

interface Row {
  readonly transmitter: string
  readonly attempts: number
  readonly claim: bigint
}

/** What the next request of a turn says of the tokens of the last one. */
interface Acknowledgement {
  readonly ack: ReadonlyArray<string>
  readonly setErrs: Readonly<Record<string, { readonly err: SetErrorCode; readonly description: string }>>
}

const nothing: Acknowledgement = { ack: [], setErrs: {} }
const isEmpty = ({ ack, setErrs }: Acknowledgement) => ack.length === 0 && Object.keys(setErrs).length === 0

export interface PollStatus {
  readonly transmitter: string
  readonly failures: number
  readonly fault: string | null
  /** When nothing was left at the transmitter last; before that first time, since when it is polled. Null: not known. */
  readonly emptiedAt: Date | null
}

/** How the polls of the transmitters go that are polled. */
export const pollStatus = Effect.flatMap(Database, ({ sql }) =>
  sql<PollStatus>`
    select transmitter, attempts as failures, last_error as fault, coalesce(answered_at, listed_at) as "emptiedAt"
    from signal_polls order by transmitter`)

export class SignalPolling extends Context.Service<SignalPolling, {
  /** Polls the transmitters that are due; returns whether one was. */
  readonly poll: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/signals/SignalPolling") {
  static readonly layer = (transmitters: ReadonlyArray<Transmitter>) =>
    Layer.effect(SignalPolling, make(transmitters.filter(({ poll }) => poll !== null)))
}

/** One request, which acknowledges what the last one gave. */
const asking = Effect.map(
  Outbound,
  (outbound) =>
    Effect.fnUntraced(function* ({ poll }: Transmitter, said: Acknowledgement) {
      const { body, status } = yield* outbound.ask(poll!.endpoint, {
        trusted: true,
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json",
          authorization: `Bearer ${Redacted.value(poll!.token)}`,
        },
        body: JSON.stringify({
          maxEvents: mostEvents,
          returnImmediately: true,
          ...(said.ack.length === 0 ? {} : { ack: said.ack }),
          ...(Object.keys(said.setErrs).length === 0 ? {} : { setErrs: said.setErrs }),
        }),
        maxBytes: mostBytes,
      }).pipe(
        Effect.catchTag("OutboundError", ({ reason }) => Effect.fail(`cannot be polled: ${reason}`)),
        Effect.timeoutOrElse({ duration: askMillis, orElse: () => Effect.fail("cannot be polled: timeout") }),
      )
      if (status !== 200) return yield* Effect.fail(`answered ${status}`)
      return yield* decodeAnswer(new TextDecoder().decode(body)).pipe(
        Effect.catch(() => Effect.fail("answered no list of tokens")),
      )
    }),
)

const make = Effect.fnUntraced(function* (transmitters: ReadonlyArray<Transmitter>) {
  const { sql } = yield* Database
  const audit = yield* Audit
  const { receive } = yield* SignalReceiver
  const ask = yield* asking
  const issuers = transmitters.map(({ issuer }) => issuer)
  const ours = sql`and t.transmitter = any(${issuers}::text[])`

  /** Takes the tokens of an answer in their order, and stops at one that cannot be taken now. */
  const takeAll = Effect.fnUntraced(function* (transmitter: Transmitter, sets: Readonly<Record<string, string>>) {
    const ack: Array<string> = []
    const setErrs: Record<string, { err: SetErrorCode; description: string }> = {}
    for (const [jti, token] of Object.entries(sets)) {
      const received = yield* receive(transmitter, token, jti).pipe(
        Effect.catch(() => Effect.succeed({ kind: "later" } as const)),
      )
      if (received.kind === "later") return { said: { ack, setErrs }, later: true }
      if (received.kind === "taken") ack.push(jti)
      else {
        const { description, err } = received
        setErrs[jti] = { err, description }
        yield* audit.append({
          action: "signal.refused",
          actor: `transmitter:${transmitter.issuer}`,
          subject: null,
          outcome: "refused",
          code: err,
        })
      }
    }
    return { said: { ack, setErrs }, later: false }
  })

  /** Asks until nothing is left, which it returns, or the turn is over. Fails with the reason in words. */
  const drain = Effect.fnUntraced(function* (transmitter: Transmitter) {
    const until = (yield* Clock.currentTimeMillis) + turnMillis
    let said = nothing
    do {
      const { sets } = yield* ask(transmitter, said)
      const { later, said: next } = yield* takeAll(transmitter, sets)
      said = next
      if (later) return yield* Effect.fail("gave a token that cannot be taken now")
    } while (!isEmpty(said) && (yield* Clock.currentTimeMillis) < until)
    return isEmpty(said)
  })

  const settle = (issuer: string, claim: bigint, emptied: boolean) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      sql`
        update signal_polls set claim = null, lease_until = null, attempts = 0, last_error = null,
          not_before = ${new Date(emptied ? now + pauseMillis : now)},
          answered_at = case when ${emptied} then ${new Date(now)} else answered_at end
        where transmitter = ${issuer} and claim = ${claim}`)

  const pollOne = Effect.fnUntraced(function* ({ attempts, claim, transmitter: issuer }: Row) {
    const transmitter = transmitters.find((one) => one.issuer === issuer)!
    yield* drain(transmitter).pipe(
      Effect.flatMap((emptied) => settle(issuer, claim, emptied)),
      Effect.catchIf((error): error is string => typeof error === "string", (error) =>
        Effect.andThen(
          attempts > 1 ? Effect.void : Effect.logWarning(`the transmitter ${issuer} was not polled`, error),
          settleFailed(sql, table, claim, [
            { key: issuer, afterMillis: backoffMillis(attempts + 2, longestPauseMillis), error },
          ]),
        )),
    )
  })

  let listed = false
  const list = Effect.gen(function* () {
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* sql`
      insert into signal_polls (transmitter, not_before, listed_at)
      select t, ${now}, ${now} from unnest(${issuers}::text[]) t on conflict do nothing`
    listed = true
  })

  const poll = Effect.gen(function* () {
    if (!listed) yield* list
    yield* freeExpired(sql, table)
    return yield* claimed({
      claim: claimDue<Row>(sql, table, { leaseMillis, limit: issuers.length, also: ours }),
      work: (rows) =>
        Effect.as(
          Effect.forEach(rows, pollOne, { concurrency: "unbounded", discard: true }),
          rows.length > 0,
        ),
      giveBack: (rows) => rows.length === 0 ? Effect.void : release(sql, table, rows[0]!.claim),
    })
  }).pipe(Effect.withSpan("SignalPolling.poll"))

  return SignalPolling.of({ poll })
})
