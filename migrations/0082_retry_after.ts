/** Whether the retries of a webhook's deliveries wait for as long as its receiver asks by `Retry-After`. */
const statements: ReadonlyArray<string> = [
  `alter table webhooks add column honor_retry_after boolean not null default false`,
]

export default statements
