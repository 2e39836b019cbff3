import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { GrantReviewList } from "../../../schemas/identity/AccessReviews.ts"
import { AccessReviews, type ReviewDecision } from "../../../services/access/AccessReviews.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/Database.ts"
import { gathered } from "../../../services/platform/Gathered.ts"
import { transact } from "../../../services/platform/Transact.ts"
import { counting } from "../../support/Statements.ts"
import { access, identity, institution, member, person, project, tell } from "../../support/TestIdentity.ts"
import { verified } from "./EvidenceChain.ts"

const services = AccessReviews.layer.pipe(Layer.provideMerge(Roles.layer), Layer.provideMerge(identity))

const start = Date.parse("2026-03-01T12:00:00Z")
const day = 86_400_000
const reason = "quarterly review"

const world = Effect.gen(function* () {
  const [fern, sam, ada, abe, pat] = yield* Effect.all([institution(), person(), person(), person(), person()])
  yield* member(fern, sam, "sponsor")
  yield* member(fern, ada, "administrator")
  yield* member(fern, abe, "administrator")
  const portal = yield* project(fern)
  const accessId = yield* access(fern, portal, pat)
  return { fern, sam, ada, abe, pat, portal, accessId }
})
type World = Effect.Success<typeof world>

const propose = ({ accessId, fern, sam }: World, more: { access_version?: number; personId?: string } = {}) =>
  Effect.flatMap(AccessReviews, (reviews) =>
    transact(reviews.propose({
      ...{ access_id: accessId, access_version: 1, reason, personId: sam, institutionId: fern },
      ...more,
    })))

const on = ({ fern }: World, personId: string, reviewId: string, ...seen: ReadonlyArray<string>): ReviewDecision => ({
  ...{ personId, institutionId: fern, reviewId, reason, seen: seen.length === 0 ? undefined : seen },
})
const approve = (decision: ReviewDecision) =>
  Effect.flatMap(AccessReviews, (reviews) => transact(reviews.approve({ ...decision, stepUp: Effect.void })))
const revoke = (decision: ReviewDecision) =>
  Effect.flatMap(AccessReviews, (reviews) => transact(reviews.revoke(decision)))
const list = ({ fern }: World, personId: string) =>
  Effect.flatMap(AccessReviews, (reviews) => reviews.list(personId, fern))

const tagOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, { onFailure: ({ _tag }) => _tag, onSuccess: () => "done" })

const rawAccess = (accessId: string) =>
  Effect.flatMap(Database, ({ sql }) => sql`select * from access where id = ${accessId}`)

/** A clock of the test's own: what the services stand on keeps the real one. */
const noon = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.andThen(TestClock.setTime(start), effect).pipe(Effect.provide(TestClock.layer()))

