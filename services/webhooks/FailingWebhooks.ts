/**
 * Tells accounts of webhooks that have failed for five days, once an episode, and pauses these webhooks if the
 * configuration says so. An episode ends with a success, a resumption or another address. Whole minutes of attempts that
 * ended count (`webhook_health`); an attempt without an outcome, which a process here left behind, is no failure.
 *
 * One transaction a webhook: killed before its commit nothing is told, and the next turn tells it.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, WebhookId } from "../../schemas/BrandedIds.ts"
import { Notifications } from "../notifications/Notifications.ts"
import { appPath } from "../platform/AppPaths.ts"
import { lock } from "../platform/database/AdvisoryLocks.ts"
import { Database } from "../platform/database/Database.ts"
import { waitedFor } from "../platform/database/SqlErrors.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { shownUrl } from "./Webhooks/ShownUrl.ts"

export interface FailingWebhooksConfig {
  /** Whether such a webhook is paused (`WEBHOOKS_PAUSE_FAILING`). */
  readonly pause: boolean
}

/** How long every attempt must have failed, in milliseconds. */
const failingMillis = 5 * 24 * 60 * 60_000

const batch = 100

/** Whether the lock of the counts, not a webhook's row, was waited for in vain. */
const isCompacting = (error: SqlError.SqlError) =>
  error.reason._tag === "LockTimeoutError" && !waitedFor(error, "webhooks")

interface Row {
  readonly id: WebhookId
  readonly account_id: AccountId
  readonly url: string
  readonly version: number
}

export class FailingWebhooks extends Context.Service<FailingWebhooks, {
  /** Tells of up to 100 webhooks; returns of how many. One process tells of one at a time. */
  readonly tell: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/webhooks/FailingWebhooks") {
  static readonly layer = (config: FailingWebhooksConfig) => Layer.effect(FailingWebhooks, make(config))
}

const make = Effect.fnUntraced(function* ({ pause }: FailingWebhooksConfig) {
  const { sql } = yield* Database
  const audit = yield* Audit
  const notifications = yield* Notifications

  const isUntold = (now: number) =>
    sql`h.failing_since <= ${new Date(now - failingMillis)} and w.is_active and w.deleted_at is null
      and h.last_failure_at >= greatest(h.failing_since, w.judged_from) + ${`${failingMillis} milliseconds`}::interval
      and (h.failing_told_at is null or h.failing_told_at < w.judged_from)`

  const pauseWebhook = Effect.fnUntraced(function* ({ id, version }: Row, now: Date) {
    yield* sql`
      update webhooks set is_active = false, paused_at = ${now}, paused_by = 'system', version = version + 1, updated_at = ${now}
      where id = ${id}::uuid and version = ${version}`
    yield* sql`update webhook_lanes set paused = true where webhook_id = ${id}::uuid`
    yield* audit.append({ action: "webhook.paused", actor: "system", subject: `webhook:${id}`, outcome: "done" })
  })

  const noticeOf = ({ account_id, id, url }: Row) => ({
    accountId: account_id,
    category: "alerts" as const,
    severity: pause ? "critical" as const : "warning" as const,
    title: pause ? "A failing webhook was paused" : "A webhook has failed for five days",
    body: `No delivery to ${shownUrl(url)} has succeeded for five days` +
      (pause
        ? ", so the webhook was paused: what is due waits until you resume it; events that arrive meanwhile make no delivery."
        : ". A delivery that fails eight times becomes a dead letter."),
    href: appPath("webhook", { webhook_id: id }),
    coalesceKey: `webhook-failing.${id}`,
  })

  const tellOf = Effect.fnUntraced(function* (webhookId: WebhookId) {
    // No minutes are compacted meanwhile: a success is in the health, or in a minute that is not. A compaction that is in
    // progress is waited for: both begin with the process, and the notice came a minute late.
    yield* lock(sql, "counts")
    // The wait may have taken seconds.
    const millis = yield* Clock.currentTimeMillis
    const now = new Date(millis)
    const [row] = yield* sql<Row>`
      select w.id, w.account_id, w.url, w.version
      from webhooks w join webhook_health h on h.webhook_id = w.id
      where w.id = ${webhookId}::uuid and ${isUntold(millis)} and not exists (
        select from delivery_minutes m where m.webhook_id = w.id and not m.folded and m.outcome = 'delivered'
      ) for update of w`
    if (row === undefined) return 0
    if (pause) yield* pauseWebhook(row, now)
    yield* sql`update webhook_health set failing_told_at = ${now} where webhook_id = ${row.id}::uuid`
    yield* notifications.announce(noticeOf(row))
    yield* sql.afterCommit(faultPoint("failing.committed"))
    yield* faultPoint("failing.written")
    return 1
  }, sql.withTransaction)

  const tell = Effect.gen(function* () {
    const rows = yield* sql<{ readonly id: WebhookId }>`
      select w.id from webhook_health h join webhooks w on w.id = h.webhook_id
      where ${isUntold(yield* Clock.currentTimeMillis)} order by h.failing_since limit ${batch}`
    let told = 0
    for (const { id } of rows) {
      const one = yield* tellOf(id).pipe(
        // A row that another transaction holds for long must not delay the other webhooks; a compaction delays each.
        Effect.catch((error) =>
          Effect.as(
            Effect.logWarning("a failing webhook was not told of, it is tried again", error),
            isCompacting(error) ? null : 0,
          )
        ),
      )
      if (one === null) break
      told += one
    }
    return told
  })

  return FailingWebhooks.of({ tell })
})
