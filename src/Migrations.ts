/**
 * Forward-only migrations, run by the owner's role under the migrator's table lock, so that any number of processes may
 * start at once. The program's own role is then granted no more than it needs: no UPDATE or DELETE on append-only
 * tables. A process without the owner's role waits until another process has migrated.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Option, Schedule, Schema } from "effect"
import { SqlRunnerStorage } from "effect/cluster"
import { Migrator, SqlClient, SqlError } from "effect/sql"
import platform from "../migrations/0001_platform.ts"
import outbox from "../migrations/0002_outbox.ts"
import accounts from "../migrations/0003_accounts.ts"
import webhooks from "../migrations/0004_webhooks.ts"
import auditLookup from "../migrations/0005_audit_lookup.ts"
import mails from "../migrations/0006_mails.ts"
import transfers from "../migrations/0007_transfers.ts"
import notifications from "../migrations/0008_notifications.ts"
import identity from "../migrations/0009_identity.ts"
import unfollowed from "../migrations/0010_unfollowed.ts"
import people from "../migrations/0011_people.ts"
import requests from "../migrations/0012_requests.ts"
import accessReviews from "../migrations/0013_access_reviews.ts"
import provider from "../migrations/0014_provider.ts"
import lifecycle from "../migrations/0015_lifecycle.ts"
import streams from "../migrations/0016_streams.ts"
import keys from "../migrations/0017_keys.ts"
import epochs from "../migrations/0018_epochs.ts"
import retention from "../migrations/0019_retention.ts"
import clientFloors from "../migrations/0020_client_floors.ts"
import given from "../migrations/0021_given.ts"
import independence from "../migrations/0022_independence.ts"
import decidedWhole from "../migrations/0023_decided_whole.ts"
import mergedNames from "../migrations/0024_merged_names.ts"
import jobLeases from "../migrations/0025_job_leases.ts"
import auditMonths from "../migrations/0026_audit_months.ts"
import reads from "../migrations/0027_reads.ts"
import missingMessages from "../migrations/0028_missing_messages.ts"
import growth from "../migrations/0029_growth.ts"
import lapsedReviews from "../migrations/0030_lapsed_reviews.ts"
import listeners from "../migrations/0031_listeners.ts"
import seenIds from "../migrations/0032_seen_ids.ts"
import fences from "../migrations/0033_fences.ts"
import bucketsUnlogged from "../migrations/0034_buckets_unlogged.ts"
import listedReviews from "../migrations/0036_listed_reviews.ts"
import policyReviews from "../migrations/0037_policy_reviews.ts"
import linkRequests from "../migrations/0038_link_requests.ts"
import firstAttempts from "../migrations/0039_first_attempts.ts"
import deliveryPages from "../migrations/0040_delivery_pages.ts"
import auditIndexes from "../migrations/0041_audit_indexes.ts"
import consoleSessions from "../migrations/0042_console_sessions.ts"
import listedEnrollments from "../migrations/0043_listed_enrollments.ts"
import deadLettersOfAccount from "../migrations/0044_dead_letters_of_account.ts"
import deliveryMinutes from "../migrations/0045_delivery_minutes.ts"
import listedLaunches from "../migrations/0046_listed_launches.ts"
import operatorLists from "../migrations/0047_operator_lists.ts"
import embedLinks from "../migrations/0048_embed_links.ts"
import octavesOfAttempts from "../migrations/0061_octaves_of_attempts.ts"
import webhookHealth from "../migrations/0062_webhook_health.ts"
import accountReceipts from "../migrations/0063_account_receipts.ts"
import oldestProgram from "../migrations/0067_oldest_program.ts"
import steppedMigrations from "../migrations/0068_stepped_migrations.ts"
import pastAccess from "../migrations/0080_past_access.ts"
import customHeaders from "../migrations/0081_custom_headers.ts"
import retryAfter from "../migrations/0082_retry_after.ts"
import rateLimit from "../migrations/0083_rate_limit.ts"
import failingWebhooks from "../migrations/0084_failing_webhooks.ts"
import attemptAnswers from "../migrations/0085_attempt_answers.ts"
import missedEvents from "../migrations/0086_missed_events.ts"
import personNotices from "../migrations/0100_person_notices.ts"
import signatureCalls from "../migrations/0101_signature_calls.ts"
import operators from "../migrations/0102_operators.ts"
import pendingLeaves from "../migrations/0103_pending_leaves.ts"
import transparencyLog from "../migrations/0104_transparency_log.ts"
import ownDecisions from "../migrations/0105_own_decisions.ts"
import stoppedByWhom from "../migrations/0106_stopped_by_whom.ts"
import platformLists from "../migrations/0107_platform_lists.ts"
import secretAge from "../migrations/0108_secret_age.ts"
import logWitnesses from "../migrations/0112_log_witnesses.ts"
import grantCalls from "../migrations/0113_grant_calls.ts"
import signals from "../migrations/0114_signals.ts"
import assertions from "../migrations/0115_assertions.ts"
import auditors from "../migrations/0116_auditors.ts"
import authenticatorResets from "../migrations/0118_authenticator_resets.ts"
import accessEnds from "../migrations/0119_access_ends.ts"
import accessConfirmations from "../migrations/0120_access_confirmations.ts"
import accessRevocations from "../migrations/0121_access_revocations.ts"
import campaigns from "../migrations/0122_campaigns.ts"
import campaignCalls from "../migrations/0123_campaign_calls.ts"
import backfills from "../migrations/0124_backfills.ts"
import decidedRequests from "../migrations/0130_decided_requests.ts"
import failedBites from "../migrations/0131_failed_bites.ts"
import findingHours from "../migrations/0132_finding_hours.ts"
import signedEnds from "../migrations/0133_signed_ends.ts"
import ownMatters from "../migrations/0134_own_matters.ts"
import endedCampaigns from "../migrations/0135_ended_campaigns.ts"
import signalRefusals from "../migrations/0136_signal_refusals.ts"
import requestsPerson from "../migrations/0137_requests_person.ts"
import newestDecided from "../migrations/0138_newest_decided.ts"
import plainIdChecks from "../migrations/0139_plain_id_checks.ts"
import suppliedMessages from "../migrations/0155_supplied_messages.ts"
import refusalCounts from "../migrations/0156_refusal_counts.ts"
import lostFromEpoch from "../migrations/0165_lost_from_epoch.ts"
import closedAt from "../migrations/0166_closed_at.ts"
import { lock } from "../services/platform/database/AdvisoryLocks.ts"
import type { Backfill } from "../services/platform/database/Backfills.ts"
import { Database } from "../services/platform/database/Database.ts"
import { isAway } from "../services/platform/database/Database/Awaited.ts"
import { allowLonger } from "../services/platform/database/Database/StalledConnections.ts"
import { ReadOnly, refusalOf, schemaVersion, TooNew } from "../services/platform/database/VersionFence.ts"
import { inTurn } from "../services/platform/database/RetryOnLockTimeout.ts"
import { type Filling, meet, refuseUnfilled } from "./MigrationBackfills.ts"
import { isRecorded, runSteps } from "./MigrationSteps.ts"
import { cliCommand } from "../services/platform/CommandSpelling.ts"

/**
 * A migration: an effect that runs in one transaction, or statements that are steps (MigrationSteps.ts). Either runs once
 * the backfills that it needs are finished.
 */
