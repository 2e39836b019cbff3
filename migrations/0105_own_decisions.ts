/** Indexes by which what a person approved or declined is listed, newest first, without reading all of it. */
const statements: ReadonlyArray<string> = [
  `create index concurrently if not exists policy_approvals_of_person on policy_approvals (person_id, review_id)`,
  `drop index concurrently if exists policy_approvals_person`,
  `create index concurrently if not exists policy_reviews_declined_by on policy_reviews (declined_by, id)
    where declined_by is not null`,
]

export default statements
