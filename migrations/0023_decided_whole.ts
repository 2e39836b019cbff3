/**
 * Of several people who sign an institution's first enrollment at once, only one signs as the first. The end and the
 * environment of a service grant are part of its decision: it may end sooner, and nothing else. And reviews are found
 * by their request, however many requests its author has made.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create index policy_reviews_request on policy_reviews (request_id, id)`,
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
        select from institutions i where i.id = review.institution_id and new.person_id = any(i.approved_by));
    if not beside_author then
      -- In a statement of its own: what follows sees what was committed while this waited.
      perform pg_advisory_xact_lock(hashtextextended('first enrollment of ' || review.institution_id, 0));
      beside_author = exists (
        select from policy_reviews v join requests r on r.id = v.request_id and r.state in ('invited', 'accepted')
        where v.institution_id = review.institution_id and v.kind = 'enrollment');
    end if;
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
  `create or replace function keep_service_grant() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE'
      or (old.id, old.project_id, old.service_id, old.service_issuer, old.capabilities, old.environment, old.reason,
          old.proposed_by, old.proposed_at)
        is distinct from
         (new.id, new.project_id, new.service_id, new.service_issuer, new.capabilities, new.environment, new.reason,
          new.proposed_by, new.proposed_at)
      or coalesce(new.expires_at, 'infinity') > coalesce(old.expires_at, 'infinity')
      or old.state = 'revoked' or (old.state = 'approved' and new.state = 'proposed')
      or (old.approved_at is not null and (old.approved_by, old.approved_at, old.approval_reason)
        is distinct from (new.approved_by, new.approved_at, new.approval_reason))
    then
      raise exception 'a decision of a service grant is written once and never changed'
        using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