export type Migration = readonly [
  id: number,
  name: string,
  work: Migrator.ResolvedMigration[2] | ReadonlyArray<string>,
  needs?: ReadonlyArray<Backfill>,
]

export const migrations: ReadonlyArray<Migration> = [
  [1, "platform", Effect.succeed(platform)],
  [2, "outbox", Effect.succeed(outbox)],
  [3, "accounts", Effect.succeed(accounts)],
  [4, "webhooks", Effect.succeed(webhooks)],
  [5, "audit_lookup", Effect.succeed(auditLookup)],
  [6, "mails", Effect.succeed(mails)],
  [7, "transfers", Effect.succeed(transfers)],
  [8, "notifications", Effect.succeed(notifications)],
  [9, "identity", Effect.succeed(identity)],
  [10, "unfollowed", Effect.succeed(unfollowed)],
  [11, "people", Effect.succeed(people)],
  [12, "requests", Effect.succeed(requests)],
  [13, "access_reviews", Effect.succeed(accessReviews)],
  [14, "provider", Effect.succeed(provider)],
  [15, "lifecycle", Effect.succeed(lifecycle)],
  [16, "streams", Effect.succeed(streams)],
  [17, "keys", Effect.succeed(keys)],
  [18, "epochs", Effect.succeed(epochs)],
  [19, "retention", Effect.succeed(retention)],
  [20, "client_floors", Effect.succeed(clientFloors)],
  [21, "given", Effect.succeed(given)],
  [22, "independence", Effect.succeed(independence)],
  [23, "decided_whole", Effect.succeed(decidedWhole)],
  [24, "merged_names", Effect.succeed(mergedNames)],
  [25, "job_leases", Effect.succeed(jobLeases)],
  [26, "audit_months", Effect.succeed(auditMonths)],
  [27, "reads", Effect.succeed(reads)],
  [28, "missing_messages", Effect.succeed(missingMessages)],
  [29, "growth", Effect.succeed(growth)],
  [30, "lapsed_reviews", Effect.succeed(lapsedReviews)],
  [31, "listeners", Effect.succeed(listeners)],
  [32, "seen_ids", Effect.succeed(seenIds)],
  [33, "fences", Effect.succeed(fences)],
  [34, "buckets_unlogged", Effect.succeed(bucketsUnlogged)],
  [36, "listed_reviews", Effect.succeed(listedReviews)],
  [37, "policy_reviews", Effect.succeed(policyReviews)],
  [38, "link_requests", Effect.succeed(linkRequests)],
  [39, "first_attempts", Effect.succeed(firstAttempts)],
  [40, "delivery_pages", Effect.succeed(deliveryPages)],
  [41, "audit_indexes", Effect.succeed(auditIndexes)],
  [42, "console_sessions", Effect.succeed(consoleSessions)],
  [43, "listed_enrollments", Effect.succeed(listedEnrollments)],
  [44, "dead_letters_of_account", Effect.succeed(deadLettersOfAccount)],
  [45, "delivery_minutes", Effect.succeed(deliveryMinutes)],
  [46, "listed_launches", Effect.succeed(listedLaunches)],
  [47, "operator_lists", Effect.succeed(operatorLists)],
  [48, "embed_links", Effect.succeed(embedLinks)],
  [61, "octaves_of_attempts", Effect.succeed(octavesOfAttempts)],
  [62, "webhook_health", Effect.succeed(webhookHealth)],
  [63, "account_receipts", Effect.succeed(accountReceipts)],
  [67, "oldest_program", Effect.succeed(oldestProgram)],
  [68, "stepped_migrations", Effect.succeed(steppedMigrations)],
  [80, "past_access", pastAccess],
  [81, "custom_headers", customHeaders],
  [82, "retry_after", retryAfter],
  [83, "rate_limit", rateLimit],
  [84, "failing_webhooks", failingWebhooks],
  [85, "attempt_answers", attemptAnswers],
  [86, "missed_events", missedEvents],
  [100, "person_notices", Effect.succeed(personNotices)],
  [101, "signature_calls", Effect.succeed(signatureCalls)],
  [102, "operators", operators],
  [103, "pending_leaves", pendingLeaves],
  [104, "transparency_log", transparencyLog],
  [105, "own_decisions", ownDecisions],
  [106, "stopped_by_whom", stoppedByWhom],
  [107, "platform_lists", platformLists],
  [108, "secret_age", secretAge],
  [112, "log_witnesses", logWitnesses],
  [113, "grant_calls", grantCalls],
  [114, "signals", signals],
  [115, "assertions", assertions],
  [116, "auditors", auditors],
  [118, "authenticator_resets", authenticatorResets],
  [119, "access_ends", accessEnds],
  [120, "access_confirmations", accessConfirmations],
  [121, "access_revocations", accessRevocations],
  [122, "campaigns", campaigns],
  [123, "campaign_calls", campaignCalls],
  [124, "backfills", backfills],
  [130, "decided_requests", decidedRequests],
  [131, "failed_bites", failedBites],
  [132, "finding_hours", findingHours],
  [133, "signed_ends", signedEnds],
  [134, "own_matters", ownMatters],
  [135, "ended_campaigns", endedCampaigns],
  [136, "signal_refusals", signalRefusals],
  [137, "requests_person", requestsPerson],
  [138, "newest_decided", newestDecided],
  [139, "plain_id_checks", plainIdChecks],
  [155, "supplied_messages", suppliedMessages],
  [156, "refusal_counts", refusalCounts],
  [165, "lost_from_epoch", lostFromEpoch],
  [166, "closed_at", closedAt],
]

