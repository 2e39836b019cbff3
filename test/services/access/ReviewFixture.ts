/** Fixture: an institution with a Sponsor, two administrators and one Access, and their commands on its reviews. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { AccessId, AccessReviewId, InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { GrantReviewList } from "../../../schemas/identity/AccessReview.ts"
import { AccessReviews, type ReviewDecision } from "../../../services/access/AccessReviews.ts"
import { listing } from "../../../services/access/AccessReviews/Listing.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { reason } from "../../support/Fixtures.ts"
import { access, identity, institution, member, person, project } from "../../support/TestIdentity.ts"

export const services = AccessReviews.layer.pipe(Layer.provideMerge(Roles.layer), Layer.provideMerge(identity))

export const fixture = Effect.gen(function* () {
  const [fern, sam, ada, abe, pat] = yield* Effect.all([institution(), person(), person(), person(), person()])
  yield* member(fern, sam, "sponsor")
  yield* member(fern, ada, "administrator")
  yield* member(fern, abe, "administrator")
  const portal = yield* project(fern)
  const accessId = yield* access(fern, portal, pat)
  return { fern, sam, ada, abe, pat, portal, accessId }
})
export type Fixture = Effect.Success<typeof fixture>

export const propose = (
  { accessId, fern, sam }: Fixture,
  more: { access_version?: number; personId?: PersonId } = {},
) =>
  Effect.flatMap(AccessReviews, (reviews) =>
    run(reviews.propose({
      access_id: accessId,
      access_version: 1,
      reason,
      personId: sam,
      institutionId: fern,
      ...more,
    })))

export const on = (
  { fern }: Fixture,
  personId: PersonId,
  reviewId: AccessReviewId,
  ...seen: ReadonlyArray<string>
): ReviewDecision => ({
  personId,
  institutionId: fern,
  reviewId,
  reason,
  seen: seen.length === 0 ? undefined : seen,
})
export const approve = (decision: ReviewDecision) =>
  Effect.flatMap(AccessReviews, (reviews) => run(reviews.approve({ ...decision, stepUp: Effect.void })))
export const revoke = (decision: ReviewDecision) =>
  Effect.flatMap(AccessReviews, (reviews) => run(reviews.revoke(decision)))
const decoder = new TextDecoder()
/** The list that was sent as these bytes. */
export const said = (list: Uint8Array): GrantReviewList => JSON.parse(decoder.decode(list))
export const list = ({ fern }: Fixture, personId: PersonId) =>
  Effect.flatMap(AccessReviews, (reviews) => Effect.map(reviews.list(personId, fern), said))

/** Asserts that a kept list equals a newly made one. */
export const asAnew = Effect.fnUntraced(function* (personId: PersonId, institutionId: InstitutionId) {
  const written = said(yield* (yield* AccessReviews).list(personId, institutionId))
  const anew = yield* Effect.scoped(Effect.flatMap(listing, ({ list }) => list(personId, institutionId)))
  assert.deepStrictEqual({ ...written, as_of: "" }, { ...said(anew), as_of: "" })
  return written
})

export const rawAccess = (accessId: AccessId) =>
  Effect.flatMap(Database, ({ sql }) => sql`select * from access where id = ${accessId}`)
