/**
 * Requests, and the policy reviews that decide them. A request that has ended never changes, and neither does an
 * approval. The database, too, enforces that an approver is neither the author nor another approver of the same review,
 * also after people were merged.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The state of a project before its hold, which a release restores.
  `alter table projects add column held_from text check (held_from in ('registered', 'launch_proposed', 'launched'))`,
  // A website may be longer than an index entry allows.
  `drop index projects_website`,
  `create unique index projects_website on projects (institution_id, md5(website), environment)
    where state <> 'withdrawn' and not removed`,
  `create table requests (
    id uuid primary key,
    kind text not null
      check (kind in ('organization', 'website', 'access', 'enrollment', 'launch', 'link', 'membership')),
    state text not null,
    -- Counts decisions: the version that clients see.
    revision integer not null default 1,
    author text not null,
    institution_id text,
    project_id text,
    -- Whom it is about beside its author: the member, the other person of a link, who claims an enrollment.
    person_id text,
    -- What was asked, as it was asked.
    fields jsonb not null,
    reason text not null,
    created_at timestamptz not null,
    expires_at timestamptz,
    decided_at timestamptz,
    effective_at timestamptz,
    held_reason text,
    -- The id of what it made.
    result_id text,
    event_id uuid,
    job_id text,
    mail_id uuid,
    token_kid text,
    token_nonce bytea,
    token_hash bytea unique check (octet_length(token_hash) = 32),
    check (state = any (case kind
      when 'organization' then array['submitted', 'approved', 'declined']
      when 'website' then array['submitted', 'approved', 'declined', 'superseded']
      when 'access' then array['submitted', 'approved', 'declined', 'expired']
      when 'membership' then array['submitted', 'approved', 'declined', 'expired']
      when 'enrollment' then array['held', 'invited', 'accepted', 'expired', 'revoked']
      when 'launch' then array['proposed', 'approved', 'launched', 'held', 'declined', 'superseded']
      else array['pending_review', 'linked', 'declined', 'expired'] end)),
    check (kind = 'organization' or kind = 'link' or institution_id is not null),
    check (kind not in ('website', 'access', 'launch') or project_id is not null)
  )`,
  `create index requests_author on requests (author, id desc)`,
  `create index requests_project on requests (project_id, kind) where project_id is not null`,
  `create unique index requests_access_open on requests (project_id, author)
    where kind = 'access' and state = 'submitted'`,
  `create unique index requests_membership_open on requests (institution_id, person_id, (fields ->> 'role'))
    where kind = 'membership' and state = 'submitted'`,
  `create unique index requests_launch_open on requests (project_id)
    where kind = 'launch' and state in ('proposed', 'held')`,
  `create index requests_link_open on requests (person_id) where kind = 'link' and state = 'pending_review'`,
  `create function keep_request() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE'
      or old.state in ('approved', 'declined', 'expired', 'revoked', 'accepted', 'launched', 'superseded', 'linked')
      or (old.id, old.kind, old.author, old.institution_id, old.project_id, old.fields, old.reason, old.created_at)
        is distinct from
         (new.id, new.kind, new.author, new.institution_id, new.project_id, new.fields, new.reason, new.created_at)
    then
      raise exception 'what was asked and decided is written once and never changed'
        using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
  `create trigger requests_kept before update or delete on requests
    for each row execute function keep_request()`,
  `create trigger requests_not_emptied before truncate on requests
    for each statement execute function refuse_change()`,
  `create table policy_reviews (
    id uuid primary key,
    request_id uuid not null references requests,
    -- The request's, or that of somebody who holds an invitation which went to another address.
    kind text not null check (kind in ('organization', 'website', 'access', 'enrollment', 'enrollment_claim', 'launch',
      'link', 'membership')),
    author text not null,
    institution_id text,
    project_id text,
    required_roles text[] not null check (cardinality(required_roles) > 0),
    state text not null check (state in ('open', 'applied', 'declined', 'superseded')),
    reason text not null,
    created_at timestamptz not null,
    decided_at timestamptz,
    declined_by text,
    declined_role text,
    decline_reason text,
    unique (id, author),
    check ((state = 'open') = (decided_at is null)),
    check ((state = 'declined') = (declined_by is not null)),
    check (declined_by <> author)
  )`,
  `create unique index policy_reviews_open on policy_reviews (request_id) where state = 'open'`,
  `create index policy_reviews_institution on policy_reviews (institution_id, id)`,
  `create index policy_reviews_author on policy_reviews (author)`,
  `create index policy_reviews_waiting on policy_reviews (id) where state = 'open'`,
  `create function keep_policy_review() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' or old.state <> 'open'
      or (old.id, old.request_id, old.kind, old.author, old.institution_id, old.project_id, old.required_roles,
          old.reason, old.created_at)
        is distinct from
         (new.id, new.request_id, new.kind, new.author, new.institution_id, new.project_id, new.required_roles,
          new.reason, new.created_at)
    then
      raise exception 'a policy review is decided once and never changed' using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
  `create trigger policy_reviews_kept before update or delete on policy_reviews
    for each row execute function keep_policy_review()`,
  `create trigger policy_reviews_not_emptied before truncate on policy_reviews
    for each statement execute function refuse_change()`,
  `create table policy_approvals (
    review_id uuid not null,
    author text not null,
    role text not null,
    person_id text not null,
    -- An operator in an administrator's place.
    stands_in boolean not null,
    reason text not null,
    approved_at timestamptz not null,
    primary key (review_id, role),
    unique (review_id, person_id),
    foreign key (review_id, author) references policy_reviews (id, author),
    check (person_id <> author)
  )`,
  `create index policy_approvals_person on policy_approvals (person_id)`,
  `create trigger policy_approvals_kept before update or delete on policy_approvals
    for each row execute function refuse_change()`,
  `create trigger policy_approvals_not_emptied before truncate on policy_approvals
    for each statement execute function refuse_change()`,
  `create function canonical_person(person text) returns text language sql stable as $$
    select coalesce((select merged_into from people where id = person), person)
  $$`,
  `create function four_eyes() returns trigger language plpgsql as $$
  begin
    if not exists (select from policy_reviews r
        where r.id = new.review_id and r.state = 'open' and new.role = any(r.required_roles))
      or canonical_person(new.author) = canonical_person(new.person_id)
      or exists (select from policy_approvals a
        where a.review_id = new.review_id and canonical_person(a.person_id) = canonical_person(new.person_id))
    then
      raise exception 'a review needs different persons for each role, and none of them its author'
        using errcode = 'check_violation';
    end if;
    return new;
  end $$`,
  `create trigger policy_approvals_four_eyes before insert on policy_approvals
    for each row execute function four_eyes()`,
  // Whether two people took part in the same decision, under any of their merged names.
  `create function decided_together(one text, other text) returns boolean language plpgsql stable as $$
  begin
    return exists (
      with decided as (
        select 'p' || id::text as what, author as person from policy_reviews
        union all select 'p' || review_id::text, person_id from policy_approvals
        union all select 'p' || id::text, declined_by from policy_reviews where declined_by is not null
        union all select 'a' || id::text, proposed_by from access_reviews
        union all select 'a' || id::text, approved_by from access_reviews where approved_by is not null
        union all select 's' || id::text, proposed_by from service_grants
        union all select 's' || id::text, approved_by from service_grants where approved_by is not null
      ), names as (
        select id, coalesce(merged_into, id) = one as is_one from people
        where coalesce(merged_into, id) in (one, other)
      )
      select from decided x join names n on n.id = x.person and n.is_one
      join decided y on y.what = x.what join names m on m.id = y.person and not m.is_one
    );
  end $$`,
  `create function keep_four_eyes_apart() returns trigger language plpgsql as $$
  begin
    if new.merged_into is not null and new.merged_into is distinct from old.merged_into
      and decided_together(canonical_person(old.id), canonical_person(new.merged_into))
    then
      raise exception 'both took part in one decision' using errcode = 'check_violation';
    end if;
    return new;
  end $$`,
  `create trigger people_four_eyes before update of merged_into on people
    for each row execute function keep_four_eyes_apart()`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
