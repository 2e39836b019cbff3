/**
 * Campaigns end, and their deadline moves while they are open. `campaigns.ended`: its items without an answer were taken out
 * of what waits (`campaign_items.over`), since they would stand in the indexes of open items for ever. What was answered,
 * closed or ended is never changed. Beside them: the indexes by which a pack of evidence finds a person's requests and
 * reviews, and the requests of one Access.
 */
const statements: ReadonlyArray<string> = [
  `alter table campaigns add column ended boolean not null default false`,
  `alter table campaign_items add column over boolean not null default false`,
  `create or replace function keep_campaign() returns trigger language plpgsql as $$
  begin
    if tg_op <> 'UPDATE'
      or (old.id, old.institution_id, old.name, old.reason, old.opened_by, old.opened_at)
        is distinct from (new.id, new.institution_id, new.name, new.reason, new.opened_by, new.opened_at)
      or (old.closed_at is not null or old.ended)
        and (old.deadline, old.closed_at, old.closed_by, old.close_reason)
          is distinct from (new.deadline, new.closed_at, new.closed_by, new.close_reason)
      or old.ended and not new.ended
    then
      raise exception 'a campaign is written once, and closed once' using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
  `create or replace function keep_campaign_item() returns trigger language plpgsql as $$
  begin
    if tg_op <> 'UPDATE' or old.outcome <> 'open' or old.over or new.over and new.outcome <> 'open'
      or (old.id, old.campaign_id, old.institution_id, old.access_id, old.access_version, old.project_id, old.person_id,
          old.role)
        is distinct from (new.id, new.campaign_id, new.institution_id, new.access_id, new.access_version,
          new.project_id, new.person_id, new.role)
    then
      raise exception 'an item of a campaign is answered once' using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
  `create index concurrently if not exists campaigns_to_end
    on campaigns (least(deadline, closed_at)) where not ended`,
  // Their predecessors, campaign_items_project and campaign_items_delegate, serve a program of the version before, which
  // asks without `over`: a later release drops them.
  `create index concurrently if not exists campaign_items_of_project on campaign_items (project_id, id)
    where outcome = 'open' and not over`,
  `create index concurrently if not exists campaign_items_of_delegate on campaign_items (delegate, id)
    where outcome = 'open' and not over and delegate is not null`,
  `create index concurrently if not exists requests_decided_person
    on requests (institution_id, coalesce(person_id, author), id)
    where kind in ('access', 'access_revocation', 'membership')`,
  `create index concurrently if not exists requests_decided_access
    on requests (institution_id, (case kind when 'access' then result_id
      when 'access_revocation' then fields ->> 'access_id' end))
    where kind in ('access', 'access_revocation', 'membership')`,
  `create index concurrently if not exists access_reviews_person
    on access_reviews (institution_id, person_id, proposed_at, id)`,
]

export default statements
