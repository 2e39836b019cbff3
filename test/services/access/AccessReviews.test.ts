import { assert, layer } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Schema } from "effect"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { GrantEvidence, GrantReviewList } from "../../../schemas/identity/AccessReview.ts"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { fenced } from "../../../services/platform/database/FencedCommand.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, tagOf, timed } from "../../support/Fixtures.ts"
import { counting } from "../../support/Statements.ts"
import { access, institution, member, person, tell } from "../../support/TestIdentity.ts"
import { verified } from "./EvidenceChain.ts"
import { approve, fixture, list, on, propose, rawAccess, revoke, said, services } from "./ReviewFixture.ts"

layer(services, { excludeTestServices: true })("AccessReviews", (it) => {
  it.effect("a review records exactly what was decided, and changes nothing of the Access", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const before = yield* rawAccess(w.accessId)
      const proposed = yield* propose(w)
      assert.deepInclude(proposed, {
        action: "propose",
        state: "proposed",
        issuer_assignment: null,
        access_effect: "unchanged",
        approval: null,
        revocation: null,
        actor_person_id: w.sam,
      })
      const approved = yield* approve(on(w, w.ada, proposed.review_id, proposed.evidence_digest))
      assert.deepStrictEqual(approved.sponsor_decision, proposed.sponsor_decision)
      assert.deepStrictEqual(approved.access, proposed.access)
      assert.strictEqual(approved.approval?.person_id, w.ada)
      const revoked = yield* revoke(on(w, w.abe, proposed.review_id))
      assert.deepStrictEqual([revoked.state, revoked.revocation?.person_id], ["revoked", w.abe])
      assert.deepStrictEqual(yield* rawAccess(w.accessId), before)
      const digests = [proposed, approved, revoked].map(({ evidence_digest }) => evidence_digest)
      assert.deepStrictEqual(yield* verified(proposed.review_id), digests)
      assert.deepStrictEqual([revoked.approval?.digest, revoked.revocation?.digest], digests.slice(1))
      const { sql } = yield* Database
      const kinds = yield* sql<{ kind: string }>`
        select kind from lifecycle_events where project_id = ${w.portal} order by position`
      assert.deepStrictEqual(kinds.map(({ kind }) => kind).slice(-2), [
        "access-review-approved",
        "access-review-revoked",
      ])
    })))

  it.effect("each review decision takes two round trips to the database, and so does a list", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const reviews = yield* AccessReviews
      const { sql } = yield* Database
      const decide = <A, E, R>(command: Effect.Effect<A, E, R>) =>
        counting(fenced(sql, { turn: "reviews", admissions: [] }, command))
      const by = { institutionId: w.fern, reason }
      const proposal = { access_id: w.accessId, access_version: 1, personId: w.sam }
      const [proposing, { review_id: reviewId }] = yield* decide(reviews.propose({ ...by, ...proposal }))
      const decision = { ...by, personId: w.ada, reviewId }
      const [approving] = yield* decide(reviews.approve({ ...decision, stepUp: Effect.void }))
      const [revoking] = yield* decide(reviews.revoke(decision))
      // One round trip loads, the other one writes, with the event's position.
      assert.deepStrictEqual([proposing, approving, revoking], [2, 2, 2])
      // One reads the caller's roles, the other the list, whose bytes go out as stored: they must decode by the schema.
      // The second time the list is kept, and the other round trip asks whether it is still current.
      for (const _ of ["written", "as it was"]) {
        const [listing] = yield* counting(reviews.list(w.sam, w.fern))
        assert.strictEqual(listing, 2)
      }
      const listed = said(yield* reviews.list(w.sam, w.fern))
      assert.deepStrictEqual([listed.reviews.length, listed.candidates.length], [1, 1])
      assert.deepStrictEqual(Schema.decodeUnknownSync(GrantReviewList)(listed, { onExcessProperty: "error" }), listed)
    })))

  it.effect("a review's evidence and decision cannot be rewritten, not even by the owner of the tables", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { review_id } = yield* propose(w)
      yield* approve(on(w, w.ada, review_id))
      const { owner } = yield* Database
      const attempts = [
        owner`update access_review_evidence set reason = 'another one' where review_id = ${review_id}::uuid`,
        owner`delete from access_review_evidence where review_id = ${review_id}::uuid`,
        owner`truncate access_review_evidence`,
        owner`insert into access_review_evidence select * from access_review_evidence where review_id = ${review_id}::uuid
          on conflict (review_id, nth) do update set reason = 'another one'`,
        owner`merge into access_review_evidence e using (select 1) on e.review_id = ${review_id}::uuid
          when matched then delete`,
        owner`truncate people, access_review_evidence cascade`,
        owner`update access_reviews set sponsor_reason = 'another one' where id = ${review_id}::uuid`,
        owner`update access_reviews set approved_by = ${w.abe} where id = ${review_id}::uuid`,
        owner`update access_reviews set state = 'proposed' where id = ${review_id}::uuid`,
        owner`delete from access_reviews where id = ${review_id}::uuid`,
        owner`truncate access_reviews`,
      ]
      for (const attempt of attempts) assert.isTrue(Exit.isFailure(yield* Effect.exit(attempt)))
    })))

  it.effect("a review's evidence is read by those who decide, as a chain of which a changed entry is told", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { evidence } = yield* AccessReviews
      const { review_id } = yield* propose(w)
      yield* approve(on(w, w.ada, review_id))
      const found = yield* evidence(w.sam, w.fern, review_id)
      assert.deepStrictEqual(Schema.decodeUnknownSync(GrantEvidence)(found, { onExcessProperty: "error" }), found)
      assert.deepStrictEqual(found.entries.map(({ action, person_id }) => [action, person_id]), [
        ["propose", w.sam],
        ["approve", w.ada],
      ])
      const digests = yield* verified(review_id)
      assert.deepStrictEqual(found.entries.map(({ digest }) => digest), digests)
      assert.deepStrictEqual([found.whole, found.entries[1]!.prev_digest], [true, digests[0]])
      assert.strictEqual(found.evidence_digest, (yield* list(w, w.ada)).reviews[0]!.evidence_digest)
      const other = yield* fixture
      assert.strictEqual(yield* tagOf(evidence(other.sam, other.fern, review_id)), "NotFound")
      assert.strictEqual(yield* tagOf(evidence(other.sam, w.fern, review_id)), "NotFound")
      yield* member(w.fern, w.pat, "member")
      assert.strictEqual(yield* tagOf(evidence(w.pat, w.fern, review_id)), "RoleRequired")
      // The tables' owner can rewrite an entry, and is found out.
      const { owner } = yield* Database
      yield* owner`alter table access_review_evidence disable trigger user`
      yield* owner`update access_review_evidence set reason = 'another one' where review_id = ${review_id}::uuid and nth = 1`
      yield* owner`alter table access_review_evidence enable trigger user`
      assert.isFalse((yield* evidence(w.sam, w.fern, review_id)).whole)
    })))

  it.effect("an approval that waits too long for the Access's lock fails with that, not as a dead transaction", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { review_id } = yield* propose(w)
      const { sql } = yield* Database
      const [held, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holding = yield* sql`select from access where id = ${w.accessId} for update`.pipe(
        Effect.tap(() => Effect.andThen(Deferred.succeed(held, undefined), Deferred.await(go))),
        sql.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(held)
      const cause = yield* sql`set local lock_timeout = 1`.pipe(
        Effect.andThen(approve(on(w, w.ada, review_id))),
        sql.withTransaction,
        Effect.sandbox,
        Effect.flip,
      )
      const error = Cause.squash(cause)
      assert.strictEqual(SqlError.isSqlError(error) ? error.reason._tag : error, "LockTimeoutError")
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(holding)
      // The Access moved to another institution, which makes a new version of it.
      yield* access(yield* institution(), w.portal, w.pat, { id: w.accessId, version: 2 })
      assert.strictEqual(yield* tagOf(approve(on(w, w.ada, review_id))), "AccessVersionSuperseded")
      assert.deepStrictEqual((yield* list(w, w.ada)).reviews[0]!.validity.reasons, ["access_version_superseded"])
    })))

  it.effect("events name the person by the product's subject and are filed under the merged person", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { review_id } = yield* propose(w)
      const { sql } = yield* Database
      // Pat's own membership was removed; the person that Pat was merged into still has one.
      yield* member(w.fern, w.pat, "member")
      yield* sql`update institution_memberships set removed = true where person_id = ${w.pat}`
      yield* sql`update people set merged_into = ${w.abe} where id = ${w.pat}`
      yield* approve(on(w, w.ada, review_id))
      assert.deepStrictEqual((yield* list(w, w.ada)).reviews[0]!.validity, { current: true, reasons: [] })
      yield* sql`update institution_memberships set state = 'ended' where person_id = ${w.abe}`
      assert.deepStrictEqual((yield* list(w, w.ada)).reviews[0]!.validity.reasons, ["membership_ended"])
      yield* revoke(on(w, w.ada, review_id))
      const told = yield* sql`
        select person_id, sub_id -> 'user' ->> 'sub' as sub from lifecycle_events
        where project_id = ${w.portal} and kind like 'access-review%'`
      assert.deepStrictEqual(told, Array(2).fill({ person_id: w.abe, sub: w.pat }))
    })))

  it.effect("a proposal takes the current active version and its own grant event only", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const reviews = yield* AccessReviews
      const proposal = { access_id: w.accessId, access_version: 1, reason, personId: w.sam, institutionId: w.fern }
      const other = yield* fixture
      const [foreign] = (yield* list(other, other.sam)).candidates
      const grant_event_id = foreign!.grant_event_id
      assert.strictEqual(yield* tagOf(run(reviews.propose({ ...proposal, grant_event_id }))), "GrantEventMismatch")
      assert.strictEqual(
        yield* tagOf(run(reviews.propose({ ...proposal, access_id: other.accessId }))),
        "NotFound",
      )
      assert.strictEqual(yield* tagOf(propose(w, { access_version: 2 })), "AccessVersionSuperseded")
      const { review_id } = yield* propose(w)
      const change = { institution_id: w.fern, project_id: w.portal, person_id: w.pat }
      yield* tell("access", { id: w.accessId, version: 2, ...change, role: "editor", state: "active" })
      assert.strictEqual(yield* tagOf(approve(on(w, w.ada, review_id))), "AccessVersionSuperseded")
      assert.strictEqual(yield* tagOf(propose(w)), "AccessVersionSuperseded")
      assert.strictEqual(yield* tagOf(propose(w, { access_version: 2 })), "done")
      yield* tell("access", { id: w.accessId, version: 3, ...change, role: "editor", state: "revoked" })
      assert.strictEqual(yield* tagOf(propose(w, { access_version: 3 })), "AccessNotActive")
      assert.strictEqual(yield* tagOf(approve(on(w, w.ada, review_id))), "AccessNotActive")
    })))

  it.effect("fifty concurrent proposals make one review, and two concurrent approvals approve it once", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const outcomes = yield* Effect.all(Array.from({ length: 50 }, () => tagOf(propose(w))), { concurrency: 50 })
      assert.strictEqual(outcomes.filter((tag) => tag === "done").length, 1)
      assert.deepStrictEqual(new Set(outcomes), new Set(["done", "ReviewExists"]))
      const [review] = (yield* list(w, w.sam)).reviews
      const both = [w.ada, w.abe].map((who) => tagOf(approve(on(w, who, review!.review_id))))
      assert.sameMembers([...(yield* Effect.all(both, { concurrency: 2 }))], ["done", "InvalidState"])
    })))

  it.effect("an approval is refused to an administrator who loses the role while it waits", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { review_id } = yield* propose(w)
      const { sql } = yield* Database
      const taken = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const losing = yield* Effect.forkChild(sql.withTransaction(Effect.gen(function* () {
        yield* sql`update institution_memberships set state = 'suspended' where person_id = ${w.ada}`
        yield* Deferred.succeed(taken, undefined)
        yield* Deferred.await(go)
      })))
      yield* Deferred.await(taken)
      const deciding = yield* Effect.forkChild(tagOf(approve(on(w, w.ada, review_id))))
      const waits = sql<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%institution_memberships%'`
      yield* waits.pipe(Effect.repeat({ until: ([row]) => row!.n > 0 }))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(losing)
      assert.strictEqual(yield* Fiber.join(deciding), "AdministratorNotEffective")
    })))

  it.effect("a caller without the role is told which one is missing; a person from outside gets 404", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [late, invited, ended, plain, stranger] = yield* Effect.all(Array.from({ length: 5 }, () => person()))
      yield* member(w.fern, late!, "administrator", { effective_from: "2099-01-01T00:00:00Z" })
      yield* member(w.fern, invited!, "administrator", { state: "invited", accepted_at: null })
      yield* member(w.fern, ended!, "administrator", { state: "ended" })
      yield* member(w.fern, plain!, "member")
      const { review_id } = yield* propose(w)
      const answers = yield* Effect.forEach(
        [late!, invited!, ended!, plain!, stranger!, w.sam],
        (who) =>
          Effect.all([
            tagOf(list(w, who)),
            tagOf(propose(w, { personId: who })),
            tagOf(approve(on(w, who, review_id))),
          ]),
      )
      assert.deepStrictEqual(answers, [
        ["AdministratorNotEffective", "MembershipNotActive", "AdministratorNotEffective"],
        ["AdministratorNotEffective", "MembershipNotActive", "AdministratorNotEffective"],
        ["NotFound", "NotFound", "NotFound"],
        ["RoleRequired", "RoleRequired", "RoleRequired"],
        ["NotFound", "NotFound", "NotFound"],
        ["done", "ReviewExists", "RoleRequired"],
      ])
    })))

  it.effect("the proposing Sponsor may revoke a review while it is proposed, and not after", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const one = yield* propose(w)
      assert.strictEqual(yield* tagOf(revoke(on(w, w.sam, one.review_id))), "done")
      assert.strictEqual(yield* tagOf(revoke(on(w, w.sam, one.review_id))), "RoleRequired")
      assert.strictEqual(yield* tagOf(revoke(on(w, w.ada, one.review_id))), "InvalidState")
      const two = yield* propose(w)
      yield* approve(on(w, w.ada, two.review_id))
      assert.strictEqual(yield* tagOf(revoke(on(w, w.sam, two.review_id))), "RoleRequired")
      assert.strictEqual(
        yield* tagOf(revoke(on(w, w.ada, two.review_id, one.evidence_digest))),
        "PreconditionFailed",
      )
    })))

  it.effect("a review expires without being rewritten, and its validity lists every reason", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { review_id } = yield* propose(w)
      const validity = Effect.map(list(w, w.ada), ({ reviews }) => reviews[0]!.validity)
      assert.deepStrictEqual(yield* validity, { current: true, reasons: [] })
      const { sql } = yield* Database
      const written = Effect.map(sql`select * from access_reviews where id = ${review_id}::uuid`, ([row]) => row)
      const proposed = yield* written
      yield* TestClock.setTime(start + 7 * day - 1)
      assert.deepStrictEqual(yield* validity, { current: true, reasons: [] })
      yield* TestClock.setTime(start + 7 * day)
      assert.deepStrictEqual(yield* validity, { current: false, reasons: ["review_expired"] })
      assert.deepStrictEqual(yield* written, proposed)
      // A late approval counts for a year from its own time.
      yield* approve(on(w, w.ada, review_id))
      const approved = yield* written
      yield* TestClock.setTime(start + 372 * day - 1)
      assert.deepStrictEqual(yield* validity, { current: true, reasons: [] })
      yield* TestClock.setTime(start + 372 * day)
      assert.deepStrictEqual(yield* validity, { current: false, reasons: ["review_expired"] })
      assert.deepStrictEqual(yield* written, approved)
      yield* sql`update institution_memberships set state = 'ended' where person_id = ${w.sam}`
      yield* tell("institution_membership", {
        id: `m-${w.pat}`,
        version: 1,
        institution_id: w.fern,
        person_id: w.pat,
        role: "member",
        state: "ended",
        accepted_at: null,
        effective_from: null,
        expires_at: null,
      })
      yield* revoke(on(w, w.abe, review_id))
      assert.deepStrictEqual(yield* validity, {
        current: false,
        reasons: ["sponsor_not_current", "membership_ended", "review_expired", "review_revoked"],
      })
    })))
})
