/**
 * A signed revocation ends exactly the version of an Access that was signed. `access.ends_version`: the only version that
 * `ends_at` ends; null: it ends any. `access.ends_before`: the end that counts for any other version.
 */
const statements: ReadonlyArray<string> = [
  `alter table access add column ends_version integer, add column ends_before timestamptz`,
  `alter table access_ends add column access_version integer`,
]

export default statements
