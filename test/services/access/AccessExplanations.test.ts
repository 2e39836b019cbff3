/** Explanations of an Access: its author, its signers, its outcome, and the obstacles to its effect. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { Institutions } from "../../../services/access/Institutions.ts"
import { AccessId } from "../../../schemas/BrandedIds.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { access, institution, member, person, project, tell } from "../../support/TestIdentity.ts"
import { askAccess, codeOf, decided, fixture, requestRow, services, sign } from "../decisions/RequestFixture.ts"

const iso = (millis: number) => new Date(millis).toISOString()

layer(Layer.mergeAll(Institutions.layer, AccessReviews.layer).pipe(Layer.provideMerge(services)), {
  excludeTestServices: true,
  timeout: "2 minutes",
})("AccessExplanations", (it) => {
  it.effect("name the request with its signatures, the versions with their events, and the reviews", () =>
    timed(Effect.gen(function* () {
      const { explain } = yield* Institutions
      const reviews = yield* AccessReviews
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      yield* sign(asked, "administrator", w.ada)
      yield* TestClock.adjust(1_000)
      yield* sign(asked, "sponsor", w.sam)
      const now = start + 1_000
      const granted = yield* requestRow(asked.request_id)
      const accessId = AccessId.make(granted.result_id!)
      const target = { access_id: accessId, access_version: 1, reason }
      const { review_id } = yield* decided(reviews.propose({ ...target, personId: w.sam, institutionId: w.fern }))
      const decision = { personId: w.abe, institutionId: w.fern, reviewId: review_id, reason }
      yield* decided(reviews.approve({ ...decision, stepUp: Effect.void }))

      const said = yield* explain(w.sam, w.fern, accessId)
      assert.deepInclude(said, { access_id: accessId, institution_id: w.fern, person_id: w.pat, as_of: iso(now) })
      assert.deepStrictEqual(said.effective, { state: "effective", blocked_by: [], drift: false })
      assert.deepStrictEqual<unknown>(said.request, {
        request_id: asked.request_id,
        person_id: w.pat,
        reason,
        requested_at: iso(start),
        approvals: [
          {
            role: "administrator",
            person_id: w.ada,
            stands_in: false,
            reason,
            approved_at: iso(start),
            independent_of: [w.pat],
          },
          {
            role: "sponsor",
            person_id: w.sam,
            stands_in: false,
            reason,
            approved_at: iso(now),
            independent_of: [w.pat, w.ada],
          },
        ],
      })
      assert.lengthOf(said.versions, 1)
      assert.deepInclude(said.versions[0], {
        access_version: 1,
        project_id: portal,
        state: "active",
        made_by: w.pat,
        approved_by: [w.ada, w.sam],
      })
      assert.strictEqual(said.versions[0]!.event.event_id, granted.event_id)
      assert.deepInclude(said.versions[0]!.delivery, { state: "queued", event_id: granted.event_id })
      assert.deepInclude(said.versions[0]!.acknowledgement, { state: "pending" })
      assert.deepStrictEqual<unknown>(said.reviews, [{
        review_id,
        access_version: 1,
        state: "approved",
        proposed_by: w.sam,
        proposed_at: iso(now),
        sponsor_reason: reason,
        approved_by: w.abe,
        approved_at: iso(now),
        independent_of: [w.sam],
        revoked_by: null,
        revoked_at: null,
        expires_at: iso(now + 365 * day),
      }])
      assert.deepStrictEqual(yield* explain(w.oz, w.fern, accessId), said, "an operator reads the same")
      assert.strictEqual(yield* codeOf(explain(w.pat, w.fern, accessId)), "not_found", "its holder does not")
    })))

  it.effect("tell everything that keeps an Access from being effective", () =>
    timed(Effect.gen(function* () {
      const { explain } = yield* Institutions
      const w = yield* fixture
      const moss = yield* institution()
      yield* member(moss, w.abe, "administrator")
      const [portal, there] = [yield* project(w.fern), yield* project(moss)]
      const pat = yield* person()
      const accessId = yield* access(w.fern, portal, pat)
      const change = (version: number, institution_id: string, project_id: string, state: "active" | "revoked") =>
        tell("access", { id: accessId, version, institution_id, project_id, person_id: pat, role: "user", state })
      const blocks = Effect.map(explain(w.ada, w.fern, accessId), ({ effective, request, versions }) => {
        assert.isNull(request, "the directory granted it")
        return [effective.state, [...effective.blocked_by], versions.map(({ made_by, state }) => [made_by, state])]
      })
      const fed = (...states: ReadonlyArray<string>) => states.map((state) => [null, state])
      assert.deepStrictEqual<unknown>(yield* blocks, ["effective", [], fed("active")])
      yield* change(2, w.fern, portal, "revoked")
      assert.deepStrictEqual<unknown>(yield* blocks, ["not_effective", ["access_revoked"], fed("revoked", "active")])
      yield* person({ id: pat, version: 2, status: "suspended" })
      yield* change(3, w.fern, portal, "active")
      const again = fed("active", "revoked", "active")
      assert.deepStrictEqual<unknown>(yield* blocks, ["not_effective", ["person_not_active"], again])
      yield* change(4, moss, there, "active")
      assert.deepStrictEqual<unknown>(yield* blocks, [
        "not_effective",
        ["moved_to_another_institution", "person_not_active"],
        [[null, "revoked"], ...again],
      ])
      const moved = yield* explain(w.abe, moss, accessId)
      assert.deepStrictEqual(moved.versions.map(({ access_version }) => access_version), [5])
      assert.strictEqual(yield* codeOf(explain(w.ada, w.fern, AccessId.make("unknown"))), "not_found")
    })))
})
