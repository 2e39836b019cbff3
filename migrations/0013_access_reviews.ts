/**
 * Reviews of Access grants, and service grants. Decisions are written once, as one chain of evidence per review; the
 * review's row holds its state, which only moves forward. The database, too, enforces that the approver is not the
 * proposer.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table access_reviews (
    id uuid primary key,
    institution_id text not null,
    project_id text not null,
    access_id text not null,
    access_version integer not null,
    access_digest text not null,
    person_id text not null,
    grant_event_id uuid not null,
    grant_event_position bigint not null,
    grant_event_digest text not null,
    state text not null check (state in ('proposed', 'approved', 'revoked')),
    decision_id uuid not null,
    decision_digest text not null,
    proposed_by text not null,
    proposed_at timestamptz not null,
    sponsor_reason text not null,
    approved_by text,
    approved_at timestamptz,
    approval_event_id uuid,
    revoked_by text,
    revoked_at timestamptz,
    revocation_event_id uuid,
    evidence_digest text not null,
    evidence_count integer not null,
    check (approved_by <> proposed_by),
    check ((approved_by is null) = (approved_at is null) and (revoked_by is null) = (revoked_at is null)),
    check ((state = 'revoked') = (revoked_at is not null)),
    check (state <> 'approved' or approved_at is not null)
  )`,
  `create unique index access_reviews_open on access_reviews (access_id, access_version)
    where state in ('proposed', 'approved')`,
  `create index access_reviews_institution on access_reviews (institution_id, proposed_at desc, id desc)`,
  `create function keep_access_review() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE'
      or (old.id, old.institution_id, old.project_id, old.access_id, old.access_version, old.access_digest, old.person_id,
          old.grant_event_id, old.grant_event_position, old.grant_event_digest, old.decision_id, old.decision_digest,
          old.proposed_by, old.proposed_at, old.sponsor_reason)
        is distinct from
         (new.id, new.institution_id, new.project_id, new.access_id, new.access_version, new.access_digest, new.person_id,
          new.grant_event_id, new.grant_event_position, new.grant_event_digest, new.decision_id, new.decision_digest,
          new.proposed_by, new.proposed_at, new.sponsor_reason)
      or old.state = 'revoked' or (old.state = 'approved' and new.state <> 'revoked')
      or (old.approved_at is not null and (old.approved_by, old.approved_at, old.approval_event_id)
        is distinct from (new.approved_by, new.approved_at, new.approval_event_id))
    then
      raise exception 'a decision of a review is written once and never changed' using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
  `create trigger access_reviews_kept before update or delete on access_reviews
    for each row execute function keep_access_review()`,
  `create trigger access_reviews_not_emptied before truncate on access_reviews
    for each statement execute function refuse_change()`,
  `create table access_review_evidence (
    review_id uuid not null,
    nth integer not null check (nth >= 1),
    receipt_id uuid not null unique,
    action text not null check (action in ('propose', 'approve', 'revoke')),
    person_id text not null,
    at timestamptz not null,
    reason text not null,
    digest text not null,
    prev_digest text not null,
    primary key (review_id, nth)
  )`,
  `create trigger access_review_evidence_kept before update or delete on access_review_evidence
    for each row execute function refuse_change()`,
  `create trigger access_review_evidence_not_emptied before truncate on access_review_evidence
    for each statement execute function refuse_change()`,
  `create table service_grants (
    id uuid primary key,
    project_id text not null,
    service_id text not null,
    service_issuer text not null,
    capabilities text[] not null,
    environment text not null check (environment in ('staging', 'production')),
    state text not null check (state in ('proposed', 'approved', 'revoked')),
    revision integer not null,
    reason text not null,
    proposed_by text not null,
    proposed_at timestamptz not null,
    approved_by text,
    approved_at timestamptz,
    approval_reason text,
    approval_event_id uuid,
    revoked_by text,
    revoked_at timestamptz,
    revocation_reason text,
    expires_at timestamptz,
    check (approved_by <> proposed_by),
    check ((approved_by is null) = (approved_at is null)),
    check ((state = 'revoked') = (revoked_at is not null)),
    check (state <> 'approved' or approved_at is not null)
  )`,
  `create index service_grants_project on service_grants (project_id, id)`,
  // The rights of a service's token, checked at each delivery.
  `create index service_grants_service on service_grants (service_issuer, service_id, project_id)
    where state = 'approved'`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
