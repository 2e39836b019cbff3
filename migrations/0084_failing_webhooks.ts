/**
 * Accounts are told once of a webhook that has failed for five days. `interrupted` are attempts without an outcome, among
 * `n`: they are no failures of the receiver. `judged_from`: failures before this time do not count, since the webhook was
 * resumed or got another address then; null: all count.
 */
const statements: ReadonlyArray<string> = [
  `alter table delivery_minutes add column interrupted bigint not null default 0`,
  `alter table webhook_health add column failing_told_at timestamptz`,
  `alter table webhooks add column judged_from timestamptz`,
  `create index concurrently if not exists webhook_health_failing on webhook_health (failing_since)
    where failing_since is not null`,
]

export default statements