/** The number of the newest migration. */
export const newest = Math.max(...migrations.map(([id]) => id))

/** Tables of the cluster, made by a migrator of Effect's. They name running processes, so backups leave them out. */
const cluster = { tables: ["cluster_runners", "cluster_locks"], migrations: "cluster_runner_migrations" } as const

/** Every table that this program expects. */
export const tables: ReadonlyArray<string> = [
  "schema_meta",
  "audit_records",
  "vault_keys",
  "rate_limits",
  "jobs",
  "mails",
  "outbox",
  "outbox_lanes",
  "relay_streams",
  "supplied_messages",
  "accounts",
  "workspaces",
  "workspace_memberships",
  "domains",
  "broadcasts",
  "scheduled_emails",
  "smtp_credentials",
  "api_keys",
  "demo_rows",
  "webhooks",
  "webhook_lanes",
  "webhook_health",
  "events",
  "missed_events",
  "deliveries",
  "attempts",
  "delivery_queue",
  "delivery_counts",
  "delivery_minutes",
  "dead_letters",
  "seen_events",
  "seen_ids",
  "intake_rejects",
  "inboxes",
  "notifications",
  "notification_preferences",
  "slack_messages",
  "transfers",
  "timers",
  "dkim_keys",
  "transfer_feature",
  "people",
  "identities",
  "institutions",
  "institution_memberships",
  "projects",
  "project_owners",
  "project_links",
  "access",
  "access_versions",
  "access_ends",
  "access_confirmations",
  "campaigns",
  "campaign_items",
  "lifecycle_heads",
  "lifecycle_events",
  "lifecycle_state",
  "idempotency_receipts",
  "sessions",
  "session_floors",
  "client_floors",
  "authenticators",
  "recovery_codes",
  "credential_intents",
  "authenticator_assertions",
  "authenticator_lockouts",
  "console_sessions",
  "embed_links",
  "link_proofs",
  "rate_buckets",
  "access_reviews",
  "access_review_evidence",
  "service_grants",
  "provider_jobs",
  "provider_clients",
  "client_drift",
  "embedded_clients",
  "worker_sightings",
  "signing_keys",
  "lifecycle_messages",
  "lifecycle_signed",
  "lifecycle_consumers",
  "lifecycle_key_news",
  "lifecycle_project_keys",
  "lifecycle_key_places",
  "lifecycle_streams",
  "lifecycle_stream_subjects",
  "lifecycle_stream_settled",
  "lifecycle_stream_failing",
  "lifecycle_stream_messages",
  "lifecycle_places",
  "lifecycle_snapshot_parts",
  "lifecycle_drift",
  "lifecycle_drift_looks",
  "lifecycle_given",
  "lifecycle_attempts",
  "requests",
  "policy_reviews",
  "policy_approvals",
  "person_notices",
  "notice_settings",
  "signature_calls",
  "installation",
  "finding_times",
  "log_pending",
  "log_entries",
  "log_tiles",
  "log_head",
  "log_keys",
  "log_witnesses",
  "signal_events",
  "signal_polls",
  "signal_refusals",
  "signal_refusal_counts",
  "person_holds",
  "backfills",
]

