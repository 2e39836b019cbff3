/** Checks the database: its version, its schema, and whether due work is done. */
import { Clock, Effect } from "effect"
import { type BackfillProgress, progressOf, progressText } from "../../services/platform/database/Backfills.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { refusalOf, schemaVersion } from "../../services/platform/database/VersionFence.ts"
import { newest, tables } from "../Migrations.ts"
import { latePartitions } from "../../services/webhooks/PartitionWatch.ts"
import { fail, type Finding, note, ok, warn } from "./Finding.ts"
import { installation } from "./InstallationCheck.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const oldestMajor = 15
/** Work that is overdue for longer than this has no worker, or too few. */
const lateMillis = 60_000
const noticeableMillis = 2_000

const version = Effect.gen(function* () {
  const { sql } = yield* Database
  const [row] = yield* sql<{ number: number; name: string }>`
    select current_setting('server_version_num')::int as number, current_setting('server_version') as name`
  const { name, number } = row!
  return Math.floor(number / 10_000) >= oldestMajor
    ? ok("database", `PostgreSQL ${name}`)
    : fail("database", `PostgreSQL ${name} is too old`, `use ${oldestMajor} or newer`)
})

const role = Effect.gen(function* () {
  const { owner, owns, sql } = yield* Database
  const [app] = yield* sql<{ role: string }>`select current_user::text as role`
  if (!(yield* owns)) return ok("roles", `${app!.role} works; migrations are left to a process with DATABASE_OWNER_URL`)
  const [own] = yield* owner<{ role: string }>`select current_user::text as role`
  return app!.role !== own!.role
    ? ok("roles", `${app!.role} works, ${own!.role} migrates`)
    : warn("roles", `${app!.role} does both`, "give DATABASE_OWNER_URL another role than DATABASE_URL")
})

const schema = Effect.gen(function* () {
  const { sql } = yield* Database
  const found = yield* schemaVersion
  const refusal = refusalOf(newest, found)
  if (refusal !== null) return fail("schema", refusal)
  const id = found.applied
  const missing = yield* sql<{ name: string }>`
    select t.name from unnest(${[...tables]}::text[]) t(name) where to_regclass(t.name) is null order by 1`
  if (missing.length > 0) {
    return fail("schema", `lacks ${missing.map((t) => t.name).join(", ")}`, "restore from a backup")
  }
  return id === newest
    ? ok("schema", `migration ${id}, ${tables.length} tables`)
    : warn("schema", `migration ${id} is newer than this program's ${newest}, and admits it`, "upgrade it")
})

const clock = Effect.gen(function* () {
  const { healthy, offsetMillis } = yield* (yield* ClockHealth).read
  const apart = `${Math.abs(offsetMillis)} ms ${offsetMillis < 0 ? "ahead of" : "behind"} the database's`
  if (!healthy) return fail("clock", `this machine is ${apart}`, "work is paused until both keep time (chrony, ntp)")
  return Math.abs(offsetMillis) > noticeableMillis
    ? warn("clock", `this machine is ${apart}`, "have both keep time (chrony, ntp)")
    : ok("clock", `this machine is ${apart}`)
})

const outbox = Effect.gen(function* () {
  const { sql } = yield* Database
  const late = new Date((yield* Clock.currentTimeMillis) - lateMillis)
  const [row] = yield* sql<{ waiting: number; late: number; failing: number; last: string | null }>`
    select count(*)::int as waiting, count(*) filter (where created_at < ${late})::int as late,
      count(last_error)::int as failing, max(last_error) as last
    from (select created_at, last_error from outbox where published_at is null limit 10000) o`
  const { failing, last, late: behind, waiting } = row!
  if (failing > 0) return warn("outbox", `${waiting} wait, ${failing} of them failed (${last})`, "look at the broker")
  return behind > 0
    ? warn("outbox", `${waiting} wait, ${behind} for over a minute`, "start an instance with the role relay")
    : ok("outbox", `${waiting} wait`)
})

const rejects = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ state: string; reason: string; n: number }>`
    select state, reason, count(*)::int as n from intake_rejects where state <> 'resolved'
    group by state, reason order by n desc, reason`
  const sum = (state: string) => rows.filter((row) => row.state === state).reduce((n, row) => n + row.n, 0)
  const counts = `${sum("waiting")} wait for their account, ${sum("rejected")} rejected`
  const reasons = rows.filter((row) => row.state === "rejected").map(({ n, reason }) => `${reason} ${n}`).join(", ")
  return reasons === ""
    ? ok("intake", counts)
    : warn("intake", `${counts} (${reasons})`, "correct the publisher; the messages are in intake_rejects")
})

