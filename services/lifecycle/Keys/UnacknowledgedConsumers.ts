/**
 * The consumers that a change of keys waits for: those that have not followed the project as far as the announcement
 * (Followers.ts), and enabled streams that have not come to its position. Only a consumer that can move is waited for:
 * no service without an effective grant that lets it read, no consumer row that was moved by streams which are stopped
 * or leave something out since, and no consumer that must take a snapshot first anyway, since the snapshot names the
 * keys.
 */
import type { PgClient } from "@effect/sql-pg"
import { followers, progress } from "../Followers.ts"

/** SQL of a query for `who`, the consumers' names, over the alias `p` (lifecycle_project_keys). */
export const waitingFor = (sql: PgClient.PgClient, now: Date) => {
  const standing = followers(sql, now, sql`g.project_id = p.project_id`)
  return sql`
    select c.consumer as who
    from (${standing}) f
    join lifecycle_consumers c on c.project_id = f.project_id and c.consumer = f.consumer
    cross join lateral (${progress(sql)}) d
    where d.moves
      and (case when d.acknowledges then (c.acknowledged_epoch, c.acknowledged_position)
        >= (p.told_epoch, p.told_position)
        else (d.delivered_epoch, d.delivered_position) >= (p.told_epoch, p.told_position) end) is not true
      and (c.floor_epoch is null
        or (c.acknowledged_epoch, c.acknowledged_position) >= (c.floor_epoch, c.floor_position)
        or (c.delivered_epoch, c.delivered_position) >= (c.floor_epoch, c.floor_position))
    union all
    select 'stream ' || st.id
    from (${standing}) f
    join lifecycle_streams st on st.project_id = f.project_id and st.service_issuer = f.service_issuer
      and st.service_id = f.service_id
    where f.streams and f.events and st.status = 'enabled' and (st.epoch, st.position) < (p.told_epoch, p.told_position)`
}
