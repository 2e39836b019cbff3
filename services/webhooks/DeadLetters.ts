/**
 * Dead letters for operators, of all accounts. Sending again is `Replays.again`; each of its transactions locks the
 * webhook first, since the dead letters of a deleted webhook must not be replayed.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { DeliveryId, WebhookId } from "../../schemas/BrandedIds.ts"
import type { EventType } from "../../schemas/mail/MailEvent.ts"
import type { SpanReplayed } from "../../schemas/identity/DeadLetterView.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { leastIdAt } from "../platform/Ids.ts"
import { Jobs } from "../platform/messaging/Jobs.ts"
import { type DeadLetter, type LetterFilter, type LetterPage, letterPages } from "./DeadLetterPages.ts"
import { Replays } from "./Replays.ts"
import { type ReplayArgs, replayJob, replayTypeJob } from "./WebhookJobKinds.ts"

/** The operator who sends dead letters again, and more of the act for the audit. */
export interface Acting {
  readonly actor: string
  readonly details: Readonly<Record<string, string>>
}

/** Milliseconds since the epoch: deliveries created from `since` on and before `until`. */
export interface LetterSpan {
  readonly since: number
  readonly until: number | null
  /** Events of this type only. */
  readonly eventType?: EventType | undefined
  /** Those that were given up until then, in milliseconds since the epoch; until now where it is left out. */
  readonly askedAt?: number | undefined
}

/** Dead letters that are counted at most. */
const mostCounted = 10_000

export interface LettersStanding {
  readonly count: number
  /** Whether there are more than were counted. */
  readonly capped: boolean
  readonly newest: { readonly delivery_id: DeliveryId; readonly died_at: string } | null
}

/** Maximum number of deliveries per transaction. */
const chunk = 1_000

