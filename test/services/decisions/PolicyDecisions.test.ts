import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { InsufficientUserAuthentication } from "../../../schemas/problems/IdentityProblems.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { institution, member, person, project } from "../../support/TestIdentity.ts"
import {
  acceptInvitation,
  askAccess,
  changeMembership,
  codeOf,
  decline,
  enroll,
  fixture,
  founded,
  membershipsOf,
  organization,
  own,
  requestRow,
  revokeInvitation,
  services,
  sign,
  tokenOf,
  website,
  withdraw,
} from "./RequestFixture.ts"

const list = (personId: PersonId, state = "open", afterId: string | null = null, limit = 100) =>
  Effect.flatMap(PolicyDecisions, (policies) => policies.list({ personId, state, afterId, limit }))

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Policies", (it) => {
  it.effect("listing by an unknown state gives nothing, whatever text it is", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      yield* website(w, w.pat)
      assert.lengthOf((yield* list(w.ada)).items, 1)
      for (const state of ["", "Open", "open' or 'open' = 'open", "open'; drop table policy_reviews; --"]) {
        assert.deepStrictEqual((yield* list(w.ada, state)).items, [], state)
      }
    })))

  it.effect("a caller is listed the reviews still to sign, and none once signed", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const mine = Effect.fnUntraced(function* (personId: PersonId, state = "open") {
        return (yield* list(personId, state)).items.filter((one) => one.institution_id === w.fern).map(({ kind }) =>
          kind
        )
      })
      const asked = yield* askAccess(w.fern, portal, w.pat)
      const staging = yield* website(w, w.pat, { by: w.ada })
      yield* enroll(w.fern, w.sam, "x@new.example")
      assert.deepStrictEqual(yield* mine(w.sam), ["access"])
      assert.deepStrictEqual(yield* mine(w.ada), ["access", "enrollment"])
      assert.deepStrictEqual(yield* mine(w.abe), ["access", "website", "enrollment"])
      assert.deepStrictEqual(yield* mine(w.pat), [])
      assert.deepStrictEqual(yield* mine(w.oz), [])
      yield* sign(asked, "administrator", w.abe)
      yield* sign(staging, "administrator", w.abe)
      assert.deepStrictEqual(yield* mine(w.abe), ["enrollment"])
      assert.deepStrictEqual(yield* mine(w.ada), ["enrollment"])
      assert.deepStrictEqual(yield* mine(w.sam), ["access"])
      assert.deepStrictEqual(yield* mine(w.abe, "applied"), ["website"])
      const { sql } = yield* Database
      yield* sql`
        update institution_memberships set state = 'suspended' where institution_id = ${w.fern} and role = 'administrator'`
      assert.deepStrictEqual(yield* mine(w.oz), ["enrollment"])
      const others = [yield* organization(w.pat), yield* organization(w.pat), yield* organization(w.pat)]
      const ids = others.map(({ policy_review }) => policy_review!.review_id)
      const page = (yield* list(w.oz, "open", ids[0], 1)).items
      assert.deepStrictEqual(page.map(({ review_id }) => review_id), [ids[1]])
      // An expired review is listed to no one, before its timer fires as well.
      yield* TestClock.adjust(14 * day - 1)
      assert.deepStrictEqual(yield* mine(w.sam), ["access"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* mine(w.sam), [])
    })))

  it.effect("a person is listed what they signed and declined, newest first, whichever roles they hold now", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const own = Effect.fnUntraced(function* (personId: PersonId, open = false, afterId: string | null = null) {
        const { decidedBy } = yield* PolicyDecisions
        return (yield* decidedBy({ personId, open, afterId, limit: 2 })).items
      })
      const kinds = (items: ReadonlyArray<{ readonly kind: string }>) => items.map(({ kind }) => kind)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      const staging = yield* website(w, w.pat, { by: w.ada })
      const invited = yield* enroll(w.fern, w.sam, "x@new.example")
      assert.deepStrictEqual(yield* own(w.abe), [])
      yield* sign(asked, "administrator", w.abe)
      yield* sign(staging, "administrator", w.abe)
      yield* decline(invited, "administrator", w.abe)
      const newest = yield* own(w.abe)
      assert.deepStrictEqual(kinds(newest), ["enrollment", "website"])
      assert.deepStrictEqual(newest[0]!.asked, { recipient: "x***@new.example" })
      assert.deepStrictEqual(kinds(yield* own(w.abe, false, newest[1]!.review_id)), ["access"])
      assert.deepStrictEqual(kinds(yield* own(w.abe, true)), ["access"])
      assert.deepStrictEqual(yield* own(w.ada), [])
      const { sql } = yield* Database
      yield* sql`update institution_memberships set state = 'suspended' where person_id = ${w.abe}`
      assert.deepStrictEqual(yield* own(w.abe), newest)
      yield* sign(asked, "sponsor", w.sam)
      assert.deepStrictEqual(yield* own(w.abe, true), [])
      assert.deepStrictEqual((yield* own(w.sam)).map(({ state }) => state), ["applied"])
    })))

  it.effect("a signer reads who else may sign, why others may not, and who declined", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const policies = yield* PolicyDecisions
      const invited = yield* person()
      yield* member(w.fern, invited, "administrator", { accepted_at: null, state: "invited" })
      const asked = yield* askAccess(w.fern, yield* project(w.fern), w.ada)
      const id = asked.policy_review!.review_id
      const one = (personId: PersonId) => policies.one(personId, id)
      const told = (personId: PersonId) =>
        Effect.map(one(personId), ({ signers }) => ({
          ...signers,
          people: signers?.people.map(({ person_id, refusal, role }) => `${person_id} ${role} ${refusal}`),
        }))
      assert.deepStrictEqual(yield* told(w.sam), {
        people: [
          `${w.abe} administrator null`,
          `${w.sam} sponsor null`,
          `${w.ada} administrator author`,
          `${invited} administrator not_effective`,
        ],
        more: 0,
        operators: 0,
      })
      yield* sign(asked, "sponsor", w.sam)
      assert.deepStrictEqual((yield* told(w.sam)).people, [
        `${w.abe} administrator null`,
        `${w.ada} administrator author`,
        `${invited} administrator not_effective`,
      ])
      const { sql } = yield* Database
      yield* sql`
        update institution_memberships set state = 'suspended' where institution_id = ${w.fern} and person_id = ${w.abe}`
      // No administrator may sign now: a sponsor reads how many operators may, an operator reads which.
      const [others] = yield* sql<{ n: number }>`
        select count(*)::int as n from people where operator and not auditor and status = 'active' and not removed`
      assert.strictEqual((yield* told(w.sam)).operators, others!.n)
      assert.isFalse((yield* one(w.sam)).signers?.people.some(({ person_id }) => person_id === w.oz))
      assert.isTrue(
        (yield* one(w.oz)).signers?.people.some((found) =>
          found.person_id === w.ola && found.stands_in && found.refusal === null
        ),
      )
      assert.strictEqual((yield* one(w.oz)).declined, null)
      yield* decline(asked, "administrator", w.oz)
      const ended = yield* one(w.sam)
      assert.isNull(ended.signers)
      assert.deepInclude(ended.declined, { person_id: w.oz, role: "administrator", reason })
      // A signer who decides no longer, or has left, keeps the decision and reads nothing of the institution's people.
      const other = yield* askAccess(w.fern, yield* project(w.fern), w.pat)
      yield* sign(other, "sponsor", w.sam)
      yield* member(w.fern, w.sam, "member")
      yield* sql`
        update institution_memberships set state = 'ended'
        where institution_id = ${w.fern} and person_id = ${w.sam} and role = 'sponsor'`
      assert.isNull((yield* policies.one(w.sam, other.policy_review!.review_id)).signers)
      yield* sql`
        update institution_memberships set state = 'ended'
        where institution_id = ${w.fern} and person_id = ${w.sam}`
      assert.isNull((yield* policies.one(w.sam, other.policy_review!.review_id)).signers)
    })))

  it.effect("two concurrent signatures for one role make one, and the other is refused", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      const codes = yield* Effect.all(
        [codeOf(sign(asked, "administrator", w.ada)), codeOf(sign(asked, "administrator", w.abe))],
        { concurrency: 2 },
      )
      assert.deepStrictEqual(codes.sort(), ["done", "invalid_state"])
    })))

  it.effect("two concurrent last signatures carry the request out once", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      const states = yield* Effect.all(
        [sign(asked, "administrator", w.ada), sign(asked, "sponsor", w.sam)],
        { concurrency: 2 },
      )
      assert.deepStrictEqual(states.map(({ state }) => state).sort(), ["applied", "open"])
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select count(*)::int as made from access where project_id = ${portal}`,
        [{ made: 1 }],
      )
    })))

  it.effect("a signature waits for the concurrent end of its role, and is refused", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      const { sql } = yield* Database
      const [taken, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const losing = yield* Effect.forkChild(sql.withTransaction(Effect.gen(function* () {
        yield* sql`update institution_memberships set state = 'suspended' where person_id = ${w.ada}`
        yield* Deferred.succeed(taken, undefined)
        yield* Deferred.await(go)
      })))
      yield* Deferred.await(taken)
      const signing = yield* Effect.forkChild(codeOf(sign(asked, "administrator", w.ada)))
      const waits = sql<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%institution_memberships%'`
      yield* waits.pipe(Effect.repeat({ until: ([row]) => row!.n > 0 }))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(losing)
      assert.strictEqual(yield* Fiber.join(signing), "administrator_not_effective")
      assert.strictEqual((yield* requestRow(asked.request_id)).state, "submitted")
    })))

  /** Runs in a transaction without lock and idle timeouts. */
  const patient = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(
      Database,
      ({ sql }) =>
        sql`select set_config('lock_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`
          .pipe(
            Effect.andThen(effect),
            sql.withTransaction,
          ),
    )

  /** Runs `first` in a transaction that commits once all of `meanwhile` wait for a lock, or one of them has ended. */
  const during = Effect.fnUntraced(function* <A, E, R, S>(
    first: Effect.Effect<A, E, R>,
    ...meanwhile: ReadonlyArray<Effect.Effect<unknown, object, S>>
  ) {
    const { sql } = yield* Database
    const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const holding = yield* first.pipe(
      Effect.tap(() => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go))),
      patient,
      Effect.forkChild,
    )
    yield* Deferred.await(begun)
    const waiting = yield* Effect.forEach(meanwhile, (one) => Effect.forkChild(codeOf(patient(one))))
    const waits = sql<{ n: number }>`
      select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    const done = () => waiting.some((one) => one.pollUnsafe() !== undefined)
    yield* waits.pipe(Effect.repeat({ until: ([row]) => row!.n >= meanwhile.length || done() }))
    yield* Deferred.succeed(go, undefined)
    yield* Fiber.join(holding)
    return yield* Effect.forEach(waiting, (one) => Fiber.join(one))
  })

  it.effect("no operator may sign both of two concurrent first enrollments, by the service or in the table", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const founding = yield* organization(w.pat)
      yield* sign(founding, "operator", w.oz)
      const moss = yield* founded(founding.request_id)
      const [one, two, three] = yield* Effect.all([
        enroll(moss, w.pat, "a@moss.example"),
        enroll(moss, w.pat, "b@moss.example"),
        enroll(moss, w.pat, "c@moss.example"),
      ])
      const { sql } = yield* Database
      const raw = sql`
        insert into policy_approvals (review_id, author, role, person_id, stands_in, reason, approved_at)
        values (${three.policy_review!.review_id}::uuid, ${w.pat}, 'administrator', ${w.oz}, true, ${reason},
          ${new Date(start)})`
      const codes = yield* during(sign(one, "administrator", w.oz), sign(two, "administrator", w.oz), raw)
      assert.deepStrictEqual(codes, ["four_eyes_required", "SqlError"])
      assert.strictEqual((yield* sign(two, "administrator", w.ola)).state, "applied")
    })))

  it.effect("an institution suspended during an acceptance gets no member", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ned = yield* person({ email: "ned@lock.example" })
      const asked = yield* enroll(w.fern, w.sam, "ned@lock.example")
      yield* sign(asked, "administrator", w.ada)
      const { sql } = yield* Database
      const token = yield* tokenOf(asked.enrollment_id)
      const [accepted] = yield* during(
        sql`update institutions set status = 'suspended' where id = ${w.fern}`,
        acceptInvitation(ned, token),
      )
      assert.strictEqual(accepted, "invalid_state")
      assert.strictEqual((yield* requestRow(asked.enrollment_id)).state, "invited")
    })))

  it.effect("a project moved to another institution gets nothing by the old institution's signatures", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [other, portal] = [yield* institution(), yield* project(w.fern)]
      const asked = yield* askAccess(w.fern, portal, w.pat)
      const made = yield* website(w, w.pat)
      yield* sign(asked, "sponsor", w.sam)
      yield* project(other, { id: portal, version: 2 })
      yield* project(other, { id: made.project_id, state: "registered", environment: "staging" })
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.ada)), "invalid_state")
      assert.strictEqual(yield* codeOf(sign(made, "administrator", w.ada)), "invalid_state")
      // Declining a registration would withdraw the project, which the signer's institution no longer has.
      assert.strictEqual(yield* codeOf(decline(made, "administrator", w.ada)), "invalid_state")
      const { items } = yield* list(w.ada)
      assert.deepStrictEqual(items.filter(({ institution_id }) => institution_id === w.fern).map(({ kind }) => kind), [
        "access",
      ])
      assert.strictEqual((yield* decline(asked, "administrator", w.ada)).state, "declined")
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`select 1 from access where project_id = ${portal}`, [])
    })))

  it.effect("step-up is required after the rights are checked and before the state", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      const stepUp = Effect.fail(new InsufficientUserAuthentication({ max_age: 300 }))
      const approve = (personId: PersonId, role: string) =>
        codeOf(
          Effect.flatMap(PolicyDecisions, (policies) =>
            run(policies.approve({ personId, reviewId: asked.policy_review!.review_id, role, reason, stepUp }))),
        )
      assert.strictEqual(yield* approve(w.sam, "administrator"), "role_required")
      assert.strictEqual(yield* approve(w.pat, "administrator"), "four_eyes_required")
      assert.strictEqual(yield* approve(w.ada, "administrator"), "insufficient_user_authentication")
      yield* sign(asked, "administrator", w.abe)
      assert.strictEqual(yield* approve(w.ada, "administrator"), "insufficient_user_authentication")
      assert.strictEqual((yield* requestRow(asked.request_id)).state, "submitted")
    })))

  it.effect("a person who alone made or approved another may not sign beside that person for 90 days", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [ann, portal] = [yield* person(), yield* project(w.fern)]
      const { sql } = yield* Database
      // Ada alone approved that Ann is an administrator.
      yield* member(w.fern, ann, "administrator")
      yield* sql`
        update institution_memberships set made_by = ${ann}, approved_by = ${[w.ada]}::text[],
          created_at = ${new Date("2026-02-28T12:00:00Z")}
        where person_id = ${ann}`
      const asked = yield* askAccess(w.fern, portal, ann)
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.ada)), "four_eyes_required")
      assert.strictEqual((yield* sign(asked, "administrator", w.abe)).state, "open")
      const own = yield* askAccess(w.fern, portal, w.ada)
      assert.strictEqual(yield* codeOf(sign(own, "administrator", ann)), "four_eyes_required")
      yield* sql`update institution_memberships set created_at = ${new Date(
        "2025-11-01T12:00:00Z",
      )} where person_id = ${ann}`
      assert.strictEqual((yield* sign(own, "administrator", ann)).state, "open")
    })))

  it.effect("a held installation approves and accepts nothing new; revocations go on", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ned = yield* person({ email: "ned@held.example" })
      const { sql } = yield* Database
      const [sent, back] = [
        yield* enroll(w.fern, w.sam, "ned@held.example"),
        yield* enroll(w.fern, w.sam, "x@y.example"),
      ]
      yield* sign(sent, "administrator", w.ada)
      const made = yield* website(w, w.pat)
      const portal = yield* project(w.fern)
      const asked = [yield* askAccess(w.fern, portal, w.pat), yield* askAccess(w.fern, portal, w.oz)] as const
      yield* member(w.fern, w.pat, "member")
      const suspending = yield* changeMembership(w, w.abe, w.pat, "member", "suspended")
      const raising = yield* changeMembership(w, w.abe, w.pat, "administrator", "active")
      yield* Effect.gen(function* () {
        yield* sql`update installation set state = 'held', held_since = ${new Date(0)}, held_reason = 'restored'`
        assert.strictEqual(yield* codeOf(sign(asked[0], "sponsor", w.sam)), "held")
        assert.strictEqual(yield* codeOf(sign(made, "administrator", w.ada)), "held")
        assert.strictEqual(yield* codeOf(sign(raising, "sponsor", w.sam)), "held")
        assert.strictEqual(yield* codeOf(acceptInvitation(ned, yield* tokenOf(sent.enrollment_id))), "held")
        assert.strictEqual(yield* codeOf(own(made.project_id, w.ada, w.oz)), "held")
        // A caller without the role is told so before the hold.
        assert.strictEqual(yield* codeOf(sign(asked[0], "sponsor", w.abe)), "role_required")
        assert.strictEqual((yield* decline(asked[1], "sponsor", w.sam)).state, "declined")
        yield* sign(suspending, "sponsor", w.sam)
        assert.strictEqual((yield* sign(suspending, "administrator", w.ada)).state, "applied")
        assert.deepInclude((yield* membershipsOf(w.fern, w.pat))[0], { role: "member", state: "suspended" })
        assert.strictEqual((yield* revokeInvitation(w.fern, back.enrollment_id, w.ada)).state, "revoked")
        assert.strictEqual((yield* withdraw(w.fern, made.project_id, w.ada, 1)).state, "withdrawn")
      }).pipe(Effect.ensuring(
        Effect.orDie(sql`update installation set state = 'open', held_since = null, held_reason = null`),
      ))
      assert.strictEqual((yield* sign(asked[0], "sponsor", w.sam)).state, "open")
      assert.strictEqual((yield* acceptInvitation(ned, yield* tokenOf(sent.enrollment_id))).state, "accepted")
    })))
})
