/**
 * Takes security event tokens (RFC 8417) of the configured transmitters: verifies one, decides on it (SignalDecision),
 * and does what it asks for in one transaction with the row of its `jti` and its audit record.
 *
 * - A token that is refused changes nothing. So does one that is ignored, but for its row and its record.
 * - A `jti` is acted on once. The same token again is taken without an effect; another token with the same `jti` is
 *   refused. Rows are kept for twice as long as a token may be old.
 * - Two processes that get one token at once: the later waits for the row of the former.
 * - Killed before the commit, nothing has happened and the transmitter sends again; killed after it, the token that is
 *   sent again is known.
 * - Whether the person is known changes the record, and never the answer.
 */
import { Clock, Context, Effect, Layer, Metric } from "effect"
import { createHash } from "node:crypto"
import type { DependencyUnavailable } from "../../schemas/problems/HttpProblems.ts"
import type { Held } from "../../schemas/problems/IdentityProblems.ts"
import { endConsoleSessions } from "../console/EndConsoleSessions.ts"
import { endingSessions } from "../people/EndSessions.ts"
import { personHolds } from "../people/PersonHolds.ts"
import { SecurityEventFanout } from "../people/SecurityEventFanout.ts"
import { Database } from "../platform/database/Database.ts"
import { mustBeOpen } from "../platform/database/Installation.ts"
import { prune } from "../platform/database/Prune.ts"
import { run } from "../platform/database/UnitOfWork.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { shownWith } from "../platform/observability/ShownMetrics.ts"
import { judged, type TokenFault } from "../platform/security/KeySets.ts"
import type { Transmitter } from "./ConfiguredTransmitter.ts"
import {
  decideSignal,
  oldestSeconds,
  type SetErrorCode,
  type SetRefusal,
  type SignalAct,
  type SignalIgnored,
} from "./SignalDecision.ts"
import { signalRefusals } from "./SignalRefusals.ts"
import { type FoundPerson, signalSubjects } from "./SignalSubjects.ts"
import { transmitterKeys } from "./TransmitterKeys.ts"

/** What became of a token, as its transmitter is told: a taken one may have changed nothing. */
export type Received = { readonly kind: "taken" } | SetRefusal

/** `failed`: the transmitter has to send it again. */
const outcomes = ["applied", "unchanged", "unknown_person", "ignored", "repeated", "refused", "failed"] as const
type Outcome = typeof outcomes[number]
const signals = Metric.counter("bailiwick_signals_total", {
  description: "Security events of identity providers by what became of them",
})
const count = (outcome: Outcome) => Metric.update(Metric.withAttributes(signals, { outcome }), 1)

const mostCharacters = 64 * 1_024
const taken: Received = { kind: "taken" }

const refusal = (err: SetErrorCode, description: string): SetRefusal => ({ kind: "refuse", err, description })

const refusals: Readonly<Record<TokenFault, SetRefusal>> = {
  "unknown key": refusal("invalid_key", "the key is none of the issuer's"),
  "wrong algorithm": refusal("invalid_key", "the algorithm is not configured"),
  "wrong signature": refusal("authentication_failed", "the signature does not match the key"),
  refused: refusal("invalid_request", "not a signed token of the type secevent+jwt"),
}

/** What tells a token from another with the same `jti`. */
interface Evidence {
  readonly jti: string
  readonly type: string
  /** The digest of its claims: a transmitter may sign anew what it sends again. */
  readonly claims: Uint8Array
}

const sha256 = (text: string) => new Uint8Array(createHash("sha256").update(text).digest())

/** What an act has changed; null: the person is not known. */
interface Changed {
  readonly person: FoundPerson
  readonly changed: boolean
  /** Sessions, and console sessions, that were known and ended. */
  readonly sessions: number
}

const acting = Effect.gen(function* () {
  const { sql } = yield* Database
  const fanout = yield* SecurityEventFanout
  const { find } = yield* signalSubjects
  const { endAll, endOne } = yield* endingSessions
  const holds = yield* personHolds

  const endEvery = Effect.fnUntraced(function* ({ canonical }: FoundPerson, before: Date) {
    const known = yield* endAll(canonical, before)
    const ofConsole = yield* endConsoleSessions(canonical, before)
    yield* fanout.tell(canonical, [{ kind: "session-revoked", sid: null }], "system")
    return known + ofConsole
  })

  const endSessions = Effect.fnUntraced(function* (person: FoundPerson, { before, session }: SignalAct) {
    if (session === null || person.issuer === null) {
      return { person, changed: true, sessions: yield* endEvery(person, new Date(before)) }
    }
    const ended = yield* endOne(person.canonical, person.issuer, session)
    if (ended) yield* fanout.tell(person.canonical, [{ kind: "session-revoked", sid: session }], "system")
    return { person, changed: ended, sessions: ended ? 1 : 0 }
  })

  const takeWord = Effect.fnUntraced(function* (person: FoundPerson, act: SignalAct, by: string) {
    const kind = act.effect === "release" ? "released" : act.signal === "account-purged" ? "purged" : "disabled"
    const changed = yield* holds.take(person.named, by, { kind, at: act.before })
    const ends = changed && kind !== "released"
    return { person, changed, sessions: ends ? yield* endEvery(person, new Date(act.before)) : 0 } satisfies Changed
  })

  /** Does what an event asks for, in the current transaction. */
  return Effect.fnUntraced(function* (act: SignalAct, transmitter: Transmitter) {
    // Of unknown people, too: the answer must not tell whether the person is known.
    if (act.effect === "release") yield* mustBeOpen(sql)
    const person = yield* find(act.person, transmitter)
    if (person === null) return null
    return yield* act.effect === "end_sessions" ? endSessions(person, act) : takeWord(person, act, transmitter.issuer)
  })
})

