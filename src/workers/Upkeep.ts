/** What is done now and then: partitions and prunes, folds, jobs, limits. Any number of processes may do it. */
import { Effect, Layer } from "effect"
import { Retention } from "../../services/notifications/Retention.ts"
import { clientSessions } from "../../services/people/ClientSessions.ts"
import { CredentialActions } from "../../services/people/CredentialActions.ts"
import { linkNews } from "../../services/links/Links/News.ts"
import { PersonNews } from "../../services/people/PersonNews.ts"
import { Retention as PeopleRetention } from "../../services/people/Retention.ts"
import { Tellings } from "../../services/people/Tellings.ts"
import { AuditPartitions } from "../../services/platform/observability/AuditPartitions.ts"
import { Bells } from "../../services/platform/messaging/Bells.ts"
import { Jobs, jobsTopic } from "../../services/platform/messaging/Jobs.ts"
import { RateLimits } from "../../services/platform/security/RateLimits.ts"
import { Rejects } from "../../services/platform/messaging/Rejects.ts"
import { Counts } from "../../services/webhooks/Counts.ts"
import { Partitions } from "../../services/webhooks/Partitions.ts"
import { latePartitions } from "../../services/webhooks/PartitionWatch.ts"
import { WebhookJobs } from "../../services/webhooks/WebhookJobs.ts"
import { every, loop } from "./Loop.ts"

const minute = 60_000
const hour = 60 * minute

/** Whichever process keeps the partitions: this one may be without the owner's role. */
const watch = Effect.flatMap(latePartitions, (late) => late === null ? Effect.void : Effect.logWarning(late))

export const Upkeep = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const bells = yield* Bells
    const counts = yield* Counts
    const jobs = yield* Jobs
    const limits = yield* RateLimits
    const partitions = yield* Partitions
    const auditMonths = yield* AuditPartitions
    const rejects = yield* Rejects
    const retention = yield* Retention
    const { workers } = yield* WebhookJobs
    const news = yield* PersonNews
    const tellings = yield* Tellings
    const { worker: ends } = yield* clientSessions
    const { worker: links } = yield* linkNews()
    const people = yield* PeopleRetention
    const actions = yield* CredentialActions

    // Before anybody is told that this is ready: a write that was planned while its day's partition was made is refused.
    for (const first of [partitions.upkeep, auditMonths.upkeep]) {
      yield* first.pipe(Effect.catchCause((cause) => Effect.logWarning("partitions failed", cause)))
    }
    // Days are made behind a lock that everybody waits for who waits behind it. Where somebody reads for long, as a backup
    // does, it is not had, and asked for every second it would stand in the way most of the time; there are days ahead.
    yield* every("partitions", hour, partitions.upkeep, minute)
    yield* every("audit months", hour, auditMonths.upkeep, minute)
    yield* every("partition watch", 0, Effect.delay(watch, hour), minute)
    yield* every("event memory", 24 * hour, partitions.forget)
    yield* every("notifications", hour, retention.prune)
    yield* every("people retention", hour, people.prune)
    yield* every("credential actions", 600_000, actions.expire)
    yield* every("rejects", hour, rejects.prune)
    yield* loop("counts", { wait: (max) => Effect.sleep(max) }, 5_000, counts.fold)
    yield* loop(
      "jobs",
      yield* bells.bell(jobsTopic),
      1_000,
      jobs.work([...workers, news.worker, tellings.worker, ends, links]),
    )
    yield* every("jobs' leases", 5_000, jobs.free)
    yield* every("done jobs", hour, jobs.prune)
    yield* loop("rate limits", { wait: (max) => Effect.sleep(max) }, 60_000, limits.prune)
  })).pipe(Layer.provide(PeopleRetention.layer())),
}
