/**
 * Epochs: a database that was restored or failed over begins a new epoch before it appends any event
 * (docs/recovery.md).
 *
 * The server's identifier and timeline, and the mark that a restore leaves, show that it was. They are compared at
 * start, and by every transaction that appends an event, before the event gets a position. The transaction that finds a
 * difference begins every project's history anew at position 0 of the new epoch, from the state that is there, which a
 * snapshot carries; cursors of earlier epochs are refused. It also holds the installation and ends all sessions and all
 * mailed links, since what was done with these in the lost time is not known. Recovery does the rest.
 *
 * Killed anywhere: the transaction committed or it did not, and then the next start finds the same difference.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { genesis } from "../platform/security/CanonicalJson.ts"
import { Database } from "../platform/database/Database.ts"
import { allowLonger } from "../platform/database/Database/StalledConnections.ts"
import { readInstallation } from "../platform/database/Installation.ts"

/** How far before the known time of the loss the streams are read: clocks, replicas and backups lag. */
const doubtMillis = 3_600_000

/** Added to the revision of each domain: more changes than one domain can have lost. */
const revisionMargin = 1_000_000

interface Compared {
  readonly system_identifier: string | null
  readonly timeline_id: string | null
  readonly restored_from: Date | null
  readonly running: string
  readonly server: string
}

/** Begins the new epoch. The caller holds the lock on `installation`. */
const begin = Effect.fnUntraced(function* (sql: PgClient.PgClient, restoredFrom: Date | null) {
  const millis = yield* Clock.currentTimeMillis
  const now = new Date(millis)
  // These statements change rows of every project, which takes longer than a command's statement may.
  yield* sql`set local statement_timeout = '5min'`
  // Where another process has already reported itself on this server, `alive` is about now, and only the doubt is left.
  const [{ alive } = { alive: null }] = yield* sql<{ alive: Date | null }>`
    select least((select at from audit_records order by id desc limit 1),
      (select max(last_seen_at) from worker_sightings)) as alive`
  const known = restoredFrom ?? alive ?? now
  const since = new Date(Math.min(known.getTime(), millis) - doubtMillis)
  // The broker's losses of a time when this database had lost nothing do not belong to this loss.
  yield* sql`
    update relay_streams set went_back_to = null
    where went_back_to is not null and exists (select from installation where state = 'open' or lost_since is null)`
  yield* sql`
    update installation i set epoch = epoch + 1, state = 'held', held_since = ${now},
      held_reason = ${restoredFrom === null ? "failed_over" : "restored"}, restored_from = null,
      lost_since = case when state = 'held' then least(lost_since, ${since}) else ${since} end,
      -- opened_at is null during a hold, and before the first one; a restore sets the state to held before this statement.
      lost_from_epoch = case when opened_at is null then lost_from_epoch else epoch end,
      streams = coalesce((select jsonb_object_agg(stream, created) from relay_streams), '{}'),
      told = coalesce((
        -- The lowest sequence known, over holds that followed each other.
        select jsonb_object_agg(r.stream,
          least(r.last_seq, case when i.state = 'held' and i.lost_since is not null then (i.told ->> r.stream)::bigint end))
        from relay_streams r), '{}'), missing = '[]',
      sessions_before = ${now}, intake_rewound_at = null, tokens_renewed_at = null, reapplied_at = null,
      opened_at = null`
  yield* sql`select from lifecycle_heads order by project_id for update`
  // A fully signed project goes on in the new epoch; unsigned events of the old epoch are signed in that first.
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
  // Products end the sessions of every person with Access: the next snapshot says so, before any event does.
  yield* sql`
    insert into lifecycle_state (project_id, key, value, position)
    select distinct a.project_id,
      'sessions_floor/' || replace(replace(p.issuer, '%', '%25'), ' ', '%20') || ' ' || p.subject,
      jsonb_build_object('user', jsonb_build_object('format', 'iss_sub', 'iss', p.issuer, 'sub', p.subject),
        'not_before', ${Math.floor(millis / 1_000)}::bigint), 0
    from access a join people p on p.id = a.person_id and p.issuer is not null
    where a.state = 'active' and not a.removed and a.access_version > 0
    on conflict (project_id, key) do update set value = excluded.value, position = excluded.position`
  // One-time tokens may have been used in the lost time. Recovery makes new ones, and mails them.
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
  // Positions that were published in the lost time must not be used again: TRANSFERS goes on beyond them, and the live
  // streams of inboxes begin anew.
  yield* sql`update domains set revision = revision + ${revisionMargin}`
  yield* sql`update inboxes set epoch = left(md5(random()::text), 12)`
  yield* sql`update link_proofs set consumed_at = ${now} where consumed_at is null`
})

/**
 * Begins a new epoch, in the current transaction, where this database is not the one on which the last epoch began;
 * returns whether it did.
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

/** SQL of a condition over `installation i`: it was compared with the server that answers, and no restore followed. */
export const isSame = (sql: PgClient.PgClient) =>
  sql.literal("(i.server is not distinct from running_on() and i.restored_from is null)")

/** Compares the database with the epoch where `isSame` is false; returns whether a new epoch began. */
export const ensureEpoch = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
): Effect.fn.Return<boolean, SqlError.SqlError> {
  const [row] = yield* sql<{ same: boolean }>`select ${isSame(sql)} as same from installation i`
  return !row!.same && (yield* sql.withTransaction(settleEpoch(sql)))
})

export const Epochs = {
  /** Compares the database with the epoch at start, before anything else happens. */
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const { sql } = yield* Database
    if (yield* ensureEpoch(sql)) {
      const { epoch, held_reason } = yield* readInstallation(sql)
      yield* Effect.logWarning(
        `this database was restored or failed over (${held_reason}): epoch ${epoch} begins, and nothing new is ` +
          "activated until what was revoked in the lost time is revoked again",
      )
    }
  })),
} as const