layer(services, { excludeTestServices: true })("AccessReviews", (it) => {
  it.effect("records exactly what was decided, and leaves the Access alone", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
      const before = yield* rawAccess(w.accessId)
      const proposed = yield* propose(w)
      assert.deepInclude(proposed, {
        ...{ action: "propose", state: "proposed", issuer_assignment: null, access_effect: "unchanged" },
        ...{ approval: null, revocation: null, actor_person_id: w.sam },
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

  it.effect("decides on few ways to the database and back, what is only added going at the end", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
      const reviews = yield* AccessReviews
      const { sql } = yield* Database
      const decide = <A, E, R>(command: Effect.Effect<A, E, R>) => counting(transact(gathered(sql, command)))
      const by = { institutionId: w.fern, reason }
      const proposal = { access_id: w.accessId, access_version: 1, personId: w.sam }
      const [proposing, { review_id: reviewId }] = yield* decide(reviews.propose({ ...by, ...proposal }))
      const decision = { ...by, personId: w.ada, reviewId }
      const [approving] = yield* decide(reviews.approve({ ...decision, stepUp: Effect.void }))
      const [revoking] = yield* decide(reviews.revoke(decision))
      // Of an approval, and of a revocation, three give the event its place.
      assert.deepStrictEqual([proposing, approving, revoking], [4, 12, 8])
      // The standing, and all of the list: sent as it is, so it must be its own encoding.
      const [listing, listed] = yield* counting(reviews.list(w.sam, w.fern))
      assert.strictEqual(listing, 2)
      assert.deepStrictEqual([listed.reviews.length, listed.candidates.length], [1, 1])
      const sent: unknown = JSON.parse(JSON.stringify(listed))
      assert.deepStrictEqual(Schema.decodeUnknownSync(GrantReviewList)(sent, { onExcessProperty: "error" }), listed)
    })))

  it.effect("cannot be rewritten, not even by the owner of the tables", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
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

  it.effect("is approved by another who counts as another, says the database to whatever writes", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
      const { review_id } = yield* propose(w)
      const alias = yield* person()
      const { owner } = yield* Database
      yield* owner`update people set merged_into = ${w.sam} where id = ${alias}`
      yield* owner`update institution_memberships set made_by = ${alias}, created_at = ${new Date(start)}
        where person_id = ${w.abe}`
      const written = (who: string, count = 2, digest = "sha256:another") =>
        Effect.exit(owner`
          update access_reviews set state = 'approved', approved_by = ${who}, approved_at = ${new Date(start)},
            evidence_count = ${count}, evidence_digest = ${digest} where id = ${review_id}::uuid`)
      for (const who of [w.sam, alias, w.abe]) assert.isTrue(Exit.isFailure(yield* written(who)), who)
      assert.isTrue(Exit.isFailure(yield* written(w.ada, 1)), "without evidence")
      const moved = owner`update access_reviews set evidence_digest = 'sha256:another' where id = ${review_id}::uuid`
      assert.isTrue(Exit.isFailure(yield* Effect.exit(moved)))
      assert.isTrue(Exit.isSuccess(yield* written(w.ada)))
    })))

  it.effect("takes the exact active version and its own grant Event only", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
      const reviews = yield* AccessReviews
      const proposal = { access_id: w.accessId, access_version: 1, reason, personId: w.sam, institutionId: w.fern }
      const other = yield* world
      const [foreign] = (yield* list(other, other.sam)).candidates
      const grant_event_id = foreign!.grant_event_id
      assert.strictEqual(yield* tagOf(transact(reviews.propose({ ...proposal, grant_event_id }))), "GrantEventMismatch")
      assert.strictEqual(
        yield* tagOf(transact(reviews.propose({ ...proposal, access_id: other.accessId }))),
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

  it.effect("is proposed once by fifty Sponsors' requests, and approved once by two administrators", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
      const outcomes = yield* Effect.all(Array.from({ length: 50 }, () => tagOf(propose(w))), { concurrency: 50 })
      assert.strictEqual(outcomes.filter((tag) => tag === "done").length, 1)
      assert.deepStrictEqual(new Set(outcomes), new Set(["done", "ReviewExists"]))
      const [review] = (yield* list(w, w.sam)).reviews
      const both = [w.ada, w.abe].map((who) => tagOf(approve(on(w, who, review!.review_id))))
      assert.sameMembers([...(yield* Effect.all(both, { concurrency: 2 }))], ["done", "InvalidState"])
    })))

  it.effect("needs another person than the Sponsor, one who is independent of them", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
      yield* member(w.fern, w.sam, "administrator")
      const { review_id } = yield* propose(w)
      assert.strictEqual(yield* tagOf(approve(on(w, w.sam, review_id))), "FourEyesRequired")
      const { sql } = yield* Database
      yield* sql`update institution_memberships set made_by = ${w.sam}, created_at = ${new Date(start - day)}
        where person_id = ${w.ada}`
      assert.strictEqual(yield* tagOf(approve(on(w, w.ada, review_id))), "FourEyesRequired")
      yield* sql`update institution_memberships set approved_by = array[${w.abe}::text] where person_id = ${w.ada}`
      assert.strictEqual(yield* tagOf(approve(on(w, w.ada, review_id))), "done")
      const theirs = yield* propose({ ...w, accessId: yield* access(w.fern, w.portal, w.ada) })
      assert.strictEqual(yield* tagOf(approve(on(w, w.ada, theirs.review_id))), "done", "the beneficiary may")
    })))

  it.effect("counts two as two unless one made or approved the other within 90 days, by whatever name", () =>
    noon(Effect.gen(function* () {
      const { abe, ada, sam } = yield* world
      const alias = yield* person()
      const { sql } = yield* Database
      const { independent } = yield* Roles
      yield* sql`update people set merged_into = ${sam} where id = ${alias}`
      const counts = Effect.zipWith(independent(ada, sam), independent(alias, ada), (a, b) => [a, b])
      const rows = [["people", "id", "created_at"], ["institution_memberships", "person_id", "created_at"]]
      for (const [table, key, at] of [...rows, ["identities", "person_id", "linked_at"]]) {
        const write = (whose: string, madeBy: string | null, approvedBy: ReadonlyArray<string>, millis: number) =>
          sql`update ${sql(table!)} set made_by = ${madeBy}, approved_by = ${[...approvedBy]}::text[],
            ${sql(at!)} = ${new Date(millis)} where ${sql(key!)} = ${whose}`
        const edge = start - 90 * day
        for (const [whose, by] of [[ada, sam], [sam, ada], [ada, alias]] as const) {
          for (const [madeBy, approvedBy] of [[by, []], [null, [by]], [abe, [by]], [by, [by]]] as const) {
            yield* write(whose, madeBy, approvedBy, edge + 1)
            assert.deepStrictEqual(yield* counts, [false, false], `${table} ${madeBy} ${approvedBy}`)
            yield* write(whose, madeBy, approvedBy, edge)
            assert.deepStrictEqual(yield* counts, [true, true])
            yield* write(whose, madeBy, [...approvedBy, abe], start)
            assert.deepStrictEqual(yield* counts, [true, true])
          }
          yield* write(whose, null, [], start)
        }
      }
      assert.isFalse(yield* independent(alias, sam))
    })))

  it.effect("is refused to who loses the role while it is being decided", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
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

  it.effect("tells who may not, and why; and nothing to who is nobody there", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
      const [late, invited, ended, plain, stranger] = yield* Effect.all(Array.from({ length: 5 }, () => person()))
      yield* member(w.fern, late!, "administrator", { effective_from: "2099-01-01T00:00:00Z" })
      yield* member(w.fern, invited!, "administrator", { state: "invited", accepted_at: null })
      yield* member(w.fern, ended!, "administrator", { state: "ended" })
      yield* member(w.fern, plain!, "member")
      const { review_id } = yield* propose(w)
      const answers = yield* Effect.forEach([late!, invited!, ended!, plain!, stranger!, w.sam], (who) =>
        Effect.all([tagOf(list(w, who)), tagOf(propose(w, { personId: who })), tagOf(approve(on(w, who, review_id)))]))
      assert.deepStrictEqual(answers, [
        ["AdministratorNotEffective", "MembershipNotActive", "AdministratorNotEffective"],
        ["AdministratorNotEffective", "MembershipNotActive", "AdministratorNotEffective"],
        ["NotFound", "NotFound", "NotFound"],
        ["RoleRequired", "RoleRequired", "RoleRequired"],
        ["NotFound", "NotFound", "NotFound"],
        ["done", "ReviewExists", "RoleRequired"],
      ])
    })))

  it.effect("may be ended by its Sponsor while it is only proposed", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
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

  it.effect("grows old without being rewritten, and says when it counts no more", () =>
    noon(Effect.gen(function* () {
      const w = yield* world
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
      // Approved it counts a year from then, however late that was.
      yield* approve(on(w, w.ada, review_id))
      const approved = yield* written
      yield* TestClock.setTime(start + 372 * day - 1)
      assert.deepStrictEqual(yield* validity, { current: true, reasons: [] })
      yield* TestClock.setTime(start + 372 * day)
      assert.deepStrictEqual(yield* validity, { current: false, reasons: ["review_expired"] })
      assert.deepStrictEqual(yield* written, approved)
      yield* sql`update institution_memberships set state = 'ended' where person_id = ${w.sam}`
      yield* tell("institution_membership", {
        ...{ id: `m-${w.pat}`, version: 1, institution_id: w.fern, person_id: w.pat, role: "member" },
        ...{ state: "ended", accepted_at: null, effective_from: null, expires_at: null },
      })
      yield* revoke(on(w, w.abe, review_id))
      assert.deepStrictEqual(yield* validity, {
        current: false,
        reasons: ["sponsor_not_current", "membership_ended", "review_expired", "review_revoked"],
      })
    })))
})
