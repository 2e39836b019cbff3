/** What evidence packs read of an institution: its requests about Access and memberships, in the order of their ids. */
const statements: ReadonlyArray<string> = [
  `create index concurrently if not exists requests_decided on requests (institution_id, id)
    where kind in ('access', 'access_revocation', 'membership')`,
]

export default statements
