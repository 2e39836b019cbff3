/** Indexes for the Access of an institution at a past moment (services/access/PastAccess.ts). */
const statements: ReadonlyArray<string> = [
  `create index concurrently if not exists access_versions_institution
    on access_versions (institution_id, access_id, access_version)`,
  // The index of open reviews does not have those that ended.
  `create index concurrently if not exists access_reviews_version on access_reviews (access_id, access_version)`,
]
export default statements
