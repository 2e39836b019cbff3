/**
 * The base of the identity API: people, institutions, projects and Access, the lifecycle events of their changes, and
 * receipts of requests with an idempotency key.
 *
 * Tables of the directory's kinds share `id, version, removed, updated_at`, where `version` is the directory's (0: made
 * by the API). `revision` is our own fence and the version that clients see. While a `…_decided` flag is set, that
 * field is our decision and the directory has not echoed it yet. `made_by` and `approved_by` are people's ids
 * (provenance, which decides who may count beside whom); rows of the directory have neither. References are not foreign
 * keys: a line may arrive before its target.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const feed = `id text primary key check (id ~ '^[A-Za-z0-9_-]{1,128}$'),
    version bigint not null default 0 check (version >= 0),
    removed boolean not null default false,
    updated_at timestamptz not null,
    revision integer not null default 1,
    created_at timestamptz not null default 'epoch',
    made_by text,
    approved_by text[] not null default '{}'`

const statements = [
  // Evidence is written once. A table's owner bypasses grants, but not triggers.
  `create function refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% is written once and never changed', tg_table_name using errcode = 'restrict_violation';
  end $$`,
  `create table people (
    ${feed},
    issuer text,
    subject text,
    display_name text,
    email text,
    email_verified boolean not null default false,
    operator boolean not null default false,
    status text check (status in ('active', 'suspended', 'disabled')),
    -- The person that this one turned out to be; its identities have moved there.
    merged_into text,
    check (removed or (issuer is not null and subject is not null and status is not null))
  )`,
  `create index people_email on people (lower(email collate "C")) where not removed and email_verified`,
  // The person of a token. A person's first identity is the one with which the person was made.
  `create table identities (
    issuer text not null,
    subject text not null,
    person_id text not null,
    linked_at timestamptz not null,
    made_by text,
    approved_by text[] not null default '{}',
    primary key (issuer, subject)
  )`,
  `create index identities_person on identities (person_id)`,
  `create table institutions (
    ${feed},
    name text,
    verified_domains text[] not null default '{}',
    status text check (status in ('active', 'suspended')),
    check (removed or (name is not null and status is not null))
  )`,
  `create table institution_memberships (
    ${feed},
    institution_id text,
    person_id text,
    role text check (role in ('sponsor', 'administrator', 'member')),
    state text check (state in ('invited', 'active', 'suspended', 'ended')),
    state_decided boolean not null default false,
    accepted_at timestamptz,
    effective_from timestamptz,
    expires_at timestamptz,
    check (removed or (institution_id is not null and person_id is not null and role is not null and state is not null))
  )`,
  `create unique index institution_memberships_one on institution_memberships (institution_id, person_id, role)
    where not removed`,
  `create index institution_memberships_person on institution_memberships (person_id)`,
  `create table projects (
    ${feed},
    institution_id text,
    name text,
    website text,
    environment text check (environment in ('staging', 'production')),
    connector_kind text check (connector_kind in ('service_connector', 'standard_oidc')),
    connector_product text,
    preview_digest text,
    redirect_uris text[] not null default '{}',
    post_logout_redirect_uris text[] not null default '{}',
    backchannel_logout_uri text,
    requested_scopes text[] not null default '{openid}',
    state text check (state in ('registered', 'launch_proposed', 'launched', 'held', 'withdrawn')),
    state_decided boolean not null default false,
    held_reason text,
    -- A failed or held rollout (docs/requests.md): new activation waits until it is released.
    rollout text check (rollout in ('hold', 'fail')),
    client_id text unique,
    launch_url text,
    -- The connector version that the product runs: that of its newest link, and the link's version.
    installed_version text,
    link_version bigint not null default 0,
    check (removed or (institution_id is not null and name is not null and website is not null
      and environment is not null and connector_kind is not null and state is not null))
  )`,
  `create unique index projects_website on projects (institution_id, website, environment)
    where state <> 'withdrawn' and not removed`,
  // The connector version of a product (kind project_link). A link may arrive before its project.
  `create table project_links (
    ${feed},
    project_id text,
    installed_version text,
    check (removed or (project_id is not null and installed_version is not null))
  )`,
  `create index project_links_project on project_links (project_id)`,
  `create table project_owners (
    ${feed},
    project_id text,
    person_id text,
    active boolean not null default true,
    active_decided boolean not null default false,
    -- Whether the project's history says that this person owns it.
    told boolean not null default false,
    since timestamptz,
    check (removed or (project_id is not null and person_id is not null))
  )`,
  `create unique index project_owners_one on project_owners (project_id, person_id) where not removed`,
  `create index project_owners_person on project_owners (person_id)`,
  // The current version of each Access; all its versions are in access_versions.
  `create table access (
    ${feed},
    institution_id text,
    project_id text,
    person_id text,
    role text,
    state text check (state in ('active', 'revoked')),
    state_decided boolean not null default false,
    access_version integer not null default 0,
    check (removed or (institution_id is not null and project_id is not null and person_id is not null
      and role is not null and state is not null))
  )`,
  `create index access_of_project on access (project_id, person_id)`,
  `create index access_of_person on access (person_id, project_id)`,
  `create index access_of_institution on access (institution_id, id)`,
  `create table access_versions (
    access_id text not null,
    access_version integer not null check (access_version >= 1),
    institution_id text not null,
    project_id text not null,
    person_id text not null,
    role text not null,
    state text not null check (state in ('active', 'revoked')),
    digest text not null,
    -- The lifecycle event that this version made.
    event_id uuid not null,
    created_at timestamptz not null,
    made_by text,
    approved_by text[] not null default '{}',
    primary key (access_id, access_version)
  )`,
  // The projects that received events of a person lately.
  `create index access_versions_person on access_versions (person_id, created_at)`,
  `create trigger access_versions_kept before update or delete on access_versions
    for each row execute function refuse_change()`,
  `create trigger access_versions_not_emptied before truncate on access_versions
    for each statement execute function refuse_change()`,
  // One row per project, locked from append to commit: positions have no gaps and follow the order of commits.
  `create table lifecycle_heads (
    project_id text primary key,
    epoch integer not null default 1,
    position bigint not null default 0,
    digest text not null default ('sha256:' || repeat('0', 64))
  )`,
  `create table lifecycle_events (
    id uuid primary key,
    project_id text not null,
    epoch integer not null,
    position bigint not null,
    digest text not null,
    prev_digest text not null,
    -- Of the event without its position, made by the program: what the chain is made of.
    body_digest text not null,
    kind text not null,
    -- What one cause made goes by one number.
    txn uuid not null,
    person_id text,
    sub_id jsonb not null,
    payload jsonb not null,
    created_at timestamptz not null,
    unique (project_id, epoch, position)
  )`,
  `create index lifecycle_events_person on lifecycle_events (person_id, created_at) where person_id is not null`,
  // Signatures are in a table of their own; the event itself never changes.
  `create trigger lifecycle_events_kept before update or delete on lifecycle_events
    for each row execute function refuse_change()`,
  `create trigger lifecycle_events_not_emptied before truncate on lifecycle_events
    for each statement execute function refuse_change()`,
  // The fold of the events up to `position`, which snapshots read.
  `create table lifecycle_state (
    project_id text not null,
    key text not null,
    value jsonb not null,
    position bigint not null,
    primary key (project_id, key)
  )`,
  // Kept as long as the command's result; a key counts for one principal, method and path.
  `create table idempotency_receipts (
    principal text not null,
    method text not null,
    path text not null,
    key text not null,
    fingerprint bytea not null,
    kid text not null,
    status integer,
    body text,
    created_at timestamptz not null,
    primary key (principal, method, path, key)
  )`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
