/**
 * Keys that follow each other: in which order, what consumers are told of them, and which one signs from which place of a
 * project's history. Which key signs a place is decided in the transaction that appends there, and never again.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `alter table signing_keys add column succession integer`,
  `update signing_keys k set succession = o.nth
   from (select kid, row_number() over (order by state <> 'active', created_at, kid) as nth from signing_keys) o
   where o.kid = k.kid`,
  // A private key is destroyed with the end of its use; what it was called and when it was in use stays.
  `alter table signing_keys
    alter column succession set not null,
    alter column private_key drop not null,
    alter column vault_kid drop not null,
    add unique (succession),
    add check ((private_key is null) = (vault_kid is null)),
    add check ((private_key is null) = (state in ('retired', 'compromised')))`,
  // What every project's consumers are told of keys, one after the other; with a successor it is a transition to it.
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
  // Where each project is: the key that signs, the newest of the news that it was told, and where.
  `create table lifecycle_project_keys (
    project_id text primary key,
    kid text not null references signing_keys,
    news_id bigint not null,
    told_epoch integer not null,
    told_position bigint not null
  )`,
  `create index lifecycle_project_keys_kid on lifecycle_project_keys (kid, project_id)`,
  `create index lifecycle_project_keys_news on lifecycle_project_keys (news_id, project_id)`,
  // The key that signs from a place of a project's history on.
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
  // Before this place the consumer is not served: it takes a snapshot first.
  `alter table lifecycle_consumers
    add column floor_epoch integer,
    add column floor_position bigint,
    add check ((floor_epoch is null) = (floor_position is null))`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
