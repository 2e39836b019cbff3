/** How many deliveries of a webhook may begin in a second; null where there is no limit. */
const statements: ReadonlyArray<string> = [
  `alter table webhooks add column rate_limit int`,
]

export default statements
