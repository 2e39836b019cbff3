import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { LinkProofId, type PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import { linkNoticeKind, requestTemplates } from "../../../services/requests/RequestMail.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { EmbeddedIssuer } from "../../../src/embedded/EmbeddedIssuer.ts"
import { day, hour, timed } from "../../support/Fixtures.ts"
import { access, issuer, member, owner, person, project, tell } from "../../support/TestIdentity.ts"
import { serviceTokenFor, tokenFor } from "../../support/TestTokens.ts"
import {
  askAccess,
  codeOf,
  decline,
  fire,
  fixture,
  founded,
  membershipsOf,
  organization,
  requestRow,
  services,
  sign,
} from "../decisions/RequestFixture.ts"
import { ask, asked, identitiesOf, linksTold, mailsAbout, object, prove } from "./LinkSteps.ts"

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Links", (it) => {
  it.effect("two identities become one a day after the other side was told, and products are told", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [one, other] = [yield* person(), yield* person()]
      const portal = yield* project(w.fern)
      yield* access(w.fern, portal, one)
      // Products that know the person by the one subject, the other, or both.
      const [theirs, both] = [yield* project(w.fern), yield* project(w.fern)]
      for (const [at, who] of [[theirs, other], [both, other], [both, one]] as const) yield* access(w.fern, at, who)
      const link = yield* asked(one, other)
      assert.deepInclude(link, { state: "pending_review", issuer, subject: other, effective_at: null, version: 1 })
      assert.deepStrictEqual(link.policy_review!.required_roles, ["operator"])
      assert.deepStrictEqual(yield* mailsAbout(link.link_request_id), [`${other}@example.com`])
      const [notice] = (yield* requestTemplates(new URL("https://portal.example"))).filter(
        ({ kind }) => kind === linkNoticeKind,
      )
      const mail = { id: "m", subjectId: link.link_request_id, recipient: "", args: {} }
      const letter = (yield* notice!.render(mail))!
      assert.include(letter.text, "nothing takes effect before 2026-03-02 12:00 UTC")
      assert.include(letter.text, `https://portal.example/link-requests/${link.link_request_id}`)
      assert.strictEqual(yield* codeOf(sign(link, "operator", w.sam)), "not_found")
      yield* TestClock.adjust(hour)
      assert.strictEqual((yield* sign(link, "operator", w.oz)).state, "applied")
      const approved = yield* requestRow(link.link_request_id)
      assert.deepInclude(approved, { state: "pending_review", revision: 2 })
      assert.strictEqual(approved.effective_at!.toISOString(), "2026-03-02T12:00:00.000Z")
      yield* TestClock.adjust(23 * hour - 1)
      yield* fire
      assert.strictEqual((yield* requestRow(link.link_request_id)).state, "pending_review")
      yield* TestClock.adjust(1)
      yield* fire
      const linked = yield* requestRow(link.link_request_id)
      assert.deepInclude(linked, { state: "linked", revision: 3, result_id: one })
      assert.deepStrictEqual(yield* identitiesOf(one), [one, other].sort())
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`select merged_into from people where id = ${other}`, [{ merged_into: one }])
      assert.deepStrictEqual(
        yield* sql`select made_by, approved_by from identities where subject = ${other}`,
        [{ made_by: one, approved_by: [w.oz] }],
      )
      assert.deepStrictEqual(
        yield* sql`select action, actor from audit_records where subject = ${`request:${link.link_request_id}`}
          order by id`,
        [
          { action: "link-request.submitted", actor: `person:${one}` },
          { action: "link-request.approved", actor: `person:${w.oz}` },
          { action: "link-request.linked", actor: "system" },
        ],
      )
      assert.isNotNull(linked.event_id)
      const heard = [[portal, one, other], [theirs, other, one], [both, one, other], [both, other, one]]
      assert.sameDeepMembers(yield* linksTold([portal, theirs, both]), heard)
      assert.strictEqual(yield* codeOf(object(other, link.link_request_id)), "invalid_state")
      assert.isNull(yield* notice!.render(mail))
    })))

  it.effect("a later approval takes effect at once; receipts and ended sessions move to the merged person", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [one, other] = [yield* person(), yield* person()]
      const link = yield* asked(one, other)
      const { sql } = yield* Database
      const receipt = (personId: PersonId, key: string) =>
        sql`insert into idempotency_receipts (principal, method, path, key, fingerprint, kid, created_at)
          values (${`person:${personId}`}, 'POST', '/v1/x', ${key}, ''::bytea, 'k1', ${new Date(0)})`
      yield* receipt(other, "mine")
      yield* receipt(one, "both")
      yield* receipt(other, "both")
      const floor = (personId: PersonId, before: number) =>
        sql`insert into session_floors (person_id, before, except_issuer, except_sid)
          values (${personId}, ${new Date(before)}, ${issuer}, ${`kept ${before}`})`
      yield* floor(one, 1_000)
      yield* floor(other, 2_000)
      yield* TestClock.adjust(2 * day)
      yield* sign(link, "operator", w.oz)
      assert.strictEqual((yield* requestRow(link.link_request_id)).state, "linked")
      assert.deepStrictEqual(
        yield* sql`select principal, key from idempotency_receipts
          where principal in (${`person:${one}`}, ${`person:${other}`}) order by key, principal = ${`person:${one}`}`,
        [
          { principal: `person:${other}`, key: "both" },
          { principal: `person:${one}`, key: "both" },
          { principal: `person:${one}`, key: "mine" },
        ],
      )
      // Sessions that either had ended stay ended: the later cut-off counts.
      assert.deepStrictEqual(
        yield* sql`select except_sid from session_floors where person_id = ${one}`,
        [{ except_sid: "kept 2000" }],
      )
    })))

  it.effect("an identity without a person can be linked", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const one = yield* person()
      const subject = randomUUID()
      const token = yield* (yield* EmbeddedIssuer).mintAccessToken({ issuer, subject, clientId: "portal" })
      const link = yield* ask(one, (yield* prove(one, token)).proof_id)
      assert.deepStrictEqual(yield* mailsAbout(link.link_request_id), [])
      yield* sign(link, "operator", w.oz)
      yield* TestClock.adjust(day)
      yield* fire
      assert.deepStrictEqual(yield* identitiesOf(one), [one, subject].sort())
    })))

  it.effect("a link ends unlinked by an objection, an operator's refusal or expiry", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [one, other, third] = [yield* person(), yield* person(), yield* person()]
      const first = yield* asked(one, other)
      assert.strictEqual(yield* codeOf(object(third, first.link_request_id)), "not_found")
      assert.strictEqual(yield* codeOf(object(other, RequestId.make("nonsense"))), "not_found")
      assert.strictEqual(yield* codeOf(object(one, first.link_request_id)), "role_required")
      yield* sign(first, "operator", w.oz)
      assert.strictEqual((yield* object(other, first.link_request_id)).state, "declined")
      yield* TestClock.adjust(2 * day)
      yield* fire
      const second = yield* asked(one, other)
      yield* decline(second, "operator", w.oz)
      assert.strictEqual((yield* requestRow(second.link_request_id)).state, "declined")
      const third_ = yield* asked(one, other)
      yield* TestClock.adjust(14 * day)
      assert.strictEqual(yield* codeOf(sign(third_, "operator", w.oz)), "invalid_state")
      yield* fire
      assert.strictEqual((yield* requestRow(third_.link_request_id)).state, "expired")
      assert.deepStrictEqual(yield* identitiesOf(one), [one])
    })))

  it.effect("a proof counts once, for ten minutes, for its maker", () =>
    timed(Effect.gen(function* () {
      yield* fixture
      const [one, other, third] = [yield* person(), yield* person(), yield* person()]
      const token = yield* tokenFor(other)
      const proof = yield* prove(one, token)
      assert.strictEqual(proof.expires_at, "2026-03-01T12:10:00.000Z")
      assert.strictEqual(yield* codeOf(prove(third, token)), "proof_consumed")
      assert.strictEqual(yield* codeOf(ask(third, proof.proof_id)), "not_found")
      assert.strictEqual(yield* codeOf(ask(one, LinkProofId.make("nonsense"))), "not_found")
      yield* ask(one, proof.proof_id)
      assert.strictEqual(yield* codeOf(ask(one, proof.proof_id)), "proof_consumed")
      const open = yield* prove(third, yield* tokenFor(other))
      assert.strictEqual(yield* codeOf(ask(third, open.proof_id)), "request_exists")
      yield* TestClock.adjust(600_000)
      assert.strictEqual(yield* codeOf(ask(third, open.proof_id)), "proof_expired")
    })))

  it.effect("a stale, foreign, service's or own token proves nothing", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [one, other] = [yield* person(), yield* person()]
      const now = Date.parse("2026-03-01T12:00:00Z") / 1000
      const refused = Effect.fnUntraced(function* (token: string) {
        assert.strictEqual(yield* codeOf(prove(one, token)), "HTTPValidationError")
      })
      yield* refused("not a token")
      for (const authTime of [now - 301, null]) yield* refused(yield* tokenFor(other, { authTime }))
      yield* refused(yield* tokenFor(other, { audience: "service-lifecycle" }))
      yield* refused(yield* serviceTokenFor("robot"))
      yield* refused(yield* tokenFor(one))
      yield* prove(one, yield* tokenFor(other, { authTime: now - 300 }))
      // Nor does a leaked token, after its person ended that session.
      const { sql } = yield* Database
      const ended = yield* person()
      yield* sql`insert into session_floors (person_id, before, except_issuer, except_sid)
        values (${ended}, ${new Date(now * 1_000)}, ${issuer}, 'kept')`
      yield* refused(yield* tokenFor(ended, { sid: "leaked" }))
      yield* prove(one, yield* tokenFor(ended, { sid: "kept" }))
      // Nor a token of a person with a membership, an ownership, an operator's right, or a decision.
      const [owns, gone, kept] = [yield* person(), yield* person(), yield* person()]
      yield* owner(yield* project(w.fern), owns)
      for (const entangled of [w.sam, w.oz, owns]) yield* refused(yield* tokenFor(entangled))
      const token = yield* tokenFor(gone)
      yield* tell("person", { id: gone, version: 2, issuer, subject: gone, status: "suspended" })
      yield* refused(token)
      yield* sql`update people set merged_into = ${kept} where id = ${gone}`
      yield* refused(token)
    })))

  it.effect("a person who became a member meanwhile is not merged away", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [one, other, later] = [yield* person(), yield* person(), yield* person()]
      const { proof_id } = yield* prove(one, yield* tokenFor(later))
      const link = yield* asked(one, other)
      yield* sign(link, "operator", w.oz)
      yield* member(w.fern, other, "member")
      yield* member(w.fern, later, "member")
      assert.strictEqual(yield* codeOf(ask(one, proof_id)), "HTTPValidationError")
      yield* TestClock.adjust(day)
      yield* fire
      assert.strictEqual((yield* requestRow(link.link_request_id)).state, "declined")
      assert.deepStrictEqual(yield* identitiesOf(other), [other])
    })))

  it.effect("requests made before a merge go to the merged person", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [one, other] = [yield* person(), yield* person()]
      const portal = yield* project(w.fern)
      const wanted = yield* askAccess(w.fern, portal, other)
      const founding = yield* organization(other)
      const link = yield* asked(one, other)
      yield* sign(link, "operator", w.oz)
      yield* TestClock.adjust(day)
      yield* fire
      yield* sign(wanted, "sponsor", w.sam)
      yield* sign(wanted, "administrator", w.ada)
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`select person_id from access where project_id = ${portal}`, [{
        person_id: one,
      }])
      assert.strictEqual(yield* codeOf(sign(founding, "operator", one)), "four_eyes_required")
      const { items } = yield* (yield* Requests).mine(one)
      assert.deepStrictEqual(items.map(({ kind }) => kind), ["link", "organization", "access"])
      yield* sign(founding, "operator", w.ola)
      const moss = yield* founded(founding.request_id)
      assert.deepStrictEqual((yield* membershipsOf(moss, one)).map(({ role }) => role), ["sponsor"])
    })))

  it.effect("two persons who decided one thing together cannot be merged: 409, and the table refuses it too", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      // An operator who signed a stranger's link, and whose right has ended.
      const [ex, stranger] = [yield* person({ operator: true }), yield* person()]
      const link = yield* asked(stranger, yield* person())
      yield* sign(link, "operator", ex)
      const { proof_id } = yield* prove(stranger, yield* tokenFor(yield* person()))
      const { owner: sql } = yield* Database
      yield* sql`update link_proofs set subject = ${ex} where id = ${proof_id}::uuid`
      assert.strictEqual(yield* codeOf(ask(stranger, proof_id)), "four_eyes_collapsed")
      assert.strictEqual(
        (yield* Effect.exit(sql`update people set merged_into = ${stranger} where id = ${ex}`))._tag,
        "Failure",
      )
      assert.strictEqual(
        (yield* Effect.exit(sql`update people set merged_into = ${w.pat} where id = ${ex}`))._tag,
        "Success",
      )
    })))

  it.effect("merged persons count as one wherever two are needed", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [one, other] = [yield* person(), yield* person()]
      const link = yield* asked(one, other)
      yield* sign(link, "operator", w.oz)
      yield* TestClock.adjust(day)
      yield* fire
      const roles = yield* Roles
      assert.isFalse(yield* roles.independent(one, other))
      // The approver of a link is not independent of its person for 90 days.
      assert.isFalse(yield* roles.independent(one, w.oz))
      assert.isTrue(yield* roles.independent(one, w.ola))
      yield* TestClock.adjust(91 * day)
      assert.isTrue(yield* roles.independent(one, w.oz))
      assert.isFalse(yield* roles.independent(one, other))
      // Merges do not chain: persons merged into the second one now point to the third.
      const third = yield* person()
      const next = yield* asked(third, one)
      yield* sign(next, "operator", w.oz)
      yield* TestClock.adjust(day)
      yield* fire
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select distinct merged_into from people where id in (${one}, ${other})`,
        [{ merged_into: third }],
      )
      assert.deepStrictEqual(yield* identitiesOf(third), [one, other, third].sort())
    })))
})
