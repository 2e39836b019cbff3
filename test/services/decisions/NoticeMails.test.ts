import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { AuthenticatorId } from "../../../schemas/BrandedIds.ts"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { NoticeMails } from "../../../services/decisions/NoticeMails.ts"
import { addNotices, pruneNotices } from "../../../services/requests/PersonNotices.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, hour, reason, timed } from "../../support/Fixtures.ts"
import { access, person, project } from "../../support/TestIdentity.ts"
import { mailsTo, noticeServices, settleAll, wants } from "./NoticeFixture.ts"
import {
  askAccess,
  changeMembership,
  decided,
  decline,
  enroll,
  fire,
  fixture,
  organization,
  propose,
  revokeInvitation,
  sign,
  website,
  withdraw,
} from "./RequestFixture.ts"

const noticesOf = Effect.fnUntraced(function* (subjectId: string) {
  const { sql } = yield* Database
  return yield* sql<{ person_id: string; kind: string; told: boolean }>`
    select person_id, kind, due_at is null as told from person_notices where subject_id = ${subjectId}::uuid order by kind`
})

const opened = "of 2026-03-01 12:00 UTC"

layer(noticeServices, { excludeTestServices: true, timeout: "2 minutes" })("notices of decisions", (it) => {
  it.effect("a request's author hears of its approval once, however often the worker looks", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const asked = yield* organization(w.pat)
      yield* settleAll
      assert.deepStrictEqual(yield* mailsTo(w.pat), [])
      yield* sign(asked, "operator", w.oz)
      assert.deepStrictEqual(yield* noticesOf(asked.request_id), [
        { person_id: w.pat, kind: "request.approved", told: false },
      ])
      yield* settleAll
      yield* settleAll
      const [mail, ...more] = yield* mailsTo(w.pat)
      assert.lengthOf(more, 0)
      assert.strictEqual(mail!.subject, "Your request for an institution was approved")
      assert.strictEqual(
        mail!.text,
        `Your request for an institution ${opened} was approved. You wrote: “${reason}”\n\n` +
          "Look at your requests:\nhttps://bailiwick.example/requests\n",
      )
      assert.strictEqual(yield* settleAll, 0)
    })))

  it.effect("a person hears how many recovery codes are left, and of requests beside it in the same mail", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { sql } = yield* Database
      const [id, used] = [AuthenticatorId.make(randomUUID()), Buffer.alloc(32, 9)]
      yield* sql`insert into authenticators (id, person_id, kind, label, created_at)
        values (${id}::uuid, ${w.pat}, 'recovery_codes', 'Codes', '2026-01-01Z')`
      yield* sql`insert into recovery_codes (authenticator_id, kid, hash)
        select ${id}::uuid, 'k1', hash from unnest(${[1, 2, 3].map((n) => Buffer.alloc(32, n))}::bytea[]) hash`
      yield* run(addNotices(sql, { personId: w.pat, kind: "codes.few", subjectId: id }))
      yield* run(addNotices(sql, { personId: w.pat, kind: "codes.few", subjectId: id }))
      yield* settleAll
      const [few, ...more] = yield* mailsTo(w.pat)
      assert.lengthOf(more, 0)
      assert.strictEqual(few!.subject, "Your recovery codes are running out")
      assert.strictEqual(
        few!.text,
        "3 of your recovery codes are left: make new ones before you need them. If you used none, make new ones at once.\n",
      )
      yield* sql`update recovery_codes set used_at = '2026-01-02Z' where authenticator_id = ${id}::uuid and hash <> ${used}`
      const asked = yield* organization(w.pat)
      yield* sign(asked, "operator", w.oz)
      yield* run(addNotices(sql, { personId: w.pat, kind: "codes.none", subjectId: id }))
      yield* TestClock.adjust("2 hours")
      yield* settleAll
      const both = (yield* mailsTo(w.pat)).find((mail) => mail!.subject !== few!.subject)!
      assert.strictEqual(both.subject, "Your recovery codes are running out; An answer to what you asked for")
      assert.include(both.text, "The last of your recovery codes was used")
      assert.include(both.text, "was approved")
    })))

  it.effect("each end of each kind of request is told to its author, and a change of its own is not", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const portal = yield* project(w.fern)
      const [ari, bea, cas, dov] = yield* Effect.all([person(), person(), person(), person()])
      const approved = yield* askAccess(w.fern, portal, ari)
      yield* sign(approved, "sponsor", w.sam)
      assert.lengthOf(yield* noticesOf(approved.request_id), 0)
      yield* sign(approved, "administrator", w.ada)
      const declined = yield* askAccess(w.fern, portal, bea)
      yield* decline(declined, "sponsor", w.sam)
      const membership = yield* changeMembership(w, w.sam, dov, "member", "invited")
      yield* decline(membership, "administrator", w.ada)
      const invited = yield* enroll(w.fern, w.ada, "new@fern.example")
      yield* sign(invited, "sponsor", w.sam)
      yield* revokeInvitation(w.fern, invited.enrollment_id, w.sam)
      const own = yield* enroll(w.fern, w.ada, "newer@fern.example")
      yield* revokeInvitation(w.fern, own.enrollment_id, w.ada)
      const site = yield* website(w, w.pat)
      const replaced = yield* propose(site.project_id, w.pat)
      const launch = yield* propose(site.project_id, w.pat)
      const waiting = yield* askAccess(w.fern, site.project_id, cas)
      yield* withdraw(w.fern, site.project_id, w.ada, launch.project_version)

      const kinds = (id: string) => Effect.map(noticesOf(id), (rows) => rows.map(({ kind }) => kind))
      assert.deepStrictEqual(yield* kinds(approved.request_id), ["request.approved"])
      assert.deepStrictEqual(yield* kinds(declined.request_id), ["request.declined"])
      assert.deepStrictEqual(yield* kinds(membership.request_id), ["request.declined"])
      assert.deepStrictEqual(yield* kinds(invited.enrollment_id), ["request.approved", "request.revoked"])
      assert.deepStrictEqual(yield* kinds(own.enrollment_id), [])
      const { sql } = yield* Database
      const [registration] = yield* sql<{ id: string }>`
        select id::text as id from requests where project_id = ${site.project_id} and kind = 'website'`
      assert.deepStrictEqual(yield* kinds(registration!.id), ["request.superseded"])
      assert.deepStrictEqual(yield* kinds(replaced.launch_id), [])
      assert.deepStrictEqual(yield* kinds(launch.launch_id), ["request.superseded"])
      assert.deepStrictEqual(yield* kinds(waiting.request_id), ["request.declined"])
      yield* settleAll
      const [digest, ...more] = yield* mailsTo(w.ada)
      assert.lengthOf(more, 0)
      assert.strictEqual(digest!.subject, "2 answers to what you asked for")
      assert.include(digest!.text, `Your invitation of a member ${opened} was approved.`)
      assert.include(digest!.text, `Your invitation of a member ${opened} was revoked.`)
    })))

  it.effect("a request that expires is told once its timer has recorded it", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const asked = yield* askAccess(w.fern, yield* project(w.fern), w.pat)
      yield* TestClock.adjust(14 * day - 1)
      yield* fire
      yield* settleAll
      assert.lengthOf(yield* mailsTo(w.pat), 0)
      yield* TestClock.adjust(1)
      yield* fire
      yield* settleAll
      const [mail] = yield* mailsTo(w.pat)
      assert.include(mail!.text, `Your request for Access ${opened} expired without a decision.`)
      assert.deepStrictEqual(yield* noticesOf(asked.request_id), [
        { person_id: w.pat, kind: "request.expired", told: true },
      ])
    })))

  it.effect("a proposer hears of a review's approval, its revocation by another, and its expiry", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const reviews = yield* AccessReviews
      const portal = yield* project(w.fern)
      const proposed = Effect.fnUntraced(function* () {
        const access_id = yield* access(w.fern, portal, yield* person())
        return yield* decided(reviews.propose({
          access_id,
          access_version: 1,
          reason,
          personId: w.sam,
          institutionId: w.fern,
        }))
      })
      const on = (reviewId: typeof first.review_id, personId: typeof w.sam) => ({
        reviewId,
        personId,
        institutionId: w.fern,
        reason,
        stepUp: Effect.void,
      })
      const [first, second, third, fourth] = yield* Effect.all([proposed(), proposed(), proposed(), proposed()])
      yield* decided(reviews.approve(on(first.review_id, w.ada)))
      yield* decided(reviews.revoke(on(second.review_id, w.ada)))
      yield* decided(reviews.revoke(on(third.review_id, w.sam)))
      yield* settleAll
      const [mail] = yield* mailsTo(w.sam)
      assert.strictEqual(mail!.subject, "2 answers to what you asked for")
      assert.include(mail!.text, `Your review of an Access ${opened} was approved.`)
      assert.include(mail!.text, `Your review of an Access ${opened} was revoked.`)

      yield* TestClock.adjust(7 * day - 1)
      assert.strictEqual(yield* settleAll, 0)
      yield* TestClock.adjust(1)
      yield* settleAll
      const after = yield* mailsTo(w.sam)
      assert.lengthOf(after, 2)
      assert.strictEqual(after[1]!.subject, "Your review of an Access expired without an approval")
      const told = yield* Effect.forEach([first, second, third, fourth], ({ review_id }) => noticesOf(review_id))
      assert.deepStrictEqual(told.map((rows) => rows.map(({ kind }) => kind)), [
        ["review.approved"],
        ["review.revoked"],
        [],
        ["review.expired"],
      ])
    })))

  it.effect("a person gets one mail an hour with all that came, each at once, or none, as it wants", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [quick, silent] = [yield* person(), yield* person()]
      yield* wants(quick, "immediately")
      yield* wants(silent, "off")
      const refuse = Effect.fnUntraced(function* () {
        const portal = yield* project(w.fern)
        for (const who of [w.pat, quick, silent]) {
          yield* decline(yield* askAccess(w.fern, portal, who), "sponsor", w.sam)
        }
        yield* settleAll
        return yield* Effect.forEach([w.pat, quick, silent], (who) => Effect.map(mailsTo(who), ({ length }) => length))
      })
      assert.deepStrictEqual(yield* refuse(), [1, 1, 0])
      yield* TestClock.adjust(60_000)
      assert.deepStrictEqual(yield* refuse(), [1, 2, 0])
      assert.deepStrictEqual(yield* refuse(), [1, 3, 0])
      yield* TestClock.adjust(hour - 60_001)
      yield* settleAll
      assert.lengthOf(yield* mailsTo(w.pat), 1)
      yield* TestClock.adjust(1)
      yield* settleAll
      const mails = yield* mailsTo(w.pat)
      assert.lengthOf(mails, 2)
      assert.strictEqual(mails[1]!.subject, "2 answers to what you asked for")
      yield* wants(silent, "immediately")
      assert.strictEqual(yield* settleAll, 0)
    })))

  it.effect("without a verified address, or once disabled, a person is not mailed", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [unverified, suspended] = [yield* person({ email_verified: false }), yield* person()]
      for (const who of [unverified, suspended]) {
        yield* decline(yield* askAccess(w.fern, yield* project(w.fern), who), "sponsor", w.sam)
      }
      yield* person({ id: suspended, version: 2, status: "suspended" })
      yield* settleAll
      assert.deepStrictEqual([yield* mailsTo(unverified), yield* mailsTo(suspended)], [[], []])
    })))

  it.effect("a mail that could not be made is made later, and holds up no other person's", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const notices = yield* NoticeMails
      yield* decline(yield* askAccess(w.fern, yield* project(w.fern), w.pat), "sponsor", w.sam)
      const cut = yield* Effect.exit(run(Effect.andThen(notices.settle(w.pat), Effect.die("cut off"))))
      assert.isTrue(Exit.isFailure(cut))
      assert.lengthOf(yield* mailsTo(w.pat), 0)
      yield* notices.putOff(w.pat)
      assert.strictEqual(yield* settleAll, 0)
      yield* TestClock.adjust(60_000)
      yield* Effect.all([run(notices.settle(w.pat)), run(notices.settle(w.pat))], { concurrency: "unbounded" })
      assert.lengthOf(yield* mailsTo(w.pat), 1)
      const { sql } = yield* Database
      const count = Effect.map(
        sql`select 1 from person_notices where person_id = ${w.pat}`,
        ({ length }) => length,
      )
      yield* TestClock.adjust(399 * day)
      yield* pruneNotices
      assert.strictEqual(yield* count, 1)
      yield* TestClock.adjust(2 * day)
      yield* pruneNotices
      assert.strictEqual(yield* count, 0)
    })))
})