export class DeadLetters extends Context.Service<DeadLetters, {
  /** How many there are, counted to 10,000, and the one that was given up last. */
  readonly standing: Effect.Effect<LettersStanding, SqlError.SqlError>
  /** A page of those that match, newest delivery first. */
  readonly list: (filter: LetterFilter, limit: number, afterId?: string) => Effect.Effect<LetterPage, SqlError.SqlError>
  /** How many dead letters of a webhook `replaySpan` would send again. `webhookId`: a UUID. */
  readonly count: (webhookId: WebhookId, span: LetterSpan) => Effect.Effect<number | "gone", SqlError.SqlError>
  /** Sends one again. `gone`: its webhook was deleted, nothing changed. `deliveryId`: a UUID. */
  readonly replayOne: (
    deliveryId: DeliveryId,
    by: Acting,
  ) => Effect.Effect<"replayed" | "unknown" | "gone", SqlError.SqlError>
  /**
   * Starts the job that sends a webhook's dead letters of a span again, 1,000 in a transaction; returns their number,
   * or `gone` if the webhook does not exist. Runs in the caller's transaction, on its connection alone.
   */
  readonly replaySpan: (
    webhookId: WebhookId,
    span: LetterSpan,
    by: Acting,
  ) => Effect.Effect<SpanReplayed | "gone", SqlError.SqlError>
  /**
   * Sends a webhook's dead letters again whose deliveries were created at `since` (milliseconds since the epoch) or
   * later, of one event type or of all. Calls `tell` with the number so far; returns the total, or `gone` if the webhook does not exist.
   */
  readonly replaySince: (
    webhookId: WebhookId,
    span: Omit<LetterSpan, "until">,
    by: Acting,
    tell: (done: number) => Effect.Effect<void>,
  ) => Effect.Effect<number | "gone", SqlError.SqlError>
}>()("bailiwick/services/webhooks/DeadLetters") {
  static readonly layer = Layer.suspend(() => Layer.effect(DeadLetters, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const replays = yield* Replays
  const jobs = yield* Jobs
  const list = letterPages(sql)

  const standing = Effect.gen(function* () {
    const [row] = yield* sql<{ readonly n: number }>`
      select count(*)::int as n from (select from dead_letters limit ${mostCounted + 1}) l`
    const [last] = yield* sql<Pick<DeadLetter, "delivery_id" | "died_at">>`
      select delivery_id::text as delivery_id, died_at from dead_letters order by died_at desc limit 1`
    return {
      count: Math.min(row!.n, mostCounted),
      capped: row!.n > mostCounted,
      newest: last === undefined ? null : { delivery_id: last.delivery_id, died_at: last.died_at.toISOString() },
    } satisfies LettersStanding
  })

  const lives = Effect.fnUntraced(function* (webhookId: WebhookId) {
    const rows = yield* sql`select from webhooks where id = ${webhookId}::uuid and deleted_at is null for share`
    return rows.length > 0
  })

  const record = (by: Acting, action: string, subject: string, details = {}) =>
    audit.append({ action, actor: by.actor, subject, outcome: "done", details: { ...by.details, ...details } })

  const countIn = Effect.fnUntraced(function* (
    webhookId: WebhookId,
    { asked_at, event_type, from, to }: Pick<ReplayArgs, "asked_at" | "event_type" | "from" | "to">,
  ) {
    const [row] = yield* sql<{ n: number }>`
      select count(*)::int as n from dead_letters
      where webhook_id = ${webhookId}::uuid and delivery_id > ${from}::uuid and delivery_id < ${to}::uuid
        and died_at <= ${asked_at ?? "infinity"}
        and (${event_type ?? null}::text is null or event_type = ${event_type ?? null})`
    return row!.n
  })

  /** The ids of a span. Later failures are left out: the job would send its own failures again. */
  const idsOf = ({ askedAt, eventType, since, until }: LetterSpan) =>
    Effect.map(Clock.currentTimeMillis, (now) => ({
      from: leastIdAt(since),
      to: leastIdAt(Math.min(until ?? Infinity, now)),
      asked_at: new Date(Math.min(askedAt ?? Infinity, now)).toISOString(),
      ...(eventType === undefined ? {} : { event_type: eventType }),
    }))

  const count = Effect.fn("DeadLetters.count")(function* (webhookId: WebhookId, span: LetterSpan) {
    const rows = yield* sql`select from webhooks where id = ${webhookId}::uuid and deleted_at is null`
    return rows.length === 0 ? "gone" : yield* countIn(webhookId, yield* idsOf(span))
  })

  const replaySpan = Effect.fn("DeadLetters.replaySpan")(
    function* (webhookId: WebhookId, span: LetterSpan, by: Acting) {
      if (!(yield* lives(webhookId))) return "gone"
      const ids = yield* idsOf(span)
      const n = yield* countIn(webhookId, ids)
      const started = { deliveries: n, asked_at: ids.asked_at }
      if (n === 0) return started
      const { eventType } = span
      const kind = eventType === undefined ? replayJob : replayTypeJob
      yield* jobs.add(kind, { webhook_id: webhookId, status: "dead_letter", ...ids })
      const type = eventType === undefined ? {} : { event_type: eventType }
      yield* record(by, "webhook.replayed", `webhook:${webhookId}`, { deliveries: n, ...type })
      return started
    },
    sql.withTransaction,
  )

  const replayOne = Effect.fn("DeadLetters.replayOne")(function* (deliveryId: DeliveryId, by: Acting) {
    const [letter] = yield* sql<{ webhook_id: WebhookId }>`
      select webhook_id::text as webhook_id from dead_letters where delivery_id = ${deliveryId}::uuid`
    if (letter === undefined) return "unknown"
    if (!(yield* lives(letter.webhook_id))) return "gone"
    // Another replay was faster: it is no longer a dead letter.
    if ((yield* replays.again(letter.webhook_id, [deliveryId])) === 0) return "unknown"
    yield* record(by, "delivery.replayed", `delivery:${deliveryId}`)
    return "replayed"
  }, sql.withTransaction)

  const step = Effect.fnUntraced(function* (args: ReplayArgs, by: Acting) {
    const { event_type, from, webhook_id } = args
    if (!(yield* lives(webhook_id))) return "gone"
    const { ids, next } = yield* replays.ended(args, from, chunk)
    const done = yield* replays.again(webhook_id, ids)
    const details = { deliveries: done, ...(event_type === undefined ? {} : { event_type }) }
    if (done > 0) yield* record(by, "webhook.replayed", `webhook:${webhook_id}`, details)
    return { done, next: next ?? undefined }
  }, sql.withTransaction)

  const replaySince: DeadLetters["Service"]["replaySince"] = Effect.fn("DeadLetters.replaySince")(
    function* (webhookId, span, by, tell) {
      // A delivery that fails again keeps its id, which is then behind the cursor: so each is sent again once.
      const asked = yield* idsOf({ ...span, until: null })
      let from: string | undefined = asked.from
      let total = 0
      while (from !== undefined) {
        const args: ReplayArgs = { webhook_id: webhookId, status: "dead_letter", ...asked, from }
        const done: "gone" | { readonly done: number; readonly next: string | undefined } = yield* step(args, by)
        if (done === "gone") return total === 0 ? "gone" : total
        total += done.done
        yield* tell(total)
        from = done.next
      }
      return total
    },
  )

  return DeadLetters.of({ standing, list, count, replayOne, replaySpan, replaySince })
})
