import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { type PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import { requestTemplates } from "../../../services/requests/RequestMail.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { day, timed } from "../../support/Fixtures.ts"
import { institution, member, person, project } from "../../support/TestIdentity.ts"
import {
  acceptInvitation,
  askAccess,
  auditOf,
  codeOf,
  decline,
  enroll,
  fire,
  fixture,
  founded,
  membershipsOf,
  organization,
  renew,
  requestRow,
  revokeInvitation,
  services,
  sign,
  tokenOf,
} from "./RequestFixture.ts"

const deliveryOf = (personId: PersonId) =>
  Effect.map(Effect.flatMap(Requests, (requests) => requests.mine(personId)), ({ items }) => items[0]!.delivery)

/** The mails of a request, as the mailer would render them. */
const letters = Effect.fnUntraced(function* (requestId: RequestId) {
  const { sql } = yield* Database
  const templates = yield* requestTemplates(new URL("https://portal.example/app"))
  const mails = yield* sql<{ id: string; kind: string; recipient: string }>`
    select id::text as id, kind, recipient from mails where subject_id = ${requestId} order by id`
  return yield* Effect.forEach(mails, (mail) =>
    Effect.map(
      templates.find(({ kind }) => kind === mail.kind)!.render({ ...mail, subjectId: requestId, args: {} }),
      (letter) => ({ recipient: mail.recipient, letter }),
    ))
})

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Enrollments", (it) => {
  it.effect("an invitation is reviewed, mailed, and accepted by the person with the invited address", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ned = yield* person({ email: "Ned@new.example" })
      const asked = yield* enroll(w.fern, w.sam, "ned@NEW.example")
      assert.deepInclude(asked, { state: "held", recipient: "n***@NEW.example", version: 1 })
      assert.deepStrictEqual(asked.delivery, { state: "none", message_id: null })
      assert.deepStrictEqual(asked.policy_review!.required_roles, ["administrator"])
      yield* TestClock.adjust(day)
      yield* sign(asked, "administrator", w.ada)
      const row = yield* requestRow(asked.enrollment_id)
      assert.deepInclude(row, { state: "invited", revision: 2 })
      assert.deepStrictEqual(yield* deliveryOf(w.sam), { state: "queued", message_id: row.mail_id })
      const [mail] = yield* letters(asked.enrollment_id)
      const token = yield* tokenOf(asked.enrollment_id)
      assert.strictEqual(mail!.recipient, "ned@NEW.example")
      assert.include(mail!.letter!.text, `https://portal.example/app/enrollments/${token}`)
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, "not a token")), "not_found")
      // Seven days from the invitation, not from the request.
      yield* TestClock.adjust(7 * day - 1)
      assert.deepStrictEqual(yield* acceptInvitation(ned, token), {
        enrollment_id: asked.enrollment_id,
        institution_id: w.fern,
        state: "accepted",
        version: 3,
        membership: { role: "member", state: "active" },
        policy_review: null,
      })
      assert.deepStrictEqual(yield* membershipsOf(w.fern, ned), [
        { role: "member", state: "active", made_by: w.sam, approved_by: [w.ada] },
      ])
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, token)), "invalid_state")
      // A mail still in the queue is not sent any more.
      assert.isNull((yield* letters(asked.enrollment_id))[0]!.letter)
      assert.deepStrictEqual(yield* auditOf(asked.enrollment_id), [
        { action: "enrollment.submitted", actor: `person:${w.sam}` },
        { action: "enrollment.invited", actor: `person:${w.ada}` },
        { action: "enrollment.accepted", actor: `person:${ned}` },
      ])
    })))

  it.effect("an administrator's invitation needs a Sponsor's review; members and strangers may not invite", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const asked = yield* enroll(w.fern, w.ada, "new@new.example")
      assert.deepStrictEqual(asked.policy_review!.required_roles, ["sponsor"])
      assert.deepInclude(yield* Effect.flip(sign(asked, "administrator", w.abe)), {
        code: "invalid_state",
        state: "open",
        allowed: ["sponsor"],
        detail: "The review waits for sponsor, not for administrator.",
      })
      assert.strictEqual((yield* sign(asked, "sponsor", w.sam)).state, "applied")
      assert.strictEqual(yield* codeOf(enroll(w.fern, w.pat, "new@new.example")), "not_found")
      yield* member(w.fern, w.pat, "member")
      assert.strictEqual(yield* codeOf(enroll(w.fern, w.pat, "new@new.example")), "role_required")
      const declined = yield* enroll(w.fern, w.sam, "other@new.example")
      yield* decline(declined, "administrator", w.ada)
      assert.strictEqual((yield* requestRow(declined.enrollment_id)).state, "revoked")
    })))

  it.effect("an invitation to no valid address stays held after its review, until it expires", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const asked = yield* enroll(w.fern, w.sam, "the lady from accounting")
      assert.deepStrictEqual(asked.delivery, { state: "failed", message_id: null })
      assert.strictEqual(asked.recipient, "t***")
      assert.strictEqual((yield* sign(asked, "administrator", w.ada)).state, "applied")
      assert.deepInclude(yield* requestRow(asked.enrollment_id), { state: "held", mail_id: null })
      yield* TestClock.adjust(7 * day)
      yield* fire
      assert.strictEqual((yield* requestRow(asked.enrollment_id)).state, "expired")
    })))

  it.effect("an invitation expires after seven days, by the clock and then by its timer", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ned = yield* person({ email: "late@new.example" })
      const asked = yield* enroll(w.fern, w.sam, "late@new.example")
      yield* sign(asked, "administrator", w.ada)
      const token = yield* tokenOf(asked.enrollment_id)
      yield* TestClock.adjust(7 * day)
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, token)), "invalid_state")
      yield* fire
      assert.strictEqual((yield* requestRow(asked.enrollment_id)).state, "expired")
      assert.deepStrictEqual(yield* membershipsOf(w.fern, ned), [])
    })))

  it.effect("another holder of an invitation's link waits for an administrator, and blocks no other holder", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [ned, finder, thief] = yield* Effect.all([
        person({ email: "ned@new.example", email_verified: false }),
        person(),
        person(),
      ])
      const asked = yield* enroll(w.fern, w.sam, "ned@new.example")
      yield* sign(asked, "administrator", w.ada)
      const token = yield* tokenOf(asked.enrollment_id)
      const waiting = yield* acceptInvitation(ned, token)
      assert.deepInclude(waiting, { state: "invited", membership: null })
      assert.deepStrictEqual(waiting.policy_review!.required_roles, ["administrator"])
      assert.deepStrictEqual(yield* acceptInvitation(ned, token), waiting)
      assert.strictEqual(yield* codeOf(acceptInvitation(thief, token)), "request_exists")
      assert.strictEqual(yield* codeOf(sign(waiting, "administrator", ned)), "four_eyes_required")
      yield* decline(waiting, "administrator", w.ada)
      const second = yield* acceptInvitation(finder, token)
      yield* sign(second, "administrator", w.abe)
      assert.deepStrictEqual(yield* membershipsOf(w.fern, finder), [
        { role: "member", state: "active", made_by: w.sam, approved_by: [w.abe] },
      ])
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, token)), "invalid_state")
      assert.deepStrictEqual((yield* auditOf(asked.enrollment_id)).at(-1), {
        action: "enrollment.accepted",
        actor: `person:${w.abe}`,
      })

      const next = yield* enroll(w.fern, w.sam, "mia@new.example")
      yield* sign(next, "administrator", w.ada)
      const mia = yield* person({ email: "mia@new.example" })
      const open = yield* acceptInvitation(thief, yield* tokenOf(next.enrollment_id))
      assert.strictEqual((yield* acceptInvitation(mia, yield* tokenOf(next.enrollment_id))).state, "accepted")
      assert.strictEqual(yield* codeOf(sign(open, "administrator", w.ada)), "invalid_state")
      assert.deepStrictEqual(yield* membershipsOf(w.fern, thief), [])
    })))

  it.effect("approving an invitation does not approve another person who claims it", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      yield* member(w.fern, w.sam, "administrator")
      const [finder, access] = [yield* person(), yield* project(w.fern)]
      const asked = yield* enroll(w.fern, w.sam, "somebody@new.example")
      yield* sign(asked, "administrator", w.ada)
      const claim = yield* acceptInvitation(finder, yield* tokenOf(asked.enrollment_id))
      const { sql } = yield* Database
      yield* sql`update people set status = 'suspended' where id = ${finder}`
      assert.strictEqual(yield* codeOf(sign(claim, "administrator", w.sam)), "invalid_state")
      yield* sql`update people set status = 'active' where id = ${finder}`
      // Sam alone let the finder in, so for 90 days the two are not independent.
      yield* sign(claim, "administrator", w.sam)
      assert.deepStrictEqual(yield* membershipsOf(w.fern, finder), [
        { role: "member", state: "active", made_by: w.sam, approved_by: [w.sam] },
      ])
      const request = yield* askAccess(w.fern, access, finder)
      assert.strictEqual(yield* codeOf(sign(request, "sponsor", w.sam)), "four_eyes_required")
    })))

  it.effect("an inviter may revoke an invitation before and after its review", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [ned, finder] = [yield* person({ email: "ned@back.example" }), yield* person()]
      const held = yield* enroll(w.fern, w.sam, "ned@back.example")
      const back = yield* revokeInvitation(w.fern, held.enrollment_id, w.ada)
      assert.deepInclude(back, { state: "revoked", version: 2, recipient: "n***@back.example" })
      assert.strictEqual(yield* codeOf(sign(held, "administrator", w.ada)), "invalid_state")

      const sent = yield* enroll(w.fern, w.sam, "ned@back.example")
      yield* sign(sent, "administrator", w.ada)
      const token = yield* tokenOf(sent.enrollment_id)
      const claim = yield* acceptInvitation(finder, token)
      yield* member(w.fern, w.pat, "member")
      assert.strictEqual(yield* codeOf(revokeInvitation(w.fern, sent.enrollment_id, w.pat)), "role_required")
      assert.strictEqual(yield* codeOf(revokeInvitation(w.fern, sent.enrollment_id, ned)), "not_found")
      const other = yield* institution()
      yield* member(other, w.abe, "administrator")
      assert.strictEqual(yield* codeOf(revokeInvitation(other, sent.enrollment_id, w.abe)), "not_found")
      assert.strictEqual(yield* codeOf(revokeInvitation(w.fern, RequestId.make("unknown"), w.abe)), "not_found")
      const gone = yield* revokeInvitation(w.fern, sent.enrollment_id, w.sam)
      assert.deepInclude(gone, { state: "revoked", version: 3 })
      assert.strictEqual(gone.delivery.state, "queued")
      // After the revocation no holder of the link gets in, and no mail leaves.
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, token)), "invalid_state")
      assert.strictEqual(yield* codeOf(sign(claim, "administrator", w.ada)), "invalid_state")
      assert.isNull((yield* letters(sent.enrollment_id))[0]!.letter)
      assert.deepStrictEqual((yield* auditOf(sent.enrollment_id)).at(-1), {
        action: "enrollment.revoked",
        actor: `person:${w.sam}`,
      })
      assert.strictEqual(yield* codeOf(revokeInvitation(w.fern, sent.enrollment_id, w.sam)), "invalid_state")

      const late = yield* enroll(w.fern, w.sam, "ned@back.example")
      yield* TestClock.adjust(7 * day)
      assert.strictEqual(yield* codeOf(revokeInvitation(w.fern, late.enrollment_id, w.sam)), "invalid_state")
    })))

  it.effect("an ended invitation is asked for again, to its recipient, and is reviewed anew", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { sql } = yield* Database
      const ned = yield* person({ email: "ned@fern.example" })
      const first = yield* enroll(w.fern, w.sam, "ned@fern.example")
      assert.strictEqual(yield* codeOf(renew(w.fern, first.enrollment_id, w.sam)), "invalid_state")
      yield* sign(first, "administrator", w.ada)
      assert.strictEqual(yield* codeOf(renew(w.fern, first.enrollment_id, w.sam)), "invalid_state")
      // The mail's outcome is unknown: it may have arrived.
      const mailed = (yield* requestRow(first.enrollment_id)).mail_id
      yield* sql`update mails set state = 'unknown', ended_at = created_at, not_before = null where id = ${mailed}::uuid`
      assert.strictEqual(yield* codeOf(renew(w.fern, first.enrollment_id, w.sam)), "invalid_state")
      yield* sql`update mails set state = 'failed' where id = ${mailed}::uuid`
      const old = yield* tokenOf(first.enrollment_id)
      const second = yield* renew(w.fern, first.enrollment_id, w.sam)
      assert.deepInclude(second, { state: "held", recipient: "n***@fern.example" })
      assert.deepStrictEqual(second.policy_review!.required_roles, ["administrator"])
      assert.strictEqual((yield* requestRow(first.enrollment_id)).state, "revoked")
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, old)), "invalid_state")
      yield* sign(second, "administrator", w.ada)
      yield* revokeInvitation(w.fern, second.enrollment_id, w.ada)
      // An administrator's needs a Sponsor.
      const third = yield* renew(w.fern, second.enrollment_id, w.ada)
      assert.deepStrictEqual(third.policy_review!.required_roles, ["sponsor"])
      yield* sign(third, "sponsor", w.sam)
      yield* TestClock.adjust("8 days")
      const fourth = yield* renew(w.fern, third.enrollment_id, w.sam)
      yield* sign(fourth, "administrator", w.abe)
      yield* acceptInvitation(ned, yield* tokenOf(fourth.enrollment_id))
      assert.strictEqual(yield* codeOf(renew(w.fern, fourth.enrollment_id, w.sam)), "invalid_state")
      assert.strictEqual(yield* codeOf(renew(w.fern, third.enrollment_id, w.oz)), "not_found")
      const none = yield* enroll(w.fern, w.sam, "no address")
      yield* revokeInvitation(w.fern, none.enrollment_id, w.sam)
      assert.strictEqual(yield* codeOf(renew(w.fern, none.enrollment_id, w.sam)), "invalid_state")
    })))

  it.effect("a new institution's approver may approve its first administrator, and only the first", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [mo, ann, ben] = yield* Effect.all([
        person(),
        person({ email: "ann@moss.example" }),
        person({ email: "ben@moss.example" }),
      ])
      const founding = yield* organization(mo)
      yield* sign(founding, "operator", w.oz)
      const moss = yield* founded(founding.request_id)
      const first = yield* enroll(moss, mo, "ann@moss.example")
      // Two invitations wait at once: both may be approved before either is accepted.
      const second = yield* enroll(moss, mo, "ben@moss.example")
      assert.strictEqual((yield* sign(first, "administrator", w.oz)).state, "applied")
      assert.strictEqual(yield* codeOf(sign(second, "administrator", w.oz)), "four_eyes_required")
      assert.strictEqual((yield* sign(second, "administrator", w.ola)).state, "applied")
      const tokens = [yield* tokenOf(first.enrollment_id), yield* tokenOf(second.enrollment_id)] as const
      const accepted = yield* Effect.all([acceptInvitation(ann, tokens[0]), acceptInvitation(ben, tokens[1])], {
        concurrency: 2,
      })
      assert.deepStrictEqual(accepted.map(({ membership }) => membership!.role).sort(), ["administrator", "member"])
      // No operator stands in any more.
      const third = yield* enroll(moss, mo, "cy@moss.example")
      assert.strictEqual(yield* codeOf(sign(third, "administrator", w.ola)), "role_required")
      const administrator = accepted[0]!.membership!.role === "administrator" ? ann : ben
      assert.strictEqual((yield* sign(third, "administrator", administrator)).state, "applied")
    })))

  it.effect("an operator stands in for administrators only while none of them could sign", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [moss, sol] = [yield* institution(), yield* person()]
      yield* member(moss, sol, "sponsor")
      const none = yield* enroll(moss, sol, "a@moss.example")
      assert.strictEqual((yield* sign(none, "administrator", w.oz)).state, "applied")
      const lone = yield* person()
      yield* member(moss, lone, "administrator")
      const one = yield* enroll(moss, sol, "b@moss.example")
      assert.strictEqual(yield* codeOf(sign(one, "administrator", w.oz)), "role_required")
      const { sql } = yield* Database
      yield* sql`update institution_memberships set state = 'suspended' where person_id = ${lone}`
      assert.strictEqual((yield* sign(one, "administrator", w.oz)).state, "applied")
      assert.strictEqual(yield* codeOf(sign(one, "administrator", lone)), "administrator_not_effective")
    })))

  it.effect("a suspended institution gets no new member, also not by an operator who stands in", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ned = yield* person({ email: "ned@still.example" })
      const [first, second] = [
        yield* enroll(w.fern, w.sam, "ned@still.example"),
        yield* enroll(w.fern, w.sam, "mia@still.example"),
      ]
      yield* sign(first, "administrator", w.ada)
      const { sql } = yield* Database
      yield* sql`update institutions set status = 'suspended' where id = ${w.fern}`
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, yield* tokenOf(first.enrollment_id))), "invalid_state")
      assert.strictEqual(yield* codeOf(sign(second, "administrator", w.oz)), "invalid_state")
      assert.strictEqual(yield* codeOf(sign(second, "administrator", w.ada)), "administrator_not_effective")
      assert.strictEqual((yield* decline(second, "administrator", w.oz)).state, "declined")
    })))

  it.effect("an older invitation does not undo a suspension", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ned = yield* person({ email: "sus@new.example" })
      yield* member(w.fern, ned, "member", { state: "suspended" })
      const asked = yield* enroll(w.fern, w.sam, "sus@new.example")
      yield* sign(asked, "administrator", w.ada)
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, yield* tokenOf(asked.enrollment_id))), "invalid_state")
      assert.strictEqual((yield* membershipsOf(w.fern, ned))[0]!.state, "suspended")
      // Nor may it give another role: without an administrator there, it would make one.
      const [moss, sol] = [yield* institution(), yield* person()]
      yield* member(moss, sol, "sponsor")
      yield* member(moss, ned, "member", { state: "suspended" })
      const first = yield* enroll(moss, sol, "sus@new.example")
      yield* sign(first, "administrator", w.oz)
      assert.strictEqual(yield* codeOf(acceptInvitation(ned, yield* tokenOf(first.enrollment_id))), "invalid_state")
    })))
})