const mail = Effect.gen(function* () {
  const { sql } = yield* Database
  const late = new Date((yield* Clock.currentTimeMillis) - lateMillis)
  const [row] = yield* sql<{ waiting: number; late: number; failed: number; unknown: number; last: string | null }>`
    select
      (select count(*)::int from mails where claim is null and not_before is not null) as waiting,
      (select count(*)::int from mails where claim is null and not_before < ${late}) as late,
      (select count(*)::int from mails where state = 'failed') as failed,
      (select count(*)::int from mails where state = 'unknown') as unknown,
      (select last_error from mails where state in ('failed', 'unknown') order by id desc limit 1) as last`
  const { failed, last, late: behind, unknown, waiting } = row!
  const counts = `${waiting} wait, ${failed} failed, ${unknown} of unknown outcome`
  if (failed + unknown > 0) return warn("mail", `${counts} (${last})`, "look at the mail server and SMTP_URL")
  return behind > 0
    ? warn("mail", `${counts}, ${behind} overdue for over a minute`, "start an instance with the role mail")
    : ok("mail", counts)
})

const slack = Effect.gen(function* () {
  const { sql } = yield* Database
  const late = new Date((yield* Clock.currentTimeMillis) - lateMillis)
  const [row] = yield* sql<{ waiting: number; late: number; failed: number; last: string | null }>`
    select count(*) filter (where state = 'pending')::int as waiting,
      count(*) filter (where state = 'pending' and claim is null and not_before < ${late})::int as late,
      count(*) filter (where state = 'failed')::int as failed,
      (select last_error from slack_messages where state = 'failed' order by id desc limit 1) as last
    from slack_messages`
  const { failed, last, late: behind, waiting } = row!
  const counts = `${waiting} wait, ${failed} failed in 30 days`
  if (failed > 0) return warn("slack", `${counts} (${last})`, "look at the accounts' webhooks and SLACK_HOSTS")
  return behind > 0
    ? warn("slack", `${counts}, ${behind} overdue for over a minute`, "start an instance with the role mail")
    : ok("slack", counts)
})

const workers = Effect.gen(function* () {
  const { sql } = yield* Database
  const late = new Date((yield* Clock.currentTimeMillis) - lateMillis)
  const [row] = yield* sql<{ leases: number; webhooks: number; jobs: number }>`
    select
      (select count(*)::int from (
        (select from delivery_queue where claim is not null and lease_until < ${late} limit 1000)
        union all (select from outbox where claim is not null and lease_until < ${late} limit 1000)
        union all (select from jobs where claim is not null and lease_until < ${late} limit 1000)
        union all (select from mails where claim is not null and lease_until < ${late} limit 1000)
        union all (select from slack_messages where claim is not null and lease_until < ${late} limit 1000)
      ) l) as leases,
      (select count(*)::int from webhook_lanes where not paused and next_due_at < ${late}) as webhooks,
      (select count(*)::int from jobs where state = 'pending' and claim is null and not_before < ${late}) as jobs`
  const { jobs, leases, webhooks } = row!
  const stale = [
    ...(leases > 0 ? [`${leases} ended leases that were not freed`] : []),
    ...(webhooks > 0 ? [`${webhooks} webhooks with deliveries overdue`] : []),
    ...(jobs > 0 ? [`${jobs} jobs overdue`] : []),
  ]
  return stale.length === 0
    ? ok("workers", "nothing is overdue")
    : warn("workers", `${stale.join(", ")} for over a minute`, "start an instance, or one more with the role delivery")
})

/** Work at the identity provider, of which an operator decides what failed. */
const provider = Effect.gen(function* () {
  const { sql } = yield* Database
  const [row] = yield* sql<{ waiting: number; failed: number; unknown: number }>`
    select count(*) filter (where state = 'pending')::int as waiting,
      count(*) filter (where state = 'failed')::int as failed, count(*) filter (where state = 'ambiguous')::int as unknown
    from (select state from provider_jobs where state <> 'effective' limit 10000) j`
  const { failed, unknown, waiting } = row!
  const counts = `${waiting} jobs wait, ${failed} failed, ${unknown} of unknown outcome`
  return failed + unknown === 0
    ? ok("provider", counts)
    : warn("provider", counts, `decide on each: "${cliCommand("jobs --undecided")}" lists them`)
})

