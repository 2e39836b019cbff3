/** How a notification looks on the wire, shaped in SQL. */

/** A time of the wire. */
export const time = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** SQL of a `NotificationView` as JSON, over the alias `n` of notifications. */
export const notificationJson = `json_build_object(
  'id', n.id, 'category', n.category, 'severity', n.severity, 'title', n.title,
  'body', case when n.count = 1 then n.body else n.body || ' (' || n.count || ' times within the hour)' end,
  'href', n.href, 'count', n.count, 'read_at', ${time("n.read_at")}, 'created_at', ${time("n.created_at")})`