/** Tables whose rows the program may add but never change: partitions and prunes are the owner's work. */
const appendOnly = [
  "audit_records",
  "events",
  "access_versions",
  "access_ends",
  "access_confirmations",
  "lifecycle_events",
  "lifecycle_places",
  "access_review_evidence",
  "policy_approvals",
  "log_entries",
]

/** Tables that a migration writes and the program only reads. */
const readOnly = ["schema_meta", "effect_sql_migrations", "stepped_migrations", cluster.migrations]

/** All relations of the schema: tables, views, partitions, the migrators' own tables and the cluster's. */
const relations = (owner: PgClient.PgClient) =>
  owner<{ name: string; view: boolean; partition: boolean }>`
    select c.relname as name, c.relkind = 'v' as view, c.relispartition as partition from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v')`

/**
 * Grants the program's role what it needs, and revokes what an older version granted. Partitions get no grants: a
 * statement on the parent table needs none, and a statement on the partition itself would bypass `appendOnly`.
 */
const grant = Effect.fnUntraced(function* (owner: PgClient.PgClient, role: string) {
  const app = owner(role)
  const names = (of: ReadonlyArray<string>) => owner.literal(of.map((name) => `"${name}"`).join(", "))
  const found = yield* relations(owner)
  // Readiness reports missing tables, and the start waits for them.
  const there = [...tables, ...cluster.tables].filter((table) => found.some(({ name }) => name === table))
  const kept = appendOnly.filter((table) => there.includes(table))
  const closed = found.filter(({ name, partition, view }) => view || partition || name.endsWith("_migrations"))
  // A backup of an older schema has not all of them (`cli restore`).
  const closedToWrites = readOnly.filter((table) => found.some(({ name }) => name === table))
  const read = [...closedToWrites, ...found.filter(({ view }) => view).map(({ name }) => name)]
  yield* owner`grant usage on schema public to ${app}`
  yield* owner`revoke all on ${names(closed.map(({ name }) => name))} from ${app}`
  yield* owner`grant select, insert, update, delete on ${names(there)} to ${app}`
  yield* owner`revoke update, delete on ${names(kept)} from ${app}`
  yield* owner`revoke insert, update, delete on ${names(closedToWrites)} from ${app}`
  yield* owner`grant select on ${names(read)} to ${app}`
  yield* owner`grant usage, select on all sequences in schema public to ${app}`
})

