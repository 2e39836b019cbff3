/** Pages of an institution's reviews, and of the Accesses that no review covers. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { AccessReviewId, type InstitutionId, type PersonId } from "../../../schemas/BrandedIds.ts"
import { AccessReviews, type ReviewPage } from "../../../services/access/AccessReviews.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { timed } from "../../support/Fixtures.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { access, person } from "../../support/TestIdentity.ts"
import { fixture, list, on, propose, revoke, said, services } from "./ReviewFixture.ts"

const paged = Effect.fnUntraced(function* (institution: InstitutionId, by: PersonId, page: Partial<ReviewPage>) {
  const reviews = yield* AccessReviews
  const whole = { limit: 100, afterId: null, afterAccessId: null, ...page }
  const { candidates, reviews: found } = said(yield* reviews.list(by, institution, whole))
  return { reviews: found, candidates }
})

/** An institution with so many reviews, and as many Accesses without one. */
const reviewed = Effect.fnUntraced(function* (many: number) {
  const w = yield* fixture
  for (let n = 0; n < many; n++) {
    const accessId = n === 0 ? w.accessId : yield* access(w.fern, w.portal, yield* person())
    yield* propose({ ...w, accessId })
    yield* access(w.fern, w.portal, yield* person())
    // Two reviews of each moment: their ids decide.
    if (n % 2 === 1) yield* TestClock.adjust("1 second")
  }
  return w
})

layer(services, { excludeTestServices: true })("pages of reviews", (it) => {
  it.effect("have each review and each candidate once, in the order of the whole list, and as it shows them", () =>
    timed(Effect.gen(function* () {
      const w = yield* reviewed(5)
      const whole = yield* list(w, w.sam)
      assert.strictEqual(whole.reviews.length, 5)
      assert.strictEqual(whole.candidates.length, 5)
      for (const limit of [1, 2, 5, 6]) {
        const reviews: Array<typeof whole.reviews[number]> = []
        const candidates: Array<typeof whole.candidates[number]> = []
        for (let n = 0; n < 5; n += limit) {
          const page = yield* paged(w.fern, w.sam, {
            limit,
            afterId: reviews.at(-1)?.review_id ?? null,
            afterAccessId: candidates.at(-1)?.access_id ?? null,
          })
          reviews.push(...page.reviews)
          candidates.push(...page.candidates)
        }
        assert.deepStrictEqual({ reviews, candidates }, { reviews: whole.reviews, candidates: whole.candidates })
      }
      const [first, last] = [whole.reviews[0]!.review_id, whole.reviews.at(-1)!.review_id]
      assert.deepStrictEqual(yield* paged(w.fern, w.sam, { afterId: last }), {
        reviews: [],
        candidates: whole.candidates,
      })

      // A cursor of another institution is a place in no list of this one.
      const other = yield* reviewed(1)
      assert.deepStrictEqual((yield* paged(other.fern, other.sam, { afterId: first })).reviews, [])
      // A review that is made meanwhile is on no later page.
      const { reviews: [, second] } = whole
      yield* propose({ ...w, accessId: whole.candidates[0]!.access_id })
      const next = yield* paged(w.fern, w.sam, { limit: 1, afterId: first })
      assert.deepStrictEqual(next.reviews, [second!])
    })))

  it.effect("read the rows of the page alone", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { review_id } = yield* propose(w)
      yield* revoke(on(w, w.ada, review_id))
      const { owner, sql } = yield* Database
      yield* owner.unsafe(`
        insert into access_reviews
        select (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid(),
          'proposed_at', r.proposed_at - n * interval '1 second'))).*
        from access_reviews r, generate_series(1, 20000) n where r.id = '${review_id}'`)
      yield* owner`vacuum analyze access_reviews`
      const [, { reviews: begin }] = yield* rowsRead(sql, paged(w.fern, w.sam, { limit: 20 }))
      const [rows, { reviews }] = yield* rowsRead(
        sql,
        paged(w.fern, w.sam, { limit: 20, afterId: begin.at(-1)!.review_id }),
      )
      assert.lengthOf(reviews, 20)
      assert.isBelow(Date.parse(reviews[0]!.proposed_at), Date.parse(begin.at(-1)!.proposed_at))
      for (const [table, n] of rows) assert.isAtMost(n, 100, table)
    })))

  it.effect("one review is read as the list shows it, within its institution alone", () =>
    timed(Effect.gen(function* () {
      const { one } = yield* AccessReviews
      const w = yield* reviewed(3)
      const { reviews } = yield* list(w, w.ada)
      for (const review of reviews) assert.deepStrictEqual(yield* one(w.ada, w.fern, review.review_id), review)
      const other = yield* reviewed(1)
      const { review_id } = reviews[0]!
      const refused = [
        one(other.ada, other.fern, review_id),
        one(other.ada, w.fern, review_id),
        one(w.ada, w.fern, AccessReviewId.make(randomUUID())),
        one(w.ada, w.fern, AccessReviewId.make("no-uuid")),
      ]
      for (const read of refused) assert.strictEqual((yield* Effect.flip(read))._tag, "NotFound")
    })))
})
