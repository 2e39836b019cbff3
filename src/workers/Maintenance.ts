/**
 * Periodic maintenance: partitions, retention, count compaction, jobs and rate limits. Any number of processes may run
 * it.
 */
import { Effect, Layer } from "effect"
import { pruneConsoleSessions } from "../../services/console/ConsoleSessions.ts"
import { pruneEmbedLinks } from "../../services/console/EmbedLinks.ts"
import { NotificationRetention } from "../../services/notifications/NotificationRetention.ts"
import { clientSessions } from "../../services/people/ClientSessions.ts"
import { pruneAssertions } from "../../services/people/Assertions/PruneAssertions.ts"
import { CredentialActions } from "../../services/people/CredentialActions.ts"
import { linkEventFanout } from "../../services/links/Links/LinkEventFanout.ts"
import { PersonEventFanout } from "../../services/people/PersonEventFanout.ts"
import { PeopleRetention as PeopleRetention } from "../../services/people/PeopleRetention.ts"
import { SecurityEventFanout } from "../../services/people/SecurityEventFanout.ts"
import { endCampaigns } from "../../services/decisions/Campaigns/EndedCampaigns.ts"
import { pruneNotices } from "../../services/requests/PersonNotices.ts"
import { addMissingCalls } from "../../services/requests/SignatureCalls.ts"
import { AuditPartitions } from "../../services/platform/observability/AuditPartitions.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Jobs, jobsTopic } from "../../services/platform/messaging/Jobs.ts"
import { RateLimits } from "../../services/platform/security/RateLimits.ts"
import { pruneSignals } from "../../services/signals/SignalReceiver.ts"
import { pruneRefusals } from "../../services/signals/SignalRefusals.ts"
import { pruneAccountReceipts } from "../../services/platform/security/ReceiptRetention.ts"
import { RejectedMessages } from "../../services/platform/messaging/RejectedMessages.ts"
import { CountCompaction } from "../../services/webhooks/CountCompaction.ts"
import { FailingWebhooks } from "../../services/webhooks/FailingWebhooks.ts"
import { DeliveryStats } from "../../services/webhooks/DeliveryStats.ts"
import { Partitions } from "../../services/webhooks/Partitions.ts"
import { latePartitions } from "../../services/webhooks/PartitionWatch.ts"
import { WebhookJobs } from "../../services/webhooks/WebhookJobs.ts"
import { every, loop } from "./Loop.ts"

const minute = 60_000
const hour = 60 * minute

/**
 * Warns of late partitions: this process may lack the owner's role, and so depend on another process to create them.
 */
const watch = Effect.flatMap(latePartitions, (late) => late === null ? Effect.void : Effect.logWarning(late))

export const Maintenance = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const wakeUps = yield* WakeUps
    const counts = yield* CountCompaction
    const stats = yield* DeliveryStats
    const failing = yield* FailingWebhooks
    const jobs = yield* Jobs
    const limits = yield* RateLimits
    const partitions = yield* Partitions
    const auditMonths = yield* AuditPartitions
    const rejects = yield* RejectedMessages
    const retention = yield* NotificationRetention
    const { workers } = yield* WebhookJobs
    const personEvents = yield* PersonEventFanout
    const securityEvents = yield* SecurityEventFanout
    const { worker: ends } = yield* clientSessions
    const { worker: links } = yield* linkEventFanout()
    const people = yield* PeopleRetention
    const actions = yield* CredentialActions

    // Create partitions before the process reports ready: PostgreSQL refuses a write that was planned while its day's
    // partition was being created.
    for (const first of [partitions.upkeep, auditMonths.upkeep]) {
      yield* first.pipe(Effect.catchCause((cause) => Effect.logWarning("partitions failed", cause)))
    }
    // Creating a partition takes a lock, and every later statement on the table queues behind that request. During a
    // long read, such as a backup's, the lock is not granted; requesting it every second would block the table most of
    // the time. So a failed turn waits a minute; partitions exist days ahead.
    yield* every("partitions", hour, partitions.upkeep, minute)
    yield* every("audit months", hour, auditMonths.upkeep, minute)
    yield* every("partition watch", 0, Effect.delay(watch, hour), minute)
    yield* every("event memory", 24 * hour, partitions.forget)
    yield* every("notifications", hour, retention.prune)
    yield* every("people retention", hour, people.prune)
    yield* every("console sessions", hour, pruneConsoleSessions)
    yield* every("embed links", hour, pruneEmbedLinks)
    yield* every("people's notices", hour, pruneNotices)
    yield* every("calls of signers", hour, addMissingCalls)
    yield* every("ended campaigns", minute, endCampaigns)
    yield* every("account receipts", hour, pruneAccountReceipts)
    yield* every("signals", hour, Effect.andThen(pruneSignals, pruneRefusals))
    yield* every("credential actions", 600_000, actions.expire)
    yield* every("assertions", 600_000, pruneAssertions)
    yield* every("rejects", hour, rejects.prune)
    yield* every("delivery minutes", hour, stats.prune)
    yield* every("failing webhooks", minute, failing.tell)
    yield* loop("counts", { wait: (max) => Effect.sleep(max) }, 5_000, counts.compact)
    yield* loop(
      "jobs",
      yield* wakeUps.waiter(jobsTopic),
      1_000,
      jobs.work([...workers, personEvents.worker, securityEvents.worker, ends, links]),
    )
    yield* every("jobs' leases", 5_000, jobs.free)
    yield* every("done jobs", hour, jobs.prune)
    yield* every("rate limits", minute, limits.prune)
  })).pipe(Layer.provide(PeopleRetention.layer())),
}