/** Grants under a lock: concurrent starts would update the same catalogue rows, and one of them would fail. */
const grantAlone = (owner: PgClient.PgClient, role: string) =>
  lock(owner, "grants").pipe(
    Effect.andThen(grant(owner, role)),
    owner.withTransaction,
    inTurn,
    Effect.retry({ times: 5 }),
  )

/** DATABASE_OWNER_URL, or DATABASE_URL without it, names a role that does not own the tables. */
export class NotOwner extends Schema.TaggedError<NotOwner>()("NotOwner", { message: Schema.String }) {}

const roleOf = (sql: PgClient.PgClient) =>
  Effect.map(sql<{ role: string }>`select current_user::text as role`, ([row]) => row!.role)

/** Makes the tables of Effect Cluster, by its own migrator. */
export const migrateCluster = (owner: PgClient.PgClient) =>
  lock(owner, "clusterTables").pipe(
    Effect.andThen(Migrator.make({})({ loader: SqlRunnerStorage.migrations({}), table: cluster.migrations })),
    Effect.provideService(SqlClient.SqlClient, owner),
    owner.withTransaction,
    inTurn,
  )

/** Fails with ReadOnly where the database takes no writes, with TooNew where the schema admits newer programs only. */
const admit = Effect.gen(function* () {
  const found = yield* inTurn(schemaVersion)
  if (found.readOnly) return yield* new ReadOnly({ message: refusalOf(newest, found)! })
  if (found.minApp > newest) return yield* new TooNew({ message: refusalOf(newest, found)! })
  if (found.applied > newest) {
    yield* Effect.logWarning(
      `the database has migration ${found.applied}, which is newer than this program's ${newest} and admits it`,
    )
  }
})

