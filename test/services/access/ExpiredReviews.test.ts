/** An expired review leaves its Access version to the next proposal. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Drift } from "../../../services/lifecycle/Drift.ts"
import { drifting } from "../../../services/lifecycle/Lag.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { verified } from "./EvidenceChain.ts"
import { approve, fixture, list, on, propose, revoke, services } from "./ReviewFixture.ts"
import { day, start, tagOf, timed } from "../../support/Fixtures.ts"

layer(Drift.layer.pipe(Layer.provideMerge(services)), { excludeTestServices: true })("An expired review", (it) => {
  it.effect("makes room for one new proposal from the moment it expires, before any sweep", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const candidates = Effect.map(list(w, w.sam), (listed) => listed.candidates.map(({ proposable }) => proposable))
      const shown = Effect.map(
        list(w, w.ada),
        ({ reviews }) => reviews.map(({ state, validity }) => [state, ...validity.reasons]),
      )
      const first = yield* propose(w)
      yield* TestClock.setTime(start + 7 * day - 1)
      const early = yield* Effect.flip(propose(w))
      assert.include(String(early.detail), `Review ${first.review_id} of this Access version is proposed until`)
      assert.deepStrictEqual(yield* candidates, [])
      yield* TestClock.setTime(start + 7 * day)
      assert.deepStrictEqual(yield* candidates, [true])
      const outcomes = yield* Effect.all(Array.from({ length: 8 }, () => tagOf(propose(w))), { concurrency: 8 })
      assert.strictEqual(outcomes.filter((tag) => tag === "done").length, 1)
      assert.deepStrictEqual(new Set(outcomes), new Set(["done", "ReviewExists"]))
      assert.deepStrictEqual(yield* shown, [["proposed"], ["proposed", "review_expired"]])
      // Otherwise two approvals of one version could be current at once.
      const late = yield* Effect.flip(approve(on(w, w.ada, first.review_id)))
      assert.deepInclude(late, { _tag: "InvalidState", state: "expired" })
      assert.deepStrictEqual(yield* verified(first.review_id), [first.evidence_digest])

      const [second] = (yield* list(w, w.ada)).reviews
      yield* approve(on(w, w.ada, second!.review_id))
      yield* TestClock.setTime(start + 372 * day - 1)
      assert.strictEqual(yield* tagOf(propose(w)), "ReviewExists")
      yield* TestClock.setTime(start + 372 * day)
      assert.strictEqual(yield* tagOf(propose(w)), "done")
      assert.deepStrictEqual(yield* shown, [
        ["proposed"],
        ["approved", "review_expired"],
        ["proposed", "review_expired"],
      ])
      assert.lengthOf(yield* verified(second!.review_id), 2)
      // The product was told of the approval; the expiry itself is no event.
      const { sql, wide } = yield* Database
      yield* (yield* Drift).look
      assert.deepStrictEqual(yield* drifting(wide, w.portal), [])
      assert.strictEqual(yield* tagOf(revoke(on(w, w.ada, second!.review_id))), "done")
      const recorded = yield* sql`select subject from audit_records
        where action = 'access-review.expired' and subject = any(${
        [first, second!].map(({ review_id }) => `access-review:${review_id}`)
      }) order by id`
      assert.lengthOf(recorded, 2)
    })))

  it.effect("cannot be marked expired early, and an approval in the last moment keeps its place", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { review_id } = yield* propose(w)
      const { owner, sql } = yield* Database
      const lapsing = (at: number) =>
        Effect.exit(owner`update access_reviews set state = 'lapsed', lapsed_at = ${new Date(at)}
          where id = ${review_id}::uuid`)
      assert.isTrue(Exit.isFailure(yield* lapsing(start + 7 * day - 1)))
      yield* TestClock.setTime(start + 7 * day)
      const [approved, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const approving = yield* approve(on(w, w.ada, review_id)).pipe(
        Effect.tap(() => Effect.andThen(Deferred.succeed(approved, undefined), Deferred.await(go))),
        sql.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(approved)
      const proposing = yield* Effect.forkChild(tagOf(propose(w)))
      const waits = sql<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%access_reviews%'`
      yield* waits.pipe(Effect.repeat({ until: ([row]) => row!.n > 0 }))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(approving)
      assert.strictEqual(yield* Fiber.join(proposing), "ReviewExists")
      assert.isTrue(Exit.isFailure(yield* lapsing(start + 7 * day)))
    })))
})
