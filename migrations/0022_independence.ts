/**
 * Independence of two persons, enforced by the database: no one approves their own proposal under another of their
 * names, nor beside a person whose role either of the two made or approved within 90 days. A decision on a service
 * grant only moves forward, and a review's evidence head changes with a decision only.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The makers and approvers of people's rights; for ownerships, with the project.
  `create view provenance as
    select id as person_id, null::text as project_id, made_by, approved_by, created_at as at from people
    union all select person_id, null, made_by, approved_by, linked_at from identities
    union all select person_id, null, made_by, approved_by, created_at from institution_memberships
    union all select person_id, project_id, made_by, approved_by, created_at from project_owners`,
  // Under any of their merged names. `owned`: the project as whose owner one of them counts, or null.
  `create function counts_as_two(one text, other text, owned text, moment timestamptz) returns boolean
  language plpgsql stable as $$
  begin
    return canonical_person(one) <> canonical_person(other) and not exists (
      with two as (
        select canonical_person(one) as id union select canonical_person(other)
      ), names as (
        select id, id as canonical from two
        union all select p.id, two.id from people p join two on p.merged_into = two.id
      )
      select from names x join names y on y.canonical <> x.canonical join provenance m on m.person_id = x.id
      where m.at > moment - interval '2160 hours' and (m.project_id is null or m.project_id = owned)
        and (m.made_by = y.id or y.id = any(m.approved_by))
        and not exists (select from unnest(m.approved_by) a where a not in (select id from names)));
  end $$`,
  // A service grant is proposed by an owner of its project, a review by a Sponsor.
  `create function keep_two_deciders() returns trigger language plpgsql as $$
  begin
    if new.approved_by is not null and not counts_as_two(
      new.approved_by, new.proposed_by, case when tg_table_name = 'service_grants' then new.project_id end, new.approved_at)
    then
      raise exception 'another person approves than the one who proposed' using errcode = 'check_violation';
    end if;
    return new;
  end $$`,
  `create trigger access_reviews_four_eyes before insert or update of approved_by on access_reviews
    for each row execute function keep_two_deciders()`,
  `create trigger service_grants_four_eyes before insert or update of approved_by on service_grants
    for each row execute function keep_two_deciders()`,
  `create or replace function four_eyes() returns trigger language plpgsql as $$
  declare
    review policy_reviews;
    beside_author boolean;
  begin
    select * into review from policy_reviews r
    where r.id = new.review_id and r.state = 'open' and new.role = any(r.required_roles);
    -- Whoever approved an institution may approve its first enrollment.
    beside_author = review.kind <> 'enrollment'
      or not exists (
        select from institutions i where i.id = review.institution_id and new.person_id = any(i.approved_by))
      or exists (
        select from policy_reviews v join requests r on r.id = v.request_id and r.state in ('invited', 'accepted')
        where v.institution_id = review.institution_id and v.kind = 'enrollment');
    if review.id is null or canonical_person(new.author) = canonical_person(new.person_id)
      or exists (
        select from (
          select new.author as id where beside_author
          union all select a.person_id from policy_approvals a where a.review_id = new.review_id) other
        where not counts_as_two(
          new.person_id, other.id, case when review.kind = 'launch' then review.project_id end, new.approved_at))
    then
      raise exception 'a review needs different persons for each role, and none of them its author'
        using errcode = 'check_violation';
    end if;
    return new;
  end $$`,
  `create or replace function keep_access_review() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE'
      or (old.id, old.institution_id, old.project_id, old.access_id, old.access_version, old.access_digest, old.person_id,
          old.grant_event_id, old.grant_event_position, old.grant_event_digest, old.decision_id, old.decision_digest,
          old.proposed_by, old.proposed_at, old.sponsor_reason)
        is distinct from
         (new.id, new.institution_id, new.project_id, new.access_id, new.access_version, new.access_digest, new.person_id,
          new.grant_event_id, new.grant_event_position, new.grant_event_digest, new.decision_id, new.decision_digest,
          new.proposed_by, new.proposed_at, new.sponsor_reason)
      or old.state = 'revoked' or (old.state = 'approved' and new.state <> 'revoked') or old.state = new.state
      or new.evidence_count <> old.evidence_count + 1 or new.evidence_digest = old.evidence_digest
      or (old.approved_at is not null and (old.approved_by, old.approved_at, old.approval_event_id)
        is distinct from (new.approved_by, new.approved_at, new.approval_event_id))
    then
      raise exception 'a decision of a review is written once and never changed' using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
  `create function keep_service_grant() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE'
      or (old.id, old.project_id, old.service_id, old.service_issuer, old.capabilities, old.reason, old.proposed_by,
          old.proposed_at)
        is distinct from
         (new.id, new.project_id, new.service_id, new.service_issuer, new.capabilities, new.reason, new.proposed_by,
          new.proposed_at)
      or old.state = 'revoked' or (old.state = 'approved' and new.state = 'proposed')
      or (old.approved_at is not null and (old.approved_by, old.approved_at, old.approval_reason)
        is distinct from (new.approved_by, new.approved_at, new.approval_reason))
    then
      raise exception 'a decision of a service grant is written once and never changed'
        using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
  `create trigger service_grants_kept before update or delete on service_grants
    for each row execute function keep_service_grant()`,
  `create trigger service_grants_not_emptied before truncate on service_grants
    for each statement execute function refuse_change()`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
