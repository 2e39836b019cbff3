/**
 * Runs one claim of one stream: posts its batch item by item, each only after the lease, the stream and the receiver's
 * grants were checked again. Deliveries are settled every hundred messages or 100 ms, so that no more than those come
 * twice after a crash.
 *
 * A stream that leaves nothing out stops at an event that is not taken and tries it again; there are no dead letters.
 * Any other stream holds up only that event's subject, and stops after some failures in a row. A stream is paused where
 * its receiver answers `invalid_key` or has taken nothing for long. Once the grant has ended nothing is sent, not even
 * the message that says so.
 */
import { Cause, Clock, Effect, Metric, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../../platform/database/Database.ts"
import { shownWith } from "../../platform/observability/ShownMetrics.ts"
import { faultPoint } from "../../platform/Failpoints.ts"
import { soonDone, stopTime } from "../../platform/database/Leases.ts"
import { Outbound } from "../../platform/Outbound.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { measureDelivered } from "../../lifecycle/LatencyMetrics.ts"
import { authorizationPlace } from "../Streams/Rows.ts"
import { streamStatus } from "../Streams/Status.ts"
import { agendas, type Item, type PushBatch } from "./PushBatch.ts"
import { checks } from "./StatusCheck.ts"
import { type Claimed, PushState } from "./PushState.ts"
import { keeping } from "./LeaseRenewal.ts"
import type { Opened } from "./PrefetchStreams.ts"
import { delayAfter, type RetryPolicy } from "./RetryPolicy.ts"
import { servedStreams, type StreamRecord } from "./StreamRecord.ts"
import { settlements } from "./PushSettlement.ts"
import { type PushOutcome, verdictOf } from "./PushOutcome.ts"

const unsettledAtMost = 100
const settleMillis = 100
/** The longest run of a claim, so that streams which always have more make room for others. */
const runMillis = 10_000
/** A stream that was read so recently is not checked again before a POST. */
const justNowMillis = 25
/** The delay after a claim that found nothing to do, which is not expected: it keeps such a stream from a busy loop. */
const idleMillis = 1_000
/** Failures in a row after which the whole stream waits. */
const missesInARow = 3
/** Held-up subjects beyond which the whole stream waits. */
const heldAtMost = 1_000
const keepOnFailure = 4 * 1024

const pushes = Metric.counter("bailiwick_stream_pushes_total", {
  description: "Messages pushed to streams by what the receiver made of them",
})

const missOf = (verdict: Exclude<PushOutcome, { readonly _tag: "delivered" }>) =>
  verdict._tag === "refused" ? "refused" : verdict.unanswered ? "ambiguous" : "failed"

/** The next step after an item: the next item, another read of the stream, or the end of this claim. */
type Next = "next" | "again" | "over"
type Step = Effect.fn.Return<Next, SqlError.SqlError>

export const runs = Effect.fnUntraced(function* (publicUrl: URL, patience: RetryPolicy) {
  const { sql } = yield* Database
  yield* shownWith(pushes, "outcome", ["delivered", "refused", "failed"] satisfies Array<PushOutcome["_tag"]>)
  const outbound = yield* Outbound
  const vault = yield* Vault
  const { read } = yield* servedStreams
  const agendaOf = yield* agendas
  const check = yield* checks
  const settle = yield* settlements
  const { setStatus } = yield* streamStatus(publicUrl)

  const keep = { leaseMillis: patience.leaseMillis }
  /** The least that is left of a lease when a POST begins; during the POST the lease is renewed. */
  const room = patience.leaseMillis / 2
  const kept = yield* keeping(patience.leaseMillis)

  const authorization = ({ authorization_header: bytes, id, vault_kid: kid }: StreamRecord): Record<string, string> =>
    bytes === null || kid === null ? {} : {
      authorization: Redacted.value(
        vault.open({ kid, bytes }, authorizationPlace(id)),
      ),
    }

  /** Posts one item. Null: the POST was cut off, since another process may have the claim by now. */
  const post = Effect.fnUntraced(function* (session: PushState, served: StreamRecord, { message }: Item) {
    yield* faultPoint("push.before")
    const outcome = yield* kept(session, (signal) =>
      outbound.post({
        signal,
        url: served.endpoint_url ?? "",
        headers: {
          "content-type": "application/secevent+jwt",
          "accept": "application/json",
          "user-agent": "Bailiwick",
          ...authorization(served),
        },
        body: message,
        keepOnSuccess: 0,
        keepOnFailure,
      }))
    yield* faultPoint("push.after")
    if (outcome === null) return null
    const verdict = verdictOf(outcome)
    yield* Metric.update(Metric.withAttributes(pushes, { outcome: verdict._tag }), 1)
    return verdict
  })

  /** Settles what is not settled yet and releases the claim. */
  const giveBack = (
    session: PushState,
    served: StreamRecord,
    dueInMillis = 0,
  ): Effect.Effect<Next, SqlError.SqlError> => Effect.as(settle(session, served, { dueInMillis }), "over")

  const pause = Effect.fnUntraced(function* (session: PushState, served: StreamRecord, reason: string): Step {
    const paused = yield* setStatus(served.id, "paused", { by: "transmitter", reason, claim: session.claim })
    // The message that the stream was paused has a count of failures of its own.
    if (paused) session.forgive()
    return yield* giveBack(session, served)
  })

  const pauseSilently = Effect.fnUntraced(function* (session: PushState, served: StreamRecord): Step {
    const change = { by: "transmitter", reason: "grant_not_standing", untold: true, claim: session.claim } as const
    yield* setStatus(served.id, "paused", change)
    yield* sql`
      delete from lifecycle_stream_messages
      where stream_id = ${served.id}::uuid and delivered_at is null and after_epoch is null`
    session.forgive()
    return yield* giveBack(session, served)
  })

  /** Whether the next POST may begin; a stream that was read just now is not checked again. */
  const checkBeforePost = Effect.fnUntraced(function* (session: PushState, served: StreamRecord, readAt: number): Step {
    const now = yield* Clock.currentTimeMillis
    if (session.leaseUntil - now < room && !(yield* settle(session, served, keep))) return "over"
    if (now - readAt < justNowMillis) return "next"
    const checked = yield* check(session.id)
    if (checked === null || checked.claim !== session.claim) return "over"
    const same = checked.granted && !checked.stale && checked.status === served.status &&
      checked.updated_at.getTime() === served.updated_at.getTime()
    return same ? "next" : "again"
  })

  const taken = Effect.fnUntraced(function* (session: PushState, served: StreamRecord, item: Item): Step {
    const now = yield* Clock.currentTimeMillis
    session.succeeded(served.status !== "enabled", now)
    if (item.kind !== "event") session.finishOwn(item.id, item.kind)
    else if (item.order === null) session.reached = session.delivered = item.position
    else if (item.again === undefined) session.reached = item.position
    else if (item.again.heldFrom === null) session.release(item.order.key)
    else session.advance(item.order.key, item.again.heldFrom)
    if (item.order !== null) session.given.push(item.position)
    if (item.travelled !== undefined) {
      session.took.push(now - item.travelled.signed_at.getTime())
      yield* measureDelivered("push", [item.travelled], now)
    }
    if (session.unsettled < unsettledAtMost && now - session.unsettledSince < settleMillis) return "next"
    const held = yield* settle(session, served, keep)
    yield* faultPoint("push.settled")
    return held ? "next" : "over"
  })

  const isBroken = ({ failingSince, failures }: PushState, now: number) =>
    failures >= patience.failuresInARow || failingSince !== null && now - failingSince >= patience.silentMillis

  /** Holds up the subject of an item that was not taken. */
  const holdUp = (session: PushState, { again, order, position }: Item, error: string, now: number) => {
    if (order === null) return
    const attempts = (session.held.get(order.key)?.attempts ?? 0) + 1
    const notBefore = now + delayAfter(patience, attempts)
    session.hold(order.key, { subject: order.subject, position, attempts, notBefore, error })
    if (again === undefined) session.reached = position
  }

  const handleFailure = Effect.fnUntraced(
    function* (session: PushState, served: StreamRecord, item: Item, error: string): Step {
      const now = yield* Clock.currentTimeMillis
      session.failed(error, now)
      if (served.status !== "enabled") {
        if (session.failures >= patience.partingTries) session.finishOwn(item.id, "stream-updated")
        return yield* giveBack(session, served, delayAfter(patience, session.failures))
      }
      holdUp(session, item, error, now)
      if (isBroken(session, now)) return yield* pause(session, served, "not_answering")
      const waits = item.order === null || session.misses >= missesInARow || session.held.size > heldAtMost
      return waits ? yield* giveBack(session, served, delayAfter(patience, session.failures)) : "next"
    },
  )

  const handle = Effect.fnUntraced(function* (session: PushState, served: StreamRecord, item: Item): Step {
    const verdict = yield* post(session, served, item)
    if (verdict === null) return "over"
    if (verdict._tag === "delivered") return yield* taken(session, served, item)
    if (item.kind === "event") session.miss(item.position, missOf(verdict), yield* Clock.currentTimeMillis)
    if (verdict._tag === "failed") return yield* handleFailure(session, served, item, verdict.reason)
    const { code, said } = verdict.refusal
    if (served.status === "enabled" && code === "invalid_key") {
      session.error = said
      return yield* pause(session, served, "invalid_key")
    }
    if (item.kind === "event") return yield* handleFailure(session, served, item, said)
    // A refused message about the stream itself is not tried again: the receiver would refuse it again.
    session.own.push(item.id)
    session.error = said
    return "next"
  })

  const isSubjectHeld = ({ held }: PushState, { again, order }: Item, failed: ReadonlySet<string>) =>
    order !== null && (again === undefined ? held.has(order.key) : failed.has(order.key))

  const through = Effect.fnUntraced(
    function* (session: PushState, served: StreamRecord, { items, upTo }: PushBatch, readAt: number): Step {
      const failed = new Set<string>()
      let asOf = readAt
      for (const item of items) {
        if (isSubjectHeld(session, item, failed)) {
          if (item.again === undefined) session.reached = item.position
          continue
        }
        const may = yield* checkBeforePost(session, served, asOf)
        if (may !== "next") return may
        asOf = -Infinity
        const before = session.failures
        // A stop waits a moment for the receiver's answer, so that a delivered message is not sent again.
        const next = yield* soonDone(handle(session, served, item), stopTime)
        if (next !== "next") return next
        if (session.failures > before && item.order !== null) failed.add(item.order.key)
      }
      if (served.status === "enabled" && upTo > (served.reached ?? served.position)) session.reached = upTo
      return "again"
    },
  )

  /**
   * Serves a stream until it has nothing more, it fails, or another process has the claim. `opened`: the stream as it
   * was just read. `waiting` waits for more; null where nothing came.
   */
  return Effect.fnUntraced(function* (claimed: Claimed, opened: Opened | null, waiting: Effect.Effect<Opened | null>) {
    const started = yield* Clock.currentTimeMillis
    const session = new PushState(claimed)
    let last: StreamRecord | null = null
    let ready = opened
    /** The claim, or `waiting`, said that there is something to do, and nothing was found since. */
    let idle = true
    const turns = Effect.gen(function* () {
      for (;;) {
        const readAt = ready?.at ?? (yield* Clock.currentTimeMillis)
        const served: StreamRecord | null = ready?.served ??
          (yield* read(sql`t.id = ${session.id}::uuid and t.claim = ${session.claim}`))
        if (served === null) return
        last = served
        if (!served.granted) return yield* pauseSilently(session, served)
        if (served.stale && served.status === "enabled") {
          yield* pause(session, served, "epoch_changed")
          return
        }
        const agenda = yield* agendaOf(served, session, ready)
        ready = null
        const next = yield* through(session, served, agenda, readAt)
        if (next === "over") return
        const now = yield* Clock.currentTimeMillis
        idle &&= agenda.items.length === 0 && agenda.upTo <= (served.reached ?? served.position) &&
          session.changed.size === 0
        if (idle || now - started > runMillis) {
          yield* giveBack(session, served, idle ? idleMillis : 0)
          return
        }
        if (!(yield* settle(session, served, keep))) return
        if (agenda.more) continue
        ready = yield* waiting
        idle = true
        if (ready !== null) continue
        yield* giveBack(session, served)
        return
      }
    })
    // On a stop or a failure settle what was delivered, so that it is not sent again.
    yield* Effect.onError(
      turns,
      (cause) =>
        last === null
          ? Effect.void
          : Effect.ignore(giveBack(session, last, Cause.hasInterruptsOnly(cause) ? 0 : idleMillis)),
    )
  })
})
