/**
 * Custom request headers and basic authentication of a webhook. Their values are sealed by the Vault, as the secrets
 * are; `header_names` is what answers show of the headers.
 */
const statements: ReadonlyArray<string> = [
  `alter table webhooks add column header_names text[] not null default '{}',
    add column headers_kid text, add column headers bytea,
    add column basic_auth_kid text, add column basic_auth bytea`,
]

export default statements
