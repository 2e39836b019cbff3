/**
 * Indexes by which the newest of what was decided about a person is found without reading all of it: what the person asked
 * for, what others asked about the person, and the reviews of the person's Access (services/operations/DecidedAbout.ts).
 */
const statements: ReadonlyArray<string> = [
  `create index concurrently if not exists requests_own on requests (author, id)
    where person_id is null or kind = 'link'`,
  `create index concurrently if not exists requests_own_decided on requests (author, decided_at)
    where (person_id is null or kind = 'link') and decided_at is not null`,
  `create index concurrently if not exists requests_person_decided on requests (person_id, decided_at)
    where person_id is not null and decided_at is not null`,
  `create index concurrently if not exists access_reviews_of_person on access_reviews (person_id, proposed_at)
    where state <> 'proposed'`,
  `create index concurrently if not exists access_reviews_decided
    on access_reviews (person_id, greatest(approved_at, revoked_at, lapsed_at)) where state <> 'proposed'`,
]

export default statements
