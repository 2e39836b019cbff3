/**
 * Who ended or stopped a thing. Whether a request was ended by its own author: the state alone does not tell that from a
 * decision of others. Since when and by whom a webhook is paused; null: it is active, or it was paused by an earlier
 * release. `paused_under`: who had paused it when an operator paused it as well, and so leaves it paused.
 */
const statements: ReadonlyArray<string> = [
  `alter table requests add column withdrawn boolean not null default false`,
  `alter table webhooks add column paused_at timestamptz`,
  `alter table webhooks add column paused_by text`,
  `alter table webhooks add column paused_under text`,
  `create index concurrently if not exists webhooks_paused_by_operator on webhooks (id)
    where paused_by = 'operator' and deleted_at is null`,
]

export default statements
