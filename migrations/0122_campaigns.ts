/**
 * Campaigns: an institution has those who answer for a set of Accesses say of each, until a deadline, whether it is still
 * needed. A campaign changes no Access. What was answered or closed is never changed.
 */
const statements: ReadonlyArray<string> = [
  `create table campaigns (
    id uuid primary key,
    institution_id text not null,
    name text not null,
    reason text not null,
    opened_by text not null,
    opened_at timestamptz not null,
    deadline timestamptz not null,
    -- Null where nobody closed it: it is over at its deadline.
    closed_at timestamptz,
    closed_by text,
    close_reason text,
    check (deadline > opened_at),
    check ((closed_at is null) = (closed_by is null) and (closed_at is null) = (close_reason is null))
  )`,
  `create index campaigns_institution on campaigns (institution_id, id)`,
  `create table campaign_items (
    id uuid primary key,
    campaign_id uuid not null,
    institution_id text not null,
    access_id text not null,
    access_version integer not null,
    project_id text not null,
    -- Whose Access it is.
    person_id text not null,
    role text not null,
    outcome text not null default 'open' check (outcome in ('open', 'confirmed', 'proposed_for_revocation')),
    -- A person who may answer beside the owners of the project.
    delegate text,
    answered_by text,
    answered_at timestamptz,
    reason text,
    confirmation_id uuid,
    request_id uuid,
    check ((outcome = 'open') = (answered_by is null) and (outcome = 'open') = (answered_at is null)
      and (outcome = 'open') = (reason is null)),
    check ((outcome = 'confirmed') = (confirmation_id is not null)),
    check ((outcome = 'proposed_for_revocation') = (request_id is not null)),
    check (answered_by <> person_id),
    check (delegate <> person_id)
  ) with (fillfactor = 80)`,
  `create unique index campaign_items_access on campaign_items (campaign_id, access_id)`,
  `create index campaign_items_page on campaign_items (campaign_id, id)`,
  `create index campaign_items_project on campaign_items (project_id, id) where outcome = 'open'`,
  `create index campaign_items_delegate on campaign_items (delegate, id) where outcome = 'open' and delegate is not null`,
  `create function keep_campaign() returns trigger language plpgsql as $$
  begin
    if tg_op <> 'UPDATE' or old.closed_at is not null
      or (old.id, old.institution_id, old.name, old.reason, old.opened_by, old.opened_at, old.deadline)
        is distinct from (new.id, new.institution_id, new.name, new.reason, new.opened_by, new.opened_at, new.deadline)
    then
      raise exception 'a campaign is written once, and closed once' using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
  `create trigger campaigns_kept before update or delete on campaigns for each row execute function keep_campaign()`,
  `create trigger campaigns_not_emptied before truncate on campaigns
    for each statement execute function refuse_change()`,
  `create function keep_campaign_item() returns trigger language plpgsql as $$
  begin
    if tg_op <> 'UPDATE' or old.outcome <> 'open'
      or (old.id, old.campaign_id, old.institution_id, old.access_id, old.access_version, old.project_id, old.person_id,
          old.role)
        is distinct from (new.id, new.campaign_id, new.institution_id, new.access_id, new.access_version,
          new.project_id, new.person_id, new.role)
    then
      raise exception 'an item of a campaign is answered once' using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
  `create trigger campaign_items_kept before update or delete on campaign_items
    for each row execute function keep_campaign_item()`,
  `create trigger campaign_items_not_emptied before truncate on campaign_items
    for each statement execute function refuse_change()`,
]

export default statements
