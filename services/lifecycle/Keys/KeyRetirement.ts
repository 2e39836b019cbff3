/**
 * When a key that only verifies may be retired: seven days after the last project switched, and not while a stream
 * still has to deliver a message that the key signed, unless the message is older than streams hold messages (90 days).
 */
import type { PgClient } from "@effect/sql-pg"
import { unsaidUnder } from "./PendingControlMessages.ts"

const day = 86_400_000
export const retiringMillis = 7 * day
const heldMillis = 90 * day

/** SQL of whether the key `k` may be retired. */
export const ripe = (sql: PgClient.PgClient, now: Date) => {
  const before = (millis: number) => new Date(now.getTime() - millis)
  return sql`k.state = 'retiring' and k.changed_at <= ${before(retiringMillis)}
    and not exists (select from lifecycle_project_keys p where p.kid = k.kid)
    and (k.changed_at <= ${before(heldMillis)} or not exists (
      select from lifecycle_stream_messages o where ${unsaidUnder(sql, sql.literal("k.kid"))}
    ) and not exists (
      select from lifecycle_key_places a
      join lifecycle_streams st on st.project_id = a.project_id and st.status <> 'disabled'
      join lateral (
        select n.epoch, n.position from lifecycle_key_places n
        where n.project_id = a.project_id and (n.epoch, n.position) > (a.epoch, a.position)
        order by n.epoch, n.position limit 1
      ) n on true
      where a.kid = k.kid and (st.epoch, st.position) < (n.epoch, n.position - 1)))`
}
