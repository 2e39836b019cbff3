/** The queries of the identity reads' peer: the caller, the caller's roles, then the rows, written by hand. */

export const caller = `select p.id from identities i
  join people named on named.id = i.person_id
  join people p on p.id = coalesce(named.merged_into, named.id)
  where i.issuer = $1 and i.subject = $2 and p.status = 'active' and not p.removed and p.merged_into is null`

const effective = (now: string) =>
  `(i.status = 'active' and not i.removed and m.state = 'active'
    and (m.role <> 'administrator' or m.accepted_at <= ${now})
    and coalesce(m.effective_from <= ${now}, true) and coalesce(m.expires_at > ${now}, true)) is true`

const names = `array(select id from people where id = $1 or merged_into = $1)`

/** The account in one statement: a person's memberships and projects as JSON beside the row. */
export const account = `select id as person_id, issuer, subject, display_name, email, email_verified, status,
    revision as version, created_at, updated_at, operator,
    (select coalesce(json_agg(json_build_object('issuer', i.issuer, 'subject', i.subject, 'linked_at', i.linked_at)
      order by i.linked_at, i.issuer, i.subject), '[]') from identities i where i.person_id = p.id) as linked_identities,
    (select coalesce(json_agg(json_build_object('institution_id', m.institution_id, 'institution_name', i.name,
        'role', m.role, 'state', m.state, 'effective', ${effective("$2")}) order by m.institution_id, m.role), '[]')
      from institution_memberships m left join institutions i on i.id = m.institution_id
      where m.person_id = any(${names}) and not m.removed) as memberships,
    (select coalesce(json_agg(json_build_object('project_id', j.project_id, 'name', p.name,
        'relation', case when j.owner then 'owner' else 'user' end,
        'access_state', case when j.active then 'active' when j.revoked then 'revoked' else 'none' end,
        'effective', case when j.active and j.given then 'effective'
          when j.active or j.revoked and not j.taken then 'unknown' else 'not_effective' end) order by j.project_id), '[]')
      from (
        select project_id, bool_or(owner) as owner, bool_or(active) as active, bool_or(revoked) as revoked,
          bool_or(active and acknowledged) as given, bool_and(acknowledged) as taken from (
          select project_id, true as owner, false as active, false as revoked, true as acknowledged from project_owners
          where person_id = any(${names}) and active and not removed
          union all
          select project_id, false, state = 'active' and not removed, state = 'revoked' or removed, exists (
            select from access_versions v join lifecycle_told told on told.id = v.event_id
            join lifecycle_consumers c on c.project_id = told.project_id
              and (c.acknowledged_epoch, c.acknowledged_position) >= (told.epoch, told.position)
            where v.access_id = a.id and v.access_version = a.access_version)
          from access a
          where person_id = any(${names}) and state is not null
        ) relation group by project_id
      ) j left join projects p on p.id = j.project_id) as projects
  from people p where id = $1`

export const roles = `select m.role, ${effective("$3")} as effective
  from institutions i join institution_memberships m on m.institution_id = i.id and not m.removed
  where i.id = $1 and not i.removed and m.person_id = $2 and m.state <> 'ended'`

/** Of the many rows of one institution, values common to a sponsor's or a holder's rows are queried once. */
export const reviews = `with sponsors as (
    select distinct m.person_id from institution_memberships m
    join people p on p.id = m.person_id and p.status = 'active' and not p.removed and p.merged_into is null
    join institutions i on i.id = m.institution_id and i.status = 'active' and not i.removed
    where m.institution_id = $1 and m.role = 'sponsor' and m.state = 'active' and not m.removed
      and coalesce(m.effective_from <= $2, true) and coalesce(m.expires_at > $2, true)
  ), left_over as (
    select m.person_id, bool_and(m.removed or m.state = 'ended') as ended
    from (select distinct person_id from access_reviews where institution_id = $1) r
    join institution_memberships m on m.person_id = r.person_id and m.institution_id = $1 group by m.person_id
  )
  select r.id, r.institution_id, r.project_id, r.person_id, r.access_id, r.access_version, r.access_digest,
    r.decision_id, r.proposed_by, r.proposed_at, r.decision_digest, r.grant_event_id, r.grant_event_position,
    r.grant_event_digest, r.evidence_digest, r.state, r.sponsor_reason, r.approved_at, r.revoked_at,
    case when a.removed then 'revoked' else a.state end as access_state, a.access_version as current_version,
    l.installed_version, e.id as told, e.created_at as queued_at, had.delivered_at, done.acknowledged_at,
    done.acknowledged_epoch, done.acknowledged_position, done.installed_version as acknowledged_version,
    seen.observed_at, s.person_id is not null as sponsor_current, coalesce(o.ended, false) as membership_ended,
    d.key is not null as drift
  from access_reviews r
  left join access a on a.id = r.access_id
  left join projects l on l.id = r.project_id
  left join lifecycle_told e on e.id = coalesce(r.revocation_event_id, r.approval_event_id)
  left join sponsors s on s.person_id = r.proposed_by
  left join left_over o on o.person_id = r.person_id
  left join lifecycle_drift d on d.project_id = r.project_id and d.key = 'access/' || r.access_id
  left join lateral (
    select min(at) as delivered_at from (
      select c.delivered_at as at from lifecycle_consumers c
      where c.project_id = e.project_id and (c.delivered_epoch, c.delivered_position) >= (e.epoch, e.position)
      union all
      select n.given_at from lifecycle_given n
      where (n.project_id, n.epoch, n.position) = (e.project_id, e.epoch, e.position)
    ) taken
  ) had on true
  left join lateral (
    select c.* from lifecycle_consumers c
    where c.project_id = e.project_id and (c.acknowledged_epoch, c.acknowledged_position) >= (e.epoch, e.position)
    order by c.acknowledged_at limit 1
  ) done on true
  left join lateral (
    select min(c.acknowledged_at) as observed_at from access_versions v join lifecycle_told g on g.id = v.event_id
    join lifecycle_consumers c on c.project_id = g.project_id
      and (c.acknowledged_epoch, c.acknowledged_position) >= (g.epoch, g.position)
    where v.access_id = a.id and v.access_version = a.access_version
  ) seen on true
  where r.institution_id = $1
  order by r.proposed_at desc, r.id desc`

export const candidates = `select a.id as access_id, a.access_version, a.person_id, a.project_id, a.role,
    v.created_at as granted_at, v.event_id as grant_event_id
  from access a join access_versions v on v.access_id = a.id and v.access_version = a.access_version
  where a.institution_id = $1 and a.state = 'active' and not a.removed and not exists (
    select from access_reviews r
    where r.access_id = a.id and r.access_version = a.access_version and r.state in ('proposed', 'approved'))
  order by a.id`
