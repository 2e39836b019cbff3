import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { TestClock } from "effect/testing"
import type { PersonId, ServiceGrantId } from "../../../schemas/BrandedIds.ts"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { Campaigns } from "../../../services/decisions/Campaigns.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { addMissingCalls } from "../../../services/requests/SignatureCalls.ts"
import { day, hour, reason, start, timed } from "../../support/Fixtures.ts"
import { access, member, owner, person, project } from "../../support/TestIdentity.ts"
import { callSigners, mailsTo, noticeServices, settleAll, wants } from "./NoticeFixture.ts"
import { askAccess, decided, fixture, organization, sign } from "./RequestFixture.ts"

const turn = Effect.andThen(callSigners, settleAll)

const subjectsTo = (personId: PersonId) =>
  Effect.map(mailsTo(personId), (mails) => mails.map((mail) => mail?.subject ?? null))

const one = "A decision waits for you"

layer(Layer.provideMerge(Campaigns.layer, noticeServices), { excludeTestServices: true, timeout: "2 minutes" })(
  "notices for signers",
  (it) => {
    it.effect("who may sign hears once that a request waits, and again two days before it expires", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const { policy_review } = yield* askAccess(w.fern, yield* project(w.fern), w.pat)
        yield* turn
        yield* turn
        const [mail, ...more] = yield* mailsTo(w.ada)
        assert.lengthOf(more, 0)
        assert.strictEqual(mail!.subject, one)
        assert.strictEqual(
          mail!.text,
          "A request for Access in Fern waits for your signature, until 2026-03-15 12:00 UTC.\n\n" +
            `Look at what waits for you:\nhttps://bailiwick.example/decide/${policy_review!.review_id}\n`,
        )
        assert.deepStrictEqual(yield* Effect.forEach([w.sam, w.abe, w.pat, w.oz], subjectsTo), [[one], [one], [], []])
        yield* TestClock.adjust(12 * day - 1)
        yield* turn
        assert.lengthOf(yield* mailsTo(w.ada), 1)
        yield* TestClock.adjust(1)
        yield* turn
        yield* turn
        const [, last, ...none] = yield* mailsTo(w.ada)
        assert.lengthOf(none, 0)
        assert.include(last!.text, "A request for Access in Fern still waits for your signature")
        yield* TestClock.adjust(2 * day)
        yield* turn
        assert.deepStrictEqual(yield* subjectsTo(w.ada), [null, null])
        const { sql } = yield* Database
        assert.lengthOf(yield* sql`select from signature_calls`, 0)
      })))

    it.effect("many reviews make one mail an hour, which leaves out what was decided before it is sent", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const ask = Effect.gen(function* () {
          const asked = yield* askAccess(w.fern, yield* project(w.fern), yield* person())
          yield* turn
          return asked
        })
        yield* ask
        const [second] = yield* Effect.all([ask, ask, ask])
        assert.deepStrictEqual(yield* subjectsTo(w.ada), [one])
        yield* TestClock.adjust(hour)
        yield* turn
        assert.deepStrictEqual(yield* subjectsTo(w.ada), [one, "3 decisions wait for you"])
        yield* sign(second, "administrator", w.ada)
        assert.deepStrictEqual(yield* subjectsTo(w.ada), [one, "2 decisions wait for you"])
      })))

    it.effect("only those hear whose signature would count: as the role, the independence and the stand-in rules say", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const late = yield* person()
        yield* askAccess(w.fern, yield* project(w.fern), w.ada)
        const founding = yield* organization(w.oz)
        const invited = yield* person()
        yield* member(w.fern, invited, "administrator", { accepted_at: null, state: "invited" })
        yield* turn
        // ada is an author and oz another; the other operator alone may sign for a new institution.
        assert.deepStrictEqual(
          yield* Effect.forEach([w.ada, w.abe, w.oz, w.ola, invited, late], subjectsTo),
          [[], [one], [], [one], [], []],
        )
        yield* member(w.fern, late, "administrator")
        yield* TestClock.adjust(hour)
        yield* turn
        assert.deepStrictEqual(yield* subjectsTo(late), [one])
        yield* sign(founding, "operator", w.ola)
        assert.deepStrictEqual(yield* subjectsTo(w.ola), [null])
      })))

    it.effect("administrators hear once that a service grant waits, and its proposer what others made of it", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const { sql } = yield* Database
        const grants = yield* ServiceGrants
        const [portal, olga] = [yield* project(w.fern), yield* person()]
        yield* owner(portal, olga)
        const propose = run(grants.propose({
          service_id: "backend",
          capabilities: ["events.read"],
          environment: "production",
          reason,
          personId: olga,
          projectId: portal,
        }))
        const revoke = (personId: PersonId, grantId: ServiceGrantId) =>
          run(grants.revoke({ personId, projectId: portal, grantId, reason }))
        const first = yield* propose
        yield* turn
        yield* TestClock.adjust(2 * day)
        yield* turn
        assert.deepStrictEqual(yield* Effect.forEach([w.ada, w.abe, w.sam, olga, w.oz], subjectsTo), [
          ...[[one], [one], [], [], []],
        ])
        const [mail] = yield* mailsTo(w.ada)
        assert.strictEqual(
          mail!.text,
          "A service grant in Fern waits for your signature.\n\n" +
            `Look at the project:\nhttps://bailiwick.example/projects/${portal}\n`,
        )
        const approval = { personId: w.ada, projectId: portal, grantId: first.id, reason, expectedVersion: 1 }
        yield* run(grants.approve({ ...approval, stepUp: Effect.void }))
        yield* turn
        assert.deepStrictEqual(yield* Effect.forEach([w.ada, w.abe], subjectsTo), [[null], [null]])
        yield* revoke(w.abe, first.id)
        yield* TestClock.adjust(hour)
        yield* turn
        const became = "Your proposal of a service grant"
        assert.deepStrictEqual(yield* subjectsTo(olga), [`${became} was approved`, `${became} was revoked`])
        const second = yield* propose
        yield* revoke(olga, second.id)
        yield* TestClock.adjust(day)
        yield* turn
        assert.lengthOf(yield* subjectsTo(olga), 2, "what the person itself did is not told")
        assert.deepStrictEqual(yield* subjectsTo(w.ada), [null])
        assert.lengthOf(yield* sql`select from signature_calls where kind = 'service'`, 0)
      })))

    it.effect("the signers of a review that an older version opened are called, and none twice", () =>
      timed(Effect.gen(function* () {
        const { owner } = yield* Database
        const w = yield* fixture
        yield* askAccess(w.fern, yield* project(w.fern), w.pat)
        yield* owner`delete from signature_calls`
        yield* turn
        assert.deepStrictEqual(yield* subjectsTo(w.ada), [])
        yield* addMissingCalls
        yield* addMissingCalls
        yield* turn
        assert.deepStrictEqual(yield* subjectsTo(w.ada), [one])
      })))

    it.effect("a signer without a verified address gets the notice once the next call finds one", () =>
      timed(Effect.gen(function* () {
        const { owner } = yield* Database
        const w = yield* fixture
        const verified = (is: boolean) => owner`update people set email_verified = ${is} where id = ${w.ada}`
        yield* verified(false)
        yield* askAccess(w.fern, yield* project(w.fern), w.pat)
        yield* turn
        assert.deepStrictEqual(yield* subjectsTo(w.ada), [])
        yield* verified(true)
        yield* TestClock.adjust(hour)
        yield* turn
        assert.deepStrictEqual(yield* subjectsTo(w.ada), [one])
      })))

    it.effect("administrators hear of a proposed review of an Access, the proposer does not", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const reviews = yield* AccessReviews
        const both = yield* person()
        yield* member(w.fern, both, "sponsor")
        yield* member(w.fern, both, "administrator")
        const access_id = yield* access(w.fern, yield* project(w.fern), w.pat)
        const { review_id } = yield* decided(reviews.propose({
          access_id,
          access_version: 1,
          reason,
          personId: both,
          institutionId: w.fern,
        }))
        yield* turn
        const [mail] = yield* mailsTo(w.ada)
        assert.include(
          mail!.text,
          "A review of an Access in Fern waits for your signature, until 2026-03-08 12:00 UTC.",
        )
        assert.deepStrictEqual(yield* Effect.forEach([both, w.sam, w.abe], subjectsTo), [[], [], [one]])
        yield* decided(reviews.approve({
          reviewId: review_id,
          personId: w.ada,
          institutionId: w.fern,
          reason,
          stepUp: Effect.void,
        }))
        assert.deepStrictEqual(yield* subjectsTo(w.abe), [null])
      })))

    it.effect("owners and delegates hear once that a campaign waits for them, and again two days before its deadline", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const { sql } = yield* Database
        const campaigns = yield* Campaigns
        const [portal, garden] = [yield* project(w.fern), yield* project(w.fern)]
        const [ona, oki, mo, silent] = yield* Effect.all([person(), person(), person(), person()])
        for (const [of, by] of [[portal, ona], [portal, silent], [garden, oki]] as const) yield* owner(of, by)
        yield* member(w.fern, mo, "member")
        yield* wants(silent, "off")
        yield* access(w.fern, portal, yield* person())
        // The only owner's own Access has no reviewer.
        yield* access(w.fern, garden, oki)
        const deadline = new Date(start + 10 * day).toISOString()
        const by = { personId: w.ada, institutionId: w.fern, reason }
        const { campaign_id: campaignId } = yield* run(campaigns.open({ ...by, name: "Spring", deadline }))
        yield* turn
        yield* turn
        const [mail] = yield* mailsTo(ona)
        assert.strictEqual(
          mail!.text,
          "A campaign over Access in Fern waits for your answers, until 2026-03-11 12:00 UTC.\n\n" +
            "Look at what waits for you:\nhttps://bailiwick.example/decide\n",
        )
        assert.notInclude(mail!.text, "Spring")
        const heard = Effect.forEach([ona, oki, mo, silent, w.ada, w.sam], subjectsTo)
        assert.deepStrictEqual(yield* heard, [[one], [], [], [], [], []])

        const { items } = yield* campaigns.items(w.sam, w.fern, campaignId, { limit: 10, afterId: null })
        const own = items.find(({ person_id }) => person_id === oki)!
        yield* run(campaigns.delegate({ ...by, campaignId, itemId: own.item_id, delegate: mo }))
        yield* TestClock.adjust(8 * day - 1)
        yield* turn
        assert.deepStrictEqual(yield* heard, [[one], [], [one], [], [], []])
        yield* run(campaigns.answer({ ...by, personId: mo, campaignId, itemId: own.item_id, answer: "confirm" }))
        yield* TestClock.adjust(hour)
        yield* turn
        yield* turn
        // Who has answered everything is not told again, and a mail that was not sent yet says nothing.
        assert.deepStrictEqual(yield* heard, [[one, one], [], [null], [], [], []])
        assert.include((yield* mailsTo(ona))[1]!.text, "A campaign over Access in Fern still waits for your answers")
        yield* run(campaigns.close({ ...by, campaignId }))
        assert.deepStrictEqual(yield* subjectsTo(ona), [null, null])
        yield* TestClock.adjust(day)
        yield* turn
        assert.lengthOf(yield* sql`select from signature_calls where review_id = ${campaignId}::uuid`, 0)
      })))

    it.effect("who was told that a campaign closes is told again before another end, at whatever moment the deadline moves", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const { sql } = yield* Database
        const campaigns = yield* Campaigns
        const [portal, ona] = [yield* project(w.fern), yield* person()]
        yield* owner(portal, ona)
        yield* access(w.fern, portal, yield* person())
        const iso = (days: number) => new Date(start + days * day).toISOString()
        const by = { personId: w.ada, institutionId: w.fern, reason }
        const { campaign_id: campaignId } = yield* run(campaigns.open({ ...by, name: "Spring", deadline: iso(10) }))
        const move = (days: number) => campaigns.reschedule({ ...by, campaignId, deadline: iso(days) })
        yield* turn
        yield* TestClock.adjust(8 * day)
        yield* turn
        assert.deepStrictEqual(yield* subjectsTo(ona), [one, one])

        // A call that another program deleted is made anew.
        yield* sql`delete from signature_calls where review_id = ${campaignId}::uuid`
        yield* run(move(20))
        yield* turn
        // What was not sent yet says nothing of the end of before.
        assert.deepStrictEqual(yield* subjectsTo(ona), [one, null])
        yield* TestClock.adjust(10 * day)
        yield* turn
        yield* turn
        assert.deepStrictEqual(yield* subjectsTo(ona), [one, null, one])
        assert.include((yield* mailsTo(ona))[2]!.text, "still waits for your answers, until 2026-03-21 12:00 UTC")

        // A call that has begun by the deadline of before neither tells of it nor puts the next call off.
        yield* TestClock.adjust(day)
        const [holds, released] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const moving = yield* Effect.forkChild(run(Effect.gen(function* () {
          yield* sql`lock table person_notices in exclusive mode`
          yield* Deferred.succeed(holds, undefined)
          yield* Deferred.await(released)
          return yield* move(40)
        })))
        yield* Deferred.await(holds)
        const calling = yield* Effect.forkChild(callSigners)
        yield* sql`
          select from pg_locks where not granted and relation = 'person_notices'::regclass
            and database = (select oid from pg_database where datname = current_database())`.pipe(
          Effect.repeat({ until: ({ length }) => length === 1, schedule: Schedule.spaced("10 millis") }),
          TestClock.withLive,
        )
        yield* Deferred.succeed(released, undefined)
        yield* Fiber.join(moving)
        yield* Fiber.join(calling)
        const kept = yield* sql`
          select from person_notices where subject_id = ${campaignId}::uuid and kind = 'signature.closing'`
        assert.lengthOf(kept, 0)
        const [call] = yield* sql<{ due_at: Date }>`
          select due_at from signature_calls where review_id = ${campaignId}::uuid`
        assert.deepStrictEqual(call!.due_at, new Date(start + 19 * day))
      })))
  },
)
