import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { InstitutionId, PersonId, PolicyReviewId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { day, reason, timed } from "../../support/Fixtures.ts"
import { access, member, person, project, tell } from "../../support/TestIdentity.ts"
import {
  acceptInvitation,
  askAccess,
  auditOf,
  changeMembership as change,
  codeOf,
  decline,
  enroll,
  fire,
  fixture,
  founded,
  membershipsOf,
  organization,
  requestRow,
  services,
  sign,
  tokenOf,
  told,
} from "./RequestFixture.ts"

const mine = (personId: PersonId) => Effect.flatMap(Requests, (requests) => requests.mine(personId))

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Requests", (it) => {
  it.effect("an operator's approval of an organization request makes an institution and its first Sponsor", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const mo = yield* person()
      const asked = yield* organization(mo)
      assert.deepInclude(asked, {
        state: "submitted",
        version: 1,
        event_id: null,
        job_id: null,
        institution_id: null,
        domains: ["moss.example", "xn--bcher-kva.example"],
        created_at: "2026-03-01T12:00:00.000Z",
      })
      assert.lengthOf(asked.contacts, 1)
      assert.deepStrictEqual(asked.policy_review!.required_roles, ["operator"])
      assert.strictEqual(yield* codeOf(sign(asked, "operator", mo)), "four_eyes_required")
      assert.strictEqual(yield* codeOf(sign(asked, "operator", w.sam)), "not_found")
      const review = yield* sign(asked, "operator", w.oz)
      assert.deepStrictEqual(review, {
        review_id: asked.policy_review!.review_id,
        state: "applied",
        required_roles: ["operator"],
        approvals: [{ role: "operator", person_id: w.oz, approved_at: "2026-03-01T12:00:00.000Z" }],
      })
      const row = yield* requestRow(asked.request_id)
      assert.deepInclude(row, { state: "approved", revision: 2 })
      assert.deepStrictEqual(yield* membershipsOf(yield* founded(asked.request_id), mo), [
        { role: "sponsor", state: "active", made_by: mo, approved_by: [w.oz] },
      ])
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select name, verified_domains, status, made_by, approved_by from institutions
          where id = ${row.result_id}`,
        [{
          name: "Moss",
          verified_domains: ["moss.example", "xn--bcher-kva.example"],
          status: "active",
          made_by: mo,
          approved_by: [w.oz],
        }],
      )
      assert.strictEqual(yield* codeOf(sign(asked, "operator", w.ola)), "invalid_state")
    })))

  it.effect("an access request needs a Sponsor and an administrator, and becomes Access with its grant event", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      assert.deepStrictEqual(asked.policy_review!.required_roles, ["sponsor", "administrator"])
      assert.strictEqual(asked.expires_at, "2026-03-15T12:00:00.000Z")
      assert.strictEqual(yield* codeOf(askAccess(w.fern, portal, w.pat)), "request_exists")
      assert.strictEqual(yield* codeOf(askAccess(InstitutionId.make("elsewhere"), portal, w.ada)), "not_found")
      assert.strictEqual(yield* codeOf(askAccess(w.fern, ProjectId.make("unknown"), w.pat)), "not_found")
      assert.strictEqual((yield* sign(asked, "administrator", w.ada)).state, "open")
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.abe)), "invalid_state")
      assert.strictEqual(yield* codeOf(sign(asked, "sponsor", w.abe)), "role_required")
      assert.strictEqual((yield* sign(asked, "sponsor", w.sam)).state, "applied")
      const row = yield* requestRow(asked.request_id)
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select access_version, person_id, role, state, event_id::text as event_id, made_by, approved_by
          from access_versions where access_id = ${row.result_id}`,
        [{
          access_version: 1,
          person_id: w.pat,
          role: "user",
          state: "active",
          event_id: row.event_id,
          made_by: w.pat,
          approved_by: [w.ada, w.sam],
        }],
      )
      assert.strictEqual((yield* told(portal)).at(-1), "access-granted")
      assert.strictEqual(yield* codeOf(askAccess(w.fern, portal, w.pat)), "invalid_state")
    })))

  it.effect("a person signs once, the author never, and a declined request stays declined", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      // A Sponsor who is an administrator as well is still one person.
      yield* member(w.fern, w.sam, "administrator")
      const portal = yield* project(w.fern)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      yield* sign(asked, "sponsor", w.sam)
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.sam)), "four_eyes_required")
      const own = yield* askAccess(w.fern, portal, w.ada)
      assert.strictEqual(yield* codeOf(sign(own, "administrator", w.ada)), "four_eyes_required")
      assert.strictEqual(yield* codeOf(decline(own, "administrator", w.ada)), "four_eyes_required")
      assert.strictEqual(yield* codeOf(decline(own, "administrator", w.pat)), "not_found")
      assert.strictEqual((yield* decline(own, "administrator", w.abe)).state, "declined")
      assert.strictEqual((yield* requestRow(own.request_id)).state, "declined")
      assert.strictEqual(yield* codeOf(sign(own, "sponsor", w.sam)), "invalid_state")
      assert.strictEqual(yield* codeOf(sign(asked, "operator", w.oz)), "invalid_state")
      assert.strictEqual(yield* codeOf(sign(asked, "owner of everything", w.abe)), "invalid_state")
      assert.strictEqual(
        yield* codeOf(sign(PolicyReviewId.make("0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11"), "sponsor", w.sam)),
        "not_found",
      )
      assert.strictEqual(yield* codeOf(sign(PolicyReviewId.make("nonsense"), "sponsor", w.sam)), "not_found")
      // A declined request leaves room for a new one.
      assert.strictEqual((yield* askAccess(w.fern, portal, w.ada)).state, "submitted")
    })))

  it.effect("a request undecided for 14 days expires, by the clock and by its timer", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      const other = yield* askAccess(w.fern, portal, w.oz)
      yield* TestClock.adjust(14 * day - 1)
      yield* sign(asked, "sponsor", w.sam)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.ada)), "invalid_state")
      assert.strictEqual((yield* mine(w.pat)).items[0]!.state, "expired")
      const again = yield* askAccess(w.fern, portal, w.pat)
      assert.notStrictEqual(again.request_id, asked.request_id)
      const ended = { action: "access-request.expired", actor: "system" }
      assert.deepStrictEqual((yield* auditOf(asked.request_id)).at(-1), ended)
      assert.isAtLeast(yield* fire, 1)
      assert.deepInclude(yield* requestRow(other.request_id), { state: "expired", revision: 2 })
      assert.strictEqual((yield* requestRow(again.request_id)).state, "submitted")
      assert.strictEqual(yield* codeOf(sign(other, "sponsor", w.sam)), "invalid_state")
    })))

  it.effect("a role changes once a Sponsor and an administrator have signed", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      assert.strictEqual(yield* codeOf(change(w, w.pat, w.pat, "administrator", "active")), "not_found")
      yield* member(w.fern, w.pat, "member")
      assert.strictEqual(yield* codeOf(change(w, w.pat, w.pat, "administrator", "active")), "role_required")
      assert.strictEqual(yield* codeOf(change(w, w.ada, PersonId.make("nobody"), "member", "active")), "not_found")
      const asked = yield* change(w, w.ada, w.pat, "administrator", "active")
      assert.deepStrictEqual(asked.membership, { person_id: w.pat, role: "administrator", state: "active" })
      assert.strictEqual(yield* codeOf(change(w, w.sam, w.pat, "administrator", "ended")), "request_exists")
      yield* sign(asked, "administrator", w.abe)
      yield* sign(asked, "sponsor", w.sam)
      assert.deepStrictEqual((yield* membershipsOf(w.fern, w.pat)).map(({ role, state }) => [role, state]), [
        ["administrator", "active"],
        ["member", "active"],
      ])
      // Pat is independent of everyone at once: each of Pat's approvers has another one beside it.
      const next = yield* change(w, w.pat, w.abe, "administrator", "suspended")
      yield* sign(next, "sponsor", w.sam)
      yield* sign(next, "administrator", w.ada)
      assert.strictEqual((yield* membershipsOf(w.fern, w.abe))[0]!.state, "suspended")
    })))

  it.effect("an invitation sent before a role was ended does not give it back", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ned = yield* person({ email: "ned@ended.example" })
      const invited = Effect.gen(function* () {
        const asked = yield* enroll(w.fern, w.sam, "ned@ended.example")
        yield* sign(asked, "administrator", w.ada)
        return yield* tokenOf(asked.enrollment_id)
      })
      yield* member(w.fern, ned, "member")
      yield* member(w.fern, ned, "administrator")
      const [before, also] = [yield* invited, yield* invited]
      yield* TestClock.adjust(1)
      const ending = yield* change(w, w.abe, ned, "administrator", "ended")
      yield* sign(ending, "sponsor", w.sam)
      yield* sign(ending, "administrator", w.ada)
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, before)), "invalid_state")
      // An administrator who approves the claim now does so after the role's end.
      const { sql } = yield* Database
      yield* sql`update people set email_verified = false where id = ${ned}`
      const claim = yield* acceptInvitation(ned, also)
      assert.strictEqual((yield* sign(claim.policy_review!.review_id, "administrator", w.abe)).state, "applied")
      yield* sql`update people set email_verified = true where id = ${ned}`
      assert.strictEqual((yield* acceptInvitation(ned, yield* invited)).state, "accepted")
      assert.deepInclude((yield* membershipsOf(w.fern, ned))[0], { role: "administrator", state: "ended" })
    })))

  it.effect("an administrator without an acceptance from the directory becomes effective by a change of role", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      yield* member(w.fern, w.pat, "administrator", { accepted_at: null })
      const portal = yield* project(w.fern)
      const asked = yield* askAccess(w.fern, portal, w.oz)
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.pat)), "administrator_not_effective")
      const raised = yield* change(w, w.ada, w.pat, "administrator", "active")
      yield* sign(raised, "administrator", w.abe)
      yield* sign(raised, "sponsor", w.sam)
      assert.strictEqual((yield* sign(asked, "administrator", w.pat)).state, "open")
      // Repeating the change keeps the membership's provenance.
      const again = yield* change(w, w.sam, w.pat, "administrator", "active")
      assert.deepInclude((yield* membershipsOf(w.fern, w.pat))[0], { made_by: w.ada, approved_by: [w.abe, w.sam] })
      assert.strictEqual(yield* codeOf(sign(again, "sponsor", w.sam)), "four_eyes_required")
    })))

  it.effect("Access is refused for a withdrawn or held project and for a suspended person", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [portal, gone] = [yield* project(w.fern), yield* project(w.fern, { state: "withdrawn" })]
      const allowed = ["registered", "launch_proposed", "launched", "held"]
      assert.deepInclude(yield* Effect.flip(askAccess(w.fern, gone, w.pat)), {
        code: "invalid_state",
        state: "withdrawn",
        allowed,
      })
      yield* access(w.fern, portal, w.ola)
      assert.strictEqual(yield* codeOf(askAccess(w.fern, portal, w.ola)), "invalid_state")
      // Access of a merged person counts as the Access of the person that it was merged into.
      const alias = yield* person()
      yield* access(w.fern, portal, alias)
      const both = yield* askAccess(w.fern, portal, w.oz)
      yield* sign(both, "sponsor", w.sam)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      yield* sign(asked, "sponsor", w.sam)
      const { sql } = yield* Database
      yield* sql`update people set merged_into = ${w.oz} where id = ${alias}`
      yield* sign(both, "administrator", w.ada)
      assert.lengthOf(yield* sql`select from access where project_id = ${portal} and person_id = ${w.oz}`, 0)
      assert.strictEqual(yield* codeOf(askAccess(w.fern, portal, w.oz)), "invalid_state")
      yield* sql`update projects set rollout = 'fail' where id = ${portal}`
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.ada)), "environment_held")
      yield* sql`update projects set rollout = null where id = ${portal}`
      const line = { issuer: "https://id.example", subject: w.pat, display_name: null, email: null }
      yield* tell("person", { id: w.pat, version: 2, ...line, status: "suspended" })
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.ada)), "invalid_state")
      assert.strictEqual(yield* codeOf(askAccess(w.fern, portal, w.pat)), "invalid_token")
      yield* tell("person", { id: w.pat, version: 3, ...line, status: "active" })
      assert.strictEqual((yield* sign(asked, "administrator", w.ada)).state, "applied")
    })))

  it.effect("a caller lists own requests of every kind, and no other person's", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      yield* organization(w.pat)
      const asked = yield* askAccess(w.fern, portal, w.pat)
      const { items } = yield* mine(w.pat)
      assert.deepStrictEqual(items.map(({ kind }) => kind), ["access", "organization"])
      assert.deepStrictEqual(items[0], {
        id: asked.request_id,
        kind: "access",
        state: "submitted",
        institution_id: w.fern,
        project_id: portal,
        author_person_id: w.pat,
        name: null,
        recipient: null,
        ends_at: null,
        membership: null,
        reason,
        expires_at: asked.expires_at,
        decided_at: null,
        withdrawn: false,
        effective_at: null,
        held_reason: null,
        client_id: null,
        result_id: null,
        delivery: null,
        version: 1,
        event_id: null,
        job_id: null,
        created_at: asked.created_at,
        policy_review: asked.policy_review,
      })
      assert.deepStrictEqual(yield* mine(w.abe), { items: [] })
      const older = yield* Effect.flatMap(Requests, (requests) =>
        requests.mine(w.pat, { limit: 1, afterId: asked.request_id }))
      assert.deepStrictEqual(
        older.items.map(({ kind }) =>
          kind
        ),
        ["organization"],
      )
      const beyond = { limit: 1, afterId: older.items[0]!.id }
      assert.deepStrictEqual(yield* Effect.flatMap(Requests, (requests) => requests.mine(w.pat, beyond)), { items: [] })
    })))

  it.effect("an author sees for whom and for what each request is, an invited address masked", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      yield* organization(w.sam)
      yield* member(w.fern, w.pat, "member")
      yield* change(w, w.sam, w.pat, "administrator", "active")
      yield* enroll(w.fern, w.sam, "ned@new.example")
      yield* enroll(w.fern, w.sam, "the lady from accounting")
      assert.deepStrictEqual(
        (yield* mine(w.sam)).items.map(({ membership, name, recipient }) => ({ membership, name, recipient })),
        [
          { membership: null, name: null, recipient: "t***" },
          { membership: null, name: null, recipient: "n***@new.example" },
          {
            membership: { person_id: w.pat, role: "administrator", state: "active" },
            name: null,
            recipient: null,
          },
          { membership: null, name: "Moss", recipient: null },
        ],
      )
    })))

  it.effect("requests and decisions cannot be rewritten, not even by the tables' owner", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const asked = yield* organization(w.pat)
      yield* sign(asked, "operator", w.oz)
      const { owner } = yield* Database
      const review = asked.policy_review!.review_id
      const attempts = [
        owner`update requests set state = 'submitted' where id = ${asked.request_id}::uuid`,
        owner`delete from requests where id = ${asked.request_id}::uuid`,
        owner`update policy_reviews set state = 'open', decided_at = null where id = ${review}::uuid`,
        owner`update policy_approvals set person_id = ${w.sam} where review_id = ${review}::uuid`,
        owner`delete from policy_approvals where review_id = ${review}::uuid`,
      ]
      for (const attempt of attempts) assert.strictEqual((yield* Effect.exit(attempt))._tag, "Failure")
      const open = yield* organization(w.pat)
      const insert = (person: string, role = "operator") =>
        owner`insert into policy_approvals values (${open.policy_review!.review_id}::uuid, ${w.pat}, ${role}, ${person},
          false, ${reason}, ${new Date()})`
      assert.strictEqual((yield* Effect.exit(insert(w.pat)))._tag, "Failure")
      assert.strictEqual((yield* Effect.exit(insert(w.oz, "sponsor")))._tag, "Failure")
      assert.strictEqual((yield* Effect.exit(insert(w.oz)))._tag, "Success")
    })))
})
