/**
 * An expired review of an Access version makes room for the next one (`lapsed`): a proposal after 168 hours, an
 * approval after 8760. Its decision and evidence stay; a lapsed review can still be revoked.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `alter table access_reviews add column lapsed_at timestamptz`,
  // The index for one open review per Access version stays: processes of the last version use it by its name.
  `alter table access_reviews drop constraint access_reviews_state_check`,
  `alter table access_reviews add constraint access_reviews_state_check
    check (state in ('proposed', 'approved', 'revoked', 'lapsed'))`,
  `alter table access_reviews add constraint access_reviews_lapsed_check check (
    (state <> 'lapsed' or lapsed_at is not null)
    and lapsed_at >= coalesce(approved_at + interval '8760 hours', proposed_at + interval '168 hours'))`,
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
      or old.state = 'revoked' or old.state = new.state
      or (old.state = 'approved' and new.state not in ('revoked', 'lapsed'))
      or (old.state = 'lapsed' and new.state <> 'revoked')
      or (old.lapsed_at is not null and new.lapsed_at is distinct from old.lapsed_at)
      or (new.state = 'lapsed' and
         (new.evidence_count, new.evidence_digest, new.approved_by, new.approved_at, new.approval_event_id)
        is distinct from
         (old.evidence_count, old.evidence_digest, old.approved_by, old.approved_at, old.approval_event_id))
      or (new.state <> 'lapsed'
        and (new.evidence_count <> old.evidence_count + 1 or new.evidence_digest = old.evidence_digest))
      or (old.approved_at is not null and (old.approved_by, old.approved_at, old.approval_event_id)
        is distinct from (new.approved_by, new.approved_at, new.approval_event_id))
    then
      raise exception 'a decision of a review is written once and never changed' using errcode = 'restrict_violation';
    end if;
    return new;
  end $$`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
