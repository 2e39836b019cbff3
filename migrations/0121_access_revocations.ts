/**
 * Requests that an Access is revoked. `requests_check` is the constraint of a kind's states (0012_requests.ts); one request
 * at a time is open for a version of an Access in its institution.
 */
const statements: ReadonlyArray<string> = [
  `alter table requests drop constraint requests_kind_check, drop constraint requests_check`,
  `alter table requests
    add constraint requests_kind_check check (kind in ('organization', 'website', 'access', 'enrollment', 'launch',
      'link', 'membership', 'authenticator_reset', 'access_revocation')) not valid,
    add constraint requests_check check (state = any (case kind
      when 'organization' then array['submitted', 'approved', 'declined']
      when 'website' then array['submitted', 'approved', 'declined', 'superseded']
      when 'access' then array['submitted', 'approved', 'declined', 'expired']
      when 'membership' then array['submitted', 'approved', 'declined', 'expired']
      when 'authenticator_reset' then array['submitted', 'approved', 'declined', 'expired']
      when 'access_revocation' then array['submitted', 'approved', 'declined', 'expired']
      when 'enrollment' then array['held', 'invited', 'accepted', 'expired', 'revoked']
      when 'launch' then array['proposed', 'approved', 'launched', 'held', 'declined', 'superseded']
      else array['pending_review', 'linked', 'declined', 'expired'] end)) not valid`,
  `alter table policy_reviews drop constraint policy_reviews_kind_check`,
  `alter table policy_reviews add constraint policy_reviews_kind_check check (kind in ('organization', 'website',
    'access', 'enrollment', 'enrollment_claim', 'launch', 'link', 'membership', 'authenticator_reset',
    'access_revocation')) not valid`,
  `create unique index concurrently if not exists requests_revocation_open
    on requests (institution_id, (fields ->> 'access_id'), (fields ->> 'access_version'))
    where kind = 'access_revocation' and state = 'submitted'`,
]

export default statements
