/**
 * What the doctor counts by the hour: mails, Slack messages and jobs at the provider that did not succeed, by the time of
 * their end. Each index holds such rows alone.
 */
const statements: ReadonlyArray<string> = [
  `create index concurrently if not exists mails_troubled_at on mails (coalesce(ended_at, created_at))
    where state in ('failed', 'unknown')`,
  `create index concurrently if not exists slack_messages_failed on slack_messages (ended_at) where state = 'failed'`,
  `create index concurrently if not exists provider_jobs_troubled_at on provider_jobs (updated_at)
    where state in ('failed', 'ambiguous')`,
]

export default statements