/** Runs effects in one transaction up to the next migration in steps, in the order of `list`. */
export const apply = Effect.fnUntraced(function* (
  owner: PgClient.PgClient,
  list: ReadonlyArray<Migration>,
  fill: Filling = refuseUnfilled,
) {
  const applied: Array<readonly [number, string]> = []
  const whole: Array<Migrator.ResolvedMigration> = []
  const inOne = Effect.suspend(() => Migrator.make({})({ loader: Effect.succeed(whole) })).pipe(
    Effect.provideService(SqlClient.SqlClient, owner),
    allowLonger,
    inTurn,
  )
  for (const [id, name, work, needs = []] of list) {
    // What a migration needs is asked of the tables that the ones before it made.
    if (needs.length > 0 || !Effect.isEffect(work)) applied.push(...yield* inOne)
    if (needs.length > 0 && !(yield* isRecorded(owner, id))) yield* meet(owner, needs, fill, `${id} ${name}`)
    if (Effect.isEffect(work)) whole.push([id, name, work])
    else applied.push(...Option.toArray(yield* runSteps(owner, { id, name, statements: work })))
  }
  applied.push(...yield* inOne)
  return applied
})

/**
 * Applies the missing migrations, up to one of them, and returns their names. Fails with ReadOnly, TooNew, NotOwner and
 * Unfilled.
 */
export const migrateWith = Effect.fn("migrate")(function* (fill: Filling, upTo = newest) {
  const { owner, owns, sql } = yield* Database
  if (!(yield* owns)) {
    const message = `${yield* roleOf(owner)} does not own the tables: set DATABASE_OWNER_URL to the role that does`
    return yield* new NotOwner({ message })
  }
  yield* admit
  const applied = yield* apply(owner, migrations.filter(([id]) => id <= upTo), fill)
  yield* migrateCluster(owner)
  const app = yield* roleOf(sql)
  if (app !== (yield* roleOf(owner))) yield* grantAlone(owner, app)
  return applied.map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`)
})

/** The same as at a start that other processes may serve beside: it waits for no backfill. */
export const migrate = Effect.suspend(() => migrateWith(refuseUnfilled))

/** The newest applied migration; 0 where there is none, or where the role may not read the table. */
const newestIn = Effect.fnUntraced(function* (sql: PgClient.PgClient, table: string) {
  const [found] = yield* sql<{ readable: boolean }>`
    select coalesce(has_table_privilege(to_regclass(${table}), 'select'), false) as readable`
  if (!found!.readable) return 0
  const [row] = yield* sql<{ id: number }>`select coalesce(max(migration_id), 0)::int as id from ${sql(table)}`
  return row!.id
})

/** The program's newest applied migration, as the program's role sees it. */
export const applied = Effect.flatMap(Database, ({ sql }) => newestIn(sql, "effect_sql_migrations"))

/** The part of the schema that this program needs and does not find; null: none. */
const lacks = Effect.gen(function* () {
  const { sql } = yield* Database
  const id = yield* applied
  if (id < newest) return `migration ${id} of ${newest} is applied`
  const loaded = yield* SqlRunnerStorage.migrations({}).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  const last = Math.max(...loaded.map(([n]) => n))
  return (yield* newestIn(sql, cluster.migrations)) < last ? "the cluster's tables are not there" : null
})

/**
 * Migrates as the owner. Without the owner's role, waits until another process has migrated. `fill`: what is done about a
 * backfill that a migration needs and that is not finished.
 */
export const migrated = Effect.fnUntraced(function* (fill: Filling) {
  const { owner, owns, sql } = yield* Database
  if (yield* owns) {
    // Waits like the migrator itself: another process that migrates holds the table's lock.
    const done = yield* newestIn(owner, "effect_sql_migrations").pipe(inTurn)
    const missing = migrations.filter(([id]) => id > done).length
    if (missing > 0) yield* Effect.logInfo(`migrations to apply: ${missing}`)
    return yield* Effect.asVoid(migrateWith(fill))
  }
  yield* admit
  const lacking = yield* lacks
  if (lacking === null) return
  yield* Effect.logWarning(
    `${lacking}, and ${yield* roleOf(sql)} does not own the tables: run "${cliCommand("migrate")}" ` +
      "with DATABASE_OWNER_URL; waiting until it has run",
  )
  yield* lacks.pipe(
    Effect.retry({
      schedule: Schedule.spaced("1 second"),
      while: (error) => SqlError.isSqlError(error) && isAway(error),
    }),
    Effect.repeat({ schedule: Schedule.spaced("1 second"), until: (lacking) => lacking === null }),
  )
})
