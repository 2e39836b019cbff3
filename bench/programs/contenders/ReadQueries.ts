/** The queries of both peers: one statement for the credential, then the endpoint's own, as written by hand. */
import { createHash } from "node:crypto"

export const hashOf = (authorization: string | undefined | null): Buffer =>
  createHash("sha256").update(authorization?.slice("Bearer ".length) ?? "").digest()

const time = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column}`

export const authentication = `select a.id, a.plan, a.platform_admin, k.id as key_id
  from api_keys k join accounts a on a.id = k.account_id
  where k.hash = $1 and k.is_active and a.status = 'active' and not a.removed`

export const keys = `select id, name, key_prefix, permissions, is_active, ${time("last_used_at")}, ${time("created_at")}
  from api_keys k where account_id = $1 and is_active order by k.created_at desc, k.id desc`

/** The webhook's count, or no row where the webhook is not the account's. */
export const total = `select (select coalesce(sum(n), 0)::int from delivery_counts where webhook_id = w.id) as total
  from webhooks w where w.id = $1 and w.account_id = $2 and w.deleted_at is null`

export const page = `select id, webhook_id, event_type, status, response_status, attempt,
  ${time("next_retry_at")}, ${time("created_at")}
  from deliveries d where webhook_id = $1 order by d.id desc limit 20`
