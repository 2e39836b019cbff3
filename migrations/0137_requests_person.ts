/** The index by which the requests about a person are found: the decisions that the person asks proofs of. */
const statements: ReadonlyArray<string> = [
  `create index concurrently if not exists requests_person on requests (person_id, id) where person_id is not null`,
]

export default statements
