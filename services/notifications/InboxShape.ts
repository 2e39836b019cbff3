/** SQL that makes the JSON of a notification. */

/** SQL of a time as answers show it. */
export const time = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** SQL of a `NotificationView` as JSON, over the alias `n` of notifications. */
export const notificationJson = `(select row_to_json(v) from (select n.id, n.category, n.severity, n.title,
  case when n.count = 1 then n.body else n.body || ' (' || n.count || ' times within the hour)' end as body,
  n.href, n.count, ${time("n.read_at")} as read_at, ${time("n.created_at")} as created_at) v)`
