/**
 * How far each service has followed a project: one definition for the consumers that a change of keys waits for
 * (Keys/UnacknowledgedConsumers.ts) and for the lag that is reported (Lag.ts).
 *
 * A service that may acknowledge has followed up to its acknowledgement, any other service up to what was delivered: by
 * its cursor, or by all of its streams. A stream that leaves out subjects or events promises no positions. So a service
 * whose streams all leave something out must acknowledge only if it has acknowledged since the streams do.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"
import { eventsSupported } from "../../schemas/identity/LifecycleEventKinds.ts"

/**
 * SQL of a query for the services with an effective grant, of the projects `gp` that `which` selects: project_id,
 * service_issuer, service_id, consumer (`<issuer> <client>`) and the capabilities of all its grants.
 */
export const followers = (sql: PgClient.PgClient, now: Date, which: Statement.Fragment) =>
  sql`
    select g.project_id, g.service_issuer, g.service_id, g.service_issuer || ' ' || g.service_id as consumer,
      bool_or('events.read' = any(g.capabilities)) as events, bool_or('snapshot.read' = any(g.capabilities)) as snapshots,
      bool_or('cursor.acknowledge' = any(g.capabilities)) as acknowledges,
      bool_or('stream.manage' = any(g.capabilities)) as streams
    from service_grants g join projects gp on gp.id = g.project_id and not gp.removed and gp.state <> 'withdrawn'
    where g.state = 'approved' and g.environment = gp.environment and coalesce(g.expires_at > ${now}, true) and ${which}
    group by g.project_id, g.service_issuer, g.service_id`

/**
 * SQL of a query for the one row that says how far a follower `f` with the consumer row `c` (which may be absent) has
 * come: delivered_epoch and delivered_position, null where nothing was delivered; `acknowledges`, whether it must
 * acknowledge; `moves`, whether the consumer row can still move.
 *
 * A consumer row moves no more where all streams are stopped or leave something out and the row has come no further
 * than these streams: it is left over from the time before they were.
 */
export const progress = (sql: PgClient.PgClient) =>
  sql`
    select reached.epoch as delivered_epoch, reached.position as delivered_position, asked.acknowledges,
      case when asked.acknowledges then f.events or f.snapshots
        else f.events and (s.mute and array[c.delivered_epoch, c.delivered_position] <= s.furthest) is not true end as moves
    from (
      select bool_and(t.filters) filter (where t.status <> 'disabled') as filters,
        bool_and(t.filters or t.status <> 'enabled') as mute, max(t.reached) as furthest, max(t.updated_at) as changed_at
      from (
        select st.status, st.updated_at, array[st.epoch, st.position] as reached, coalesce(not st.events_requested @> ${[
    ...eventsSupported,
  ]}::text[], false)
          or exists (select from lifecycle_stream_subjects x where x.stream_id = st.id and not x.included) as filters
        from lifecycle_streams st
        where st.project_id = f.project_id and st.service_issuer = f.service_issuer and st.service_id = f.service_id
      ) t
    ) s
    cross join lateral (
      select f.acknowledges and (coalesce(s.filters, false)
        and coalesce(c.acknowledged_at <= s.changed_at, true)) is not true as acknowledges
    ) asked
    left join lateral (
      select p.epoch, p.position from (
        select c.delivered_epoch as epoch, c.delivered_position as position where c.delivered_epoch is not null
        union all (
          -- Events before the positions of all its streams were delivered, or were not for this service.
          select st.epoch, st.position from lifecycle_streams st
          where st.project_id = f.project_id and st.service_issuer = f.service_issuer and st.service_id = f.service_id
            and st.status <> 'disabled'
          order by st.epoch, st.position limit 1
        )
      ) p order by p.epoch desc, p.position desc limit 1
    ) reached on true`
