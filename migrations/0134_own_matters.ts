/**
 * The person whose Access is proposed for revocation, or whose authenticators are to be removed, signs nothing about it,
 * under any of its merged names. `four_eyes` is otherwise the function of 0023_decided_whole.ts.
 */
const statements: ReadonlyArray<string> = [
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
    if review.kind in ('access_revocation', 'authenticator_reset') and exists (
      select from requests r
      where r.id = review.request_id and canonical_person(r.person_id) = canonical_person(new.person_id))
    then
      raise exception 'another person than the one whom it is about signs' using errcode = 'check_violation';
    end if;
    return new;
  end $$`,
]

export default statements
