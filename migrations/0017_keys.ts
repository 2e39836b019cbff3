/**
 * Rotation of signing keys: their order, the announcements to consumers, and which key signs from which position of a
 * project's history. The transaction that appends at a position decides its key, once and for all.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `alter table signing_keys add column succession integer`,
  `update signing_keys k set succession = o.nth
   from (select kid, row_number() over (order by state <> 'active', created_at, kid) as nth from signing_keys) o
   where o.kid = k.kid`,
  // A private key is destroyed when its use ends; its name and period of use stay.
  `alter table signing_keys
    alter column succession set not null,
    alter column private_key drop not null,
    alter column vault_kid drop not null,
    add unique (succession),
    add check ((private_key is null) = (vault_kid is null)),
    add check ((private_key is null) = (state in ('retired', 'compromised')))`,
  // Announcements about keys to the consumers of every project, one after another; with a successor, an announcement is
  // a transition to it.
  `create table lifecycle_key_news (
    id bigint primary key,
    compromised text references signing_keys,
    successor text references signing_keys,
    not_before timestamptz,
    -- From here on who has not acknowledged it is waited for no longer.
    deadline_at timestamptz,
    created_at timestamptz not null,
    -- Every project has gone over.
    ended_at timestamptz,
    check (compromised is not null or successor is not null),
    check ((successor is null) = (not_before is null) and (successor is null) = (deadline_at is null)),
    check (successor is not null or ended_at is not null)
  )`,
  `create unique index lifecycle_key_news_open on lifecycle_key_news ((true)) where ended_at is null`,
  // Each project's state: the key that signs, the newest announcement to it, and that announcement's position.
  `create table lifecycle_project_keys (
    project_id text primary key,
    kid text not null references signing_keys,
    news_id bigint not null,
    told_epoch integer not null,
    told_position bigint not null
  )`,
  `create index lifecycle_project_keys_kid on lifecycle_project_keys (kid, project_id)`,
  `create index lifecycle_project_keys_news on lifecycle_project_keys (news_id, project_id)`,
  // The key that signs from a position of a project's history on.
  `create table lifecycle_key_places (
    project_id text not null,
    epoch integer not null,
    position bigint not null,
    kid text not null references signing_keys,
    -- What came before may be somebody else's: whoever stands before this place starts from a snapshot.
    anew boolean not null default false,
    since timestamptz not null,
    primary key (project_id, epoch, position)
  )`,
  `create index lifecycle_key_places_kid on lifecycle_key_places (kid, project_id)`,
  `insert into lifecycle_project_keys (project_id, kid, news_id, told_epoch, told_position)
   select s.project_id, k.kid, 0, 0, 0 from lifecycle_signed s cross join signing_keys k where k.state = 'active'`,
  `insert into lifecycle_key_places (project_id, epoch, position, kid, since)
   select p.project_id, 0, 0, p.kid, k.changed_at from lifecycle_project_keys p join signing_keys k on k.kid = p.kid`,
  // Before this position the consumer gets no events: it must take a snapshot first.
  `alter table lifecycle_consumers
    add column floor_epoch integer,
    add column floor_position bigint,
    add check ((floor_epoch is null) = (floor_position is null))`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
