/**
 * Operators' commands on any account's webhook: pause, resume, and make its waiting deliveries due. The account is
 * told that an operator did so, and not why: the reason is the operators' evidence, and may speak of others.
 *
 * An operator's pause lies above any other: the account cannot resume the webhook, and where it had been paused before, the
 * operator's resumption leaves it so. Each runs in the caller's transaction and writes under the version that it loaded.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, WebhookId } from "../../schemas/BrandedIds.ts"
import type { PausedBy } from "../../schemas/mail/Webhook.ts"
import { Notifications } from "../notifications/Notifications.ts"
import { appPath } from "../platform/AppPaths.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Audit } from "../platform/observability/Audit.ts"
import type { Acting } from "./DeadLetters.ts"
import { dueTopic } from "./Deliveries/DeliveryClaims.ts"
import { makeQueueDue } from "./Deliveries/RowLocks.ts"
import { shownUrl } from "./Webhooks/ShownUrl.ts"

/** How many deliveries one command makes due; the next one takes those that follow. */
const mostKicked = 1_000

/** A webhook as operators see it. */
export interface OperatedWebhook {
  readonly webhook_id: WebhookId
  readonly account_id: AccountId
  readonly url: string
  readonly is_active: boolean
  readonly paused_at: Date | null
  readonly paused_by: PausedBy | null
}

interface Row extends OperatedWebhook {
  readonly paused_under: PausedBy | null
  readonly version: number
}

/** `null`: there is no such webhook; a state: the webhook's, in which the command is not possible. */
type Done<A> = Effect.Effect<A | "active" | "paused" | `paused_by_${PausedBy}` | null, SqlError.SqlError, InTransaction>

export class WebhookHolds extends Context.Service<WebhookHolds, {
  /** Pauses it, also where the account or the program had paused it; refused where an operator had. */
  readonly pause: (id: WebhookId, by: Acting) => Done<OperatedWebhook>
  /** Resumes what an operator or the program paused; leaves it paused where the account had paused it before. */
  readonly resume: (id: WebhookId, by: Acting) => Done<OperatedWebhook>
  /** Makes up to 1,000 deliveries that wait for their next attempt due now, the next due ones first; returns how many. */
  readonly kick: (id: WebhookId, by: Acting) => Done<{ readonly deliveries: number }>
}>()("bailiwick/services/webhooks/WebhookHolds") {
  static readonly layer = Layer.suspend(() => Layer.effect(WebhookHolds, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const notifications = yield* Notifications
  const wakeUps = yield* WakeUps

  const lock = Effect.fnUntraced(function* (id: WebhookId) {
    const [row] = yield* sql<Row>`
      select id::text as webhook_id, account_id::text as account_id, url, is_active, paused_at, paused_by, paused_under,
        version
      from webhooks where id = ${id}::uuid and deleted_at is null for update`
    return row ?? null
  })

  const record = ({ webhook_id }: Row, action: "paused" | "resumed" | "kicked", by: Acting, more: object = {}) =>
    audit.append({
      action: `webhook.${action}`,
      actor: by.actor,
      subject: `webhook:${webhook_id}`,
      outcome: "done",
      details: { ...by.details, ...more },
    })

  const tell = ({ account_id, url, webhook_id }: Row, title: string, what: string) =>
    notifications.announce({
      accountId: account_id,
      category: "alerts",
      severity: "warning",
      title,
      body: `An operator of this installation ${what} the webhook to ${shownUrl(url)}`,
      href: appPath("webhook", { webhook_id }),
      coalesceKey: `webhook-paused.${webhook_id}`,
    })

  const write = ({ version, webhook_id }: Row, to: Partial<Row> & Pick<Row, "is_active">, now: Date) =>
    sql`update webhooks set is_active = ${to.is_active}, paused_at = ${to.paused_at ?? null},
        paused_by = ${to.paused_by ?? null}, paused_under = ${to.paused_under ?? null},
        judged_from = case when ${to.is_active} then ${now} else judged_from end, version = version + 1,
        updated_at = ${now}
      where id = ${webhook_id}::uuid and version = ${version}`

  const viewOf = ({ paused_under: _, version: __, ...row }: Row): OperatedWebhook => row

  const pause: WebhookHolds["Service"]["pause"] = Effect.fn("WebhookHolds.pause")(function* (id, by) {
    const row = yield* lock(id)
    if (row === null) return null
    if (!row.is_active && row.paused_by === "operator") return "paused_by_operator"
    const now = new Date(yield* Clock.currentTimeMillis)
    const under = row.is_active ? null : row.paused_by ?? "owner"
    const paused = { ...row, is_active: false, paused_at: now, paused_by: "operator", paused_under: under } as const
    yield* write(row, paused, now)
    yield* sql`update webhook_lanes set paused = true where webhook_id = ${id}::uuid`
    yield* record(row, "paused", by)
    yield* tell(row, "A webhook was paused by an operator", "paused")
    return viewOf(paused)
  })

  const resume: WebhookHolds["Service"]["resume"] = Effect.fn("WebhookHolds.resume")(function* (id, by) {
    const row = yield* lock(id)
    if (row === null) return null
    if (row.is_active) return "active"
    if (row.paused_by === "owner" || row.paused_by === null) return "paused_by_owner"
    const now = new Date(yield* Clock.currentTimeMillis)
    const under = row.paused_by === "operator" ? row.paused_under : null
    const active = under === null
    const next = { ...row, is_active: active, paused_at: active ? null : now, paused_by: under, paused_under: null }
    yield* write(row, next, now)
    if (active) {
      // As a resumption by the account does, leave the next due time to the scan.
      yield* sql`update webhook_lanes set paused = false, next_due_at = ${now} where webhook_id = ${id}::uuid`
      yield* sql.afterCommit(wakeUps.notify(dueTopic))
    }
    yield* record(row, "resumed", by)
    yield* tell(row, "A webhook was resumed by an operator", active ? "resumed" : "no longer pauses")
    return viewOf(next)
  })

  const kick: WebhookHolds["Service"]["kick"] = Effect.fn("WebhookHolds.kick")(function* (id, by) {
    const row = yield* lock(id)
    if (row === null) return null
    if (!row.is_active) return row.paused_by === null ? "paused" : `paused_by_${row.paused_by}` as const
    const now = new Date(yield* Clock.currentTimeMillis)
    // A claimed one is under way. One that another command holds is left to it.
    const waiting = yield* sql<{ id: string }>`
      select delivery_id::text as id from delivery_queue
      where webhook_id = ${id}::uuid and claim is null and due_at > ${now}
      order by due_at limit ${mostKicked} for update skip locked`
    const ids = waiting.map((one) => one.id)
    if (ids.length > 0) {
      yield* sql`update delivery_queue set due_at = ${now} where delivery_id = any(${ids}::uuid[])`
      // Null before the first attempt. No other process changes the rows while the queue's are locked and unclaimed.
      yield* sql`
        update deliveries set next_retry_at = ${now} where id = any(${ids}::uuid[]) and next_retry_at > ${now}`
    }
    // Also where nothing waits: it is what finds a queue state that was lost.
    yield* makeQueueDue(sql, id, now)
    yield* record(row, "kicked", by, { deliveries: ids.length })
    yield* sql.afterCommit(wakeUps.notify(dueTopic))
    return { deliveries: ids.length }
  })

  return WebhookHolds.of({ pause, resume, kick })
})
