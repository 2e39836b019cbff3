/**
 * Epochs: a database that took another's place begins a new one before it tells anything (docs/recovery.md).
 *
 * Found out by the server's identifier and timeline, and by the mark of a restore; compared at start, and by every
 * transaction that tells a fact, before it takes a place in any history. In the transaction that finds it out every
 * project's history begins anew at position 0 of the new epoch, from the state that is there, which a snapshot tells;
 * cursors of before are refused. The installation is held, every sign-in of before is dead, and so is every link that
 * was mailed: what they did since is not known. Recovery does the rest.
 *
 * Killed anywhere: the transaction is there or it is not, and the next start finds out the same.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { genesis } from "../platform/security/Canonical.ts"
import { Database } from "../platform/database/Database.ts"
import { allowLonger } from "../platform/database/Database/Watched.ts"
import { readInstallation } from "../platform/database/Installation.ts"

/** How much longer before the loss than is known streams are asked: clocks, replicas and backups lag. */
const doubtMillis = 3_600_000

/** More changes of one domain than can have been lost. */
const beyond = 1_000_000

interface Compared {
  readonly system_identifier: string | null
  readonly timeline_id: string | null
  readonly restored_from: Date | null
  readonly running: string
  readonly server: string
}

/** Statements of the new epoch, over rows that nobody else can change meanwhile. */
const begin = Effect.fnUntraced(function* (sql: PgClient.PgClient, restoredFrom: Date | null) {
  const millis = yield* Clock.currentTimeMillis
  const now = new Date(millis)
  // Rows of every project: more than a command's statement may take.
  yield* sql`set local statement_timeout = '5min'`
  // A process that came over before us has been seen on this server already: then only the doubt itself is known.
  const [{ alive } = { alive: null }] = yield* sql<{ alive: Date | null }>`
    select least((select at from audit_records order by id desc limit 1),
      (select max(last_seen_at) from worker_sightings)) as alive`
  const known = restoredFrom ?? alive ?? now
  const since = new Date(Math.min(known.getTime(), millis) - doubtMillis)
  // Of a time when nothing was lost.
  yield* sql`
    update relay_streams set went_back_to = null
    where went_back_to is not null and exists (select from installation where state = 'open' or lost_since is null)`
  yield* sql`
    update installation i set epoch = epoch + 1, state = 'held', held_since = ${now},
      held_reason = ${restoredFrom === null ? "failed_over" : "restored"}, restored_from = null,
      lost_since = case when state = 'held' then least(lost_since, ${since}) else ${since} end,
      streams = coalesce((select jsonb_object_agg(stream, created) from relay_streams), '{}'),
      told = coalesce((
        -- The lowest of what was known in holds that followed each other.
        select jsonb_object_agg(r.stream,
          least(r.last_seq, case when i.state = 'held' and i.lost_since is not null then (i.told ->> r.stream)::bigint end))
        from relay_streams r), '{}'), missing = '[]',
      sessions_before = ${now}, intake_rewound_at = null, tokens_renewed_at = null, reapplied_at = null,
      opened_at = null`
  yield* sql`select from lifecycle_heads order by project_id for update`
  // What was signed to its end goes on in the new epoch; what was not is signed in its own first.
  yield* sql`
    update lifecycle_signed s set epoch = i.epoch, position = 0
    from lifecycle_heads h, installation i
    where s.project_id = h.project_id and (s.epoch, s.position) >= (h.epoch, h.position)`
  yield* sql`
    update lifecycle_heads h set epoch = i.epoch, position = 0, digest = ${genesis},
      was_epoch = case when h.position > 0 then h.epoch else h.was_epoch end,
      was_position = case when h.position > 0 then h.position else h.was_position end,
      was_digest = case when h.position > 0 then h.digest else h.was_digest end
    from installation i`
  // Products end the sessions of everybody whom they let in: the state says so, before any event does.
  yield* sql`
    insert into lifecycle_state (project_id, key, value, position)
    select distinct a.project_id,
      'sessions_floor/' || replace(replace(p.issuer, '%', '%25'), ' ', '%20') || ' ' || p.subject,
      jsonb_build_object('user', jsonb_build_object('format', 'iss_sub', 'iss', p.issuer, 'sub', p.subject),
        'not_before', ${Math.floor(millis / 1_000)}::bigint), 0
    from access a join people p on p.id = a.person_id and p.issuer is not null
    where a.state = 'active' and not a.removed and a.access_version > 0
    on conflict (project_id, key) do update set value = excluded.value, position = excluded.position`
  // One-shot tokens may have been used since. Recovery makes new ones, and mails them.
  yield* sql`
    update transfers set
      accept_hash = case when accept_hash is not null then sha256(uuid_send(gen_random_uuid())) end,
      stop_hash = case when stop_hash is not null then sha256(uuid_send(gen_random_uuid())) end
    where status in ('pending', 'accepted')`
  yield* sql`
    update requests set token_hash = sha256(uuid_send(gen_random_uuid()))
    where kind = 'enrollment' and state = 'invited' and token_hash is not null`
  yield* sql`update credential_intents set state = 'expired', ended_at = ${now}, challenge = null, kid = null, secret = null
    where state = 'pending'`
  // Places that were told since must not be told again: TRANSFERS goes on beyond them, streams of inboxes begin anew.
  yield* sql`update domains set revision = revision + ${beyond}`
  yield* sql`update inboxes set epoch = left(md5(random()::text), 12)`
  yield* sql`update link_proofs set consumed_at = ${now} where consumed_at is null`
})

/**
 * Begins a new epoch where this database is not the one that the last one began on; gives whether it did. In the current
 * transaction. `same`: what the caller has just been told by `isSame`.
 */
export const settleEpoch = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
): Effect.fn.Return<boolean, SqlError.SqlError> {
  const [row] = yield* sql<Compared>`
    select system_identifier, timeline_id, restored_from, running_on() as running, server_identifier() as server
    from installation for update`
  const { restored_from, running, server, system_identifier, timeline_id } = row!
  const timeline = running.slice(-8)
  const another = restored_from !== null ||
    system_identifier !== null && (system_identifier !== server || timeline_id !== timeline)
  yield* sql`
    update installation set system_identifier = ${server}, timeline_id = ${timeline}, server = ${running}
    where (system_identifier, timeline_id, server) is distinct from (${server}, ${timeline}, ${running})`
  if (another) yield* allowLonger(begin(sql, restored_from))
  return another
})

/** SQL of a condition over `installation i`: it was compared with the server that answers. */
export const isSame = (sql: PgClient.PgClient) =>
  sql.literal("(i.server is not distinct from running_on() and i.restored_from is null)")

/** `settleEpoch` where it is not known to be the same. */
export const ensureEpoch = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
): Effect.fn.Return<boolean, SqlError.SqlError> {
  const [row] = yield* sql<{ same: boolean }>`select ${isSame(sql)} as same from installation i`
  return !row!.same && (yield* sql.withTransaction(settleEpoch(sql)))
})

export const Epochs = {
  /** Compares at start, before anything else happens. */
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const { sql } = yield* Database
    if (yield* ensureEpoch(sql)) {
      const { epoch, held_reason } = yield* readInstallation(sql)
      yield* Effect.logWarning(
        `this database took another's place (${held_reason}): epoch ${epoch} begins, and nothing new is activated ` +
          "until what was revoked meanwhile is revoked again",
      )
    }
  })),
} as const