/** The same as the metric has it. */
const countedOf = (decision: SignalAct | SignalIgnored, found: Changed | null): Outcome => {
  if (decision.kind === "ignore") return "ignored"
  if (found === null) return "unknown_person"
  return found.changed ? "applied" : "unchanged"
}

/** The outcome of an event as its row and its record name it. */
const outcomeOf = (decision: SignalAct | SignalIgnored, found: Changed | null): string => {
  if (decision.kind === "ignore") return decision.because
  if (found === null) return "unknown_person"
  return found.changed ? decision.effect : "unchanged"
}

/** Deletes the rows of tokens that would be refused for their age; returns how many went. */
export const pruneSignals = Effect.gen(function* () {
  const { sql } = yield* Database
  const before = new Date((yield* Clock.currentTimeMillis) - 2 * oldestSeconds * 1_000)
  const where = sql`received_at <= ${before}`
  return yield* prune(sql, { table: "signal_events", where, order: "received_at", batch: 10_000 })
}).pipe(Effect.withSpan("SignalReceiver.prune"))

export class SignalReceiver extends Context.Service<SignalReceiver, {
  /**
   * Takes a token of this transmitter. `jti`: the id under which a poll's answer has it. Fails where the transmitter
   * has to send it again: its keys cannot be had, or the installation is held and the event would release a person.
   */
  readonly receive: (
    transmitter: Transmitter,
    token: string,
    jti?: string,
  ) => Effect.Effect<Received, DependencyUnavailable | Held>
}>()("bailiwick/services/signals/SignalReceiver") {
  static readonly layer = (transmitters: ReadonlyArray<Transmitter>) => Layer.effect(SignalReceiver, make(transmitters))
}

const make = Effect.fnUntraced(function* (transmitters: ReadonlyArray<Transmitter>) {
  const database = yield* Database
  const { sql } = database
  const audit = yield* Audit
  const act = yield* acting
  const { refuse } = yield* signalRefusals
  const keys = new Map(
    yield* Effect.forEach(
      transmitters,
      (transmitter) => Effect.map(transmitterKeys(transmitter), (source) => [transmitter.issuer, source] as const),
    ),
  )

  /** Writes the token's row; returns whether this is the first token with its `jti`, the same again, or another. */
  const once = Effect.fnUntraced(function* (issuer: string, { claims, jti, type }: Evidence) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const added = yield* sql`
      insert into signal_events (transmitter, jti, digest, event, outcome, received_at)
      values (${issuer}, ${jti}, ${claims}, ${type}, 'begun', ${now}) on conflict do nothing returning 1`
    if (added.length > 0) return "first"
    const [row] = yield* sql<{ same: boolean }>`
      select digest = ${claims} as same from signal_events where transmitter = ${issuer} and jti = ${jti}`
    return row?.same === true ? "again" : "another"
  })

  const apply = Effect.fnUntraced(
    function* (transmitter: Transmitter, decision: SignalAct | SignalIgnored, token: string) {
      const { jti, type } = decision
      const { issuer } = transmitter
      const seen = yield* once(issuer, { jti, type, claims: sha256(token.split(".")[1]!) })
      if (seen === "another") {
        return { received: refusal("invalid_request", "another token had this jti"), counted: "refused" as const }
      }
      if (seen === "again") return { received: taken, counted: "repeated" as const }
      const found = decision.kind === "act" ? yield* act(decision, transmitter) : null
      const outcome = outcomeOf(decision, found)
      yield* sql`update signal_events set outcome = ${outcome} where transmitter = ${issuer} and jti = ${jti}`
      yield* audit.append({
        action: found?.changed === true ? "signal.applied" : "signal.ignored",
        actor: `transmitter:${issuer}`,
        subject: found === null ? null : `person:${found.person.canonical}`,
        outcome: "done",
        decision: false,
        details: {
          event: type,
          jti,
          digest: `sha256:${Buffer.from(sha256(token)).toString("hex")}`,
          result: outcome,
          ...(found === null ? {} : { sessions: found.sessions }),
        },
      })
      return { received: taken, counted: countedOf(decision, found) }
    },
  )

  const judge = Effect.fnUntraced(function* (transmitter: Transmitter, token: string, jti?: string) {
    if (token.length > mostCharacters) return refusal("invalid_request", "more than 64 KiB")
    const found = yield* judged(token, keys.get(transmitter.issuer)!, {
      typ: "secevent+jwt",
      algorithms: [...transmitter.algorithms],
    })
    if (typeof found === "string") return refusals[found]
    const decision = decideSignal(found.payload, transmitter, yield* Clock.currentTimeMillis)
    if (decision.kind === "refuse") return decision
    return jti === undefined || jti === decision.jti
      ? decision
      : refusal("invalid_request", "the answer has another jti")
  })

  const receive = Effect.fn("SignalReceiver.receive")(
    function* (transmitter: Transmitter, token: string, jti?: string) {
      const decision = yield* judge(transmitter, token, jti)
      const { counted, received } = decision.kind === "refuse"
        ? { received: decision, counted: "refused" as const }
        : yield* run(apply(transmitter, decision, token), { finds: true, faults: "signal" })
      yield* count(counted)
      if (received.kind === "refuse") yield* refuse(transmitter.issuer, received.err)
      return received
    },
    Effect.tapError(() => count("failed")),
    Effect.provideService(Database, database),
  )

  yield* shownWith(signals, "outcome", outcomes)
  return SignalReceiver.of({ receive })
})