const lifecycle = Effect.gen(function* () {
  const { sql } = yield* Database
  const late = new Date((yield* Clock.currentTimeMillis) - lateMillis)
  const [row] = yield* sql<{ drifted: number; projects: number; unsigned: number; failing: number }>`
    select
      (select count(*)::int from lifecycle_drift) as drifted,
      (select count(distinct project_id)::int from lifecycle_drift) as projects,
      (select count(*)::int from (
        select from lifecycle_heads h left join lifecycle_signed s on s.project_id = h.project_id
        join lateral (
          select created_at from lifecycle_events e where e.project_id = h.project_id
            and (e.epoch, e.position) > (coalesce(s.epoch, 0), coalesce(s.position, 0))
          order by e.epoch, e.position limit 1
        ) e on e.created_at < ${late}
        where s.project_id is null or (h.epoch, h.position) > (s.epoch, s.position) limit 1000
      ) u) as unsigned,
      (select count(*)::int from lifecycle_streams where failing_since is not null) as failing`
  const { drifted, failing, projects, unsigned } = row!
  const problems = [
    ...(drifted > 0
      ? [note(`${drifted} values of ${projects} projects have drifted`, `see "${cliCommand("consumers")}"`)]
      : []),
    ...(unsigned > 0
      ? [note(`${unsigned} projects unsigned for over a minute`, "start an instance with the role lifecycle")]
      : []),
    ...(failing > 0
      ? [note(`${failing} streams whose receiver accepts no events`, `see "${cliCommand("consumers")}"`)]
      : []),
  ]
  return problems.length === 0
    ? ok("lifecycle", "every event is signed, and products are told what the tables say")
    : { level: "warn", what: "lifecycle", notes: problems } satisfies Finding
})

const partitions = Effect.map(
  latePartitions,
  (late) => late === null ? ok("partitions", "made ahead") : warn("partitions", late),
)

/** An index whose CREATE INDEX CONCURRENTLY was killed costs every write, and serves no read. */
const indexes = Effect.gen(function* () {
  const { sql } = yield* Database
  const invalid = yield* sql<{ name: string }>`
    select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
    where not i.indisvalid and c.relnamespace = 'public'::regnamespace order by 1`
  return invalid.length === 0 ? ok("indexes", "every index is valid") : warn(
    "indexes",
    `${invalid.map(({ name }) => name).join(", ")} cannot be used, or not yet`,
    `type "${cliCommand("migrate")}", or REINDEX INDEX CONCURRENTLY as the owner`,
  )
})

/** When a process was last at a backfill, or is to be next: a bite that fails leaves the time of the next one. */
const attendedAt = ({ failedAt, nextAt }: BackfillProgress) => Math.max(nextAt.getTime(), failedAt?.getTime() ?? 0)

/** A backfill that is not finished: whether its bites fail, and whether any process is at it. */
const backfills = Effect.gen(function* () {
  const { sql } = yield* Database
  const late = (yield* Clock.currentTimeMillis) - lateMillis
  const open = (yield* progressOf(sql)).filter(({ done }) => !done)
  if (open.length === 0) return ok("backfills", "none is unfinished")
  const isIdle = open.every((one) => attendedAt(one) < late)
  const notes = open.map((one) =>
    note(
      progressText(one),
      one.lastError === null ? null : "put right what it names; where it is the time, lower BACKFILL_FLOOR",
    )
  )
  const idle = isIdle ? [note("no bite for over a minute", "start an instance with the role timers")] : []
  const level = isIdle || open.some(({ lastError }) => lastError !== null) ? "warn" : "ok"
  return { level, what: "backfills", notes: [...notes, ...idle] } satisfies Finding
})

/** All checks, in order; those that need the schema run only where it is complete. */
export const databaseChecks = Effect.gen(function* () {
  const first = [yield* version, yield* role, yield* clock]
  const whole = yield* schema
  if (whole.level === "FAIL") return [...first, whole]
  const rest: ReadonlyArray<Finding> = [
    yield* partitions,
    yield* indexes,
    yield* backfills,
    yield* outbox,
    yield* rejects,
    yield* mail,
    yield* slack,
    yield* workers,
    yield* provider,
    yield* lifecycle,
  ]
  return [...first, whole, yield* installation, ...rest]
})
