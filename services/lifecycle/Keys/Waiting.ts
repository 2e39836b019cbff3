/**
 * Whom a change of keys waits for: consumers that could not yet have committed to what their project was told. Who may
 * acknowledge has done so once its acknowledgement is at that place or beyond it; for whom the grant does not say that,
 * and for streams, it is what was delivered. Nobody waits for who has no standing grant, nor for who has to take a
 * snapshot first anyway: that names the keys, too.
 */
import type { PgClient } from "@effect/sql-pg"

/** SQL of a query for `who`, over the aliases `p` (lifecycle_project_keys) and `pr` (projects). */
export const waitingFor = (sql: PgClient.PgClient, now: Date) => {
  const stands = sql`g.state = 'approved' and g.environment = pr.environment and pr.state <> 'withdrawn'
    and not pr.removed and coalesce(g.expires_at > ${now}, true)`
  return sql`
    select c.consumer as who
    from lifecycle_consumers c
    join lateral (
      select bool_or('cursor.acknowledge' = any(g.capabilities)) as acknowledges
      from service_grants g
      where g.project_id = c.project_id and g.service_issuer || ' ' || g.service_id = c.consumer and ${stands}
      having count(*) > 0
    ) g on true
    where c.project_id = p.project_id
      and (case when g.acknowledges then (c.acknowledged_epoch, c.acknowledged_position)
        >= (p.told_epoch, p.told_position)
        else (c.delivered_epoch, c.delivered_position) >= (p.told_epoch, p.told_position) end) is not true
      and (c.floor_epoch is null
        or (c.acknowledged_epoch, c.acknowledged_position) >= (c.floor_epoch, c.floor_position)
        or (c.delivered_epoch, c.delivered_position) >= (c.floor_epoch, c.floor_position))
    union all
    select 'stream ' || st.id
    from lifecycle_streams st
    where st.project_id = p.project_id and st.status = 'enabled'
      and (st.epoch, st.position) < (p.told_epoch, p.told_position)
      and exists (
        select from service_grants g
        where g.project_id = st.project_id and g.service_issuer = st.service_issuer and g.service_id = st.service_id
          and ${stands})`
}
