/** Access with an end: asked for, reviewed with it, brought forward, moved to a later time by a review, and over. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { AccessId, type PersonId } from "../../../schemas/BrandedIds.ts"
import { AccessEnds } from "../../../services/access/AccessEnds.ts"
import { AccessVersions } from "../../../services/access/AccessVersions.ts"
import { Institutions } from "../../../services/access/Institutions.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { access, person, project, tell } from "../../support/TestIdentity.ts"
import {
  askAccess,
  codeOf,
  decided,
  fire,
  type Fixture,
  fixture,
  requestRow,
  services,
  sign,
  told,
} from "../decisions/RequestFixture.ts"

const iso = (millis: number) => new Date(millis).toISOString()

const asking = Effect.fnUntraced(
  function* ({ fern, pat }: Fixture, project_id: Parameters<typeof askAccess>[1], days: number) {
    const { access } = yield* Requests
    const ends_at = iso(start + days * day)
    return yield* decided(access({ institution_id: fern, project_id, personId: pat, ends_at, reason }))
  },
)

/** Signed by both roles; the Access. */
const granted = Effect.fnUntraced(function* (w: Fixture, asked: Effect.Success<ReturnType<typeof asking>>) {
  yield* sign(asked, "administrator", w.ada)
  yield* sign(asked, "sponsor", w.sam)
  return AccessId.make((yield* requestRow(asked.request_id)).result_id!)
})

const shorten = (w: Fixture, accessId: AccessId, days: number, by: PersonId = w.ada, expected_version = 1) =>
  Effect.flatMap(AccessEnds, (ends) =>
    run(ends.shorten({
      personId: by,
      institutionId: w.fern,
      accessId,
      expected_version,
      ends_at: iso(start + days * day),
      reason,
    })))

const explained = (w: Fixture, accessId: AccessId) =>
  Effect.flatMap(Institutions, ({ explain }) => explain(w.sam, w.fern, accessId))

layer(Institutions.layer.pipe(Layer.provideMerge(services)), { excludeTestServices: true, timeout: "2 minutes" })(
  "AccessEnds",
  (it) => {
    it.effect("an Access ends when it was asked to, and its product hears of it as of a revocation", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const portal = yield* project(w.fern)
        const asked = yield* asking(w, portal, 10)
        assert.strictEqual(asked.ends_at, iso(start + 10 * day))
        const { list } = yield* PolicyDecisions
        const { items } = yield* list({ personId: w.ada, state: "open", afterId: null, limit: 100 })
        const shown = items.find(({ request_id }) => request_id === asked.request_id)
        assert.deepStrictEqual(shown?.asked, { ends_at: iso(start + 10 * day) })
        const accessId = yield* granted(w, asked)
        const before = yield* explained(w, accessId)
        assert.strictEqual(before.ends_at, iso(start + 10 * day))
        assert.deepInclude(before.ends[0], {
          made_by: w.pat,
          approved_by: [w.ada, w.sam],
          request_id: asked.request_id,
        })
        const listed = (at?: number) =>
          Effect.flatMap(Institutions, ({ access }) => access(w.sam, w.fern, { limit: 100, afterId: null, at }))
        const own = ({ items }: Effect.Success<ReturnType<typeof listed>>) =>
          items.find(({ access_id }) => access_id === accessId)
        assert.deepInclude(own(yield* listed()), { state: "active", ends_at: iso(start + 10 * day) })

        yield* TestClock.adjust(10 * day - 1)
        yield* fire
        assert.strictEqual((yield* explained(w, accessId)).versions.length, 1)
        yield* TestClock.adjust(1)
        assert.strictEqual(yield* fire, 1)
        assert.strictEqual(yield* fire, 0)
        const after = yield* explained(w, accessId)
        assert.deepStrictEqual(after.effective.blocked_by, ["access_revoked"])
        assert.strictEqual(after.ends_at, null)
        assert.deepInclude(after.versions[0], { access_version: 2, state: "revoked", at_its_end: true, made_by: null })
        assert.isFalse(after.versions[1]!.at_its_end)
        assert.deepStrictEqual((yield* told(portal)).slice(-2), ["access-revoked", "session-revoked"])
        const { sql } = yield* Database
        const [event] = yield* sql<{ code: string }>`
          select payload #>> '{reason_admin,en}' as code from lifecycle_events
          where project_id = ${portal} and kind = 'access-revoked'`
        assert.strictEqual(event!.code, "ACCESS_REVOKED_AT_ITS_END")
        assert.deepInclude(own(yield* listed(start + day)), { state: "active", ends_at: iso(start + 10 * day) })
        // The directory cannot bring it back by repeating itself; a new request grants a new Access.
        const again = yield* askAccess(w.fern, portal, w.pat)
        assert.notStrictEqual(yield* granted(w, again), accessId)
      })))

    it.effect("an administrator brings the end forward, of any Access, and nobody makes it later without a review", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const portal = yield* project(w.fern)
        const accessId = yield* granted(w, yield* asking(w, portal, 10))
        assert.deepStrictEqual(yield* shorten(w, accessId, 5), {
          access_id: accessId,
          access_version: 1,
          ends_at: iso(start + 5 * day),
        })
        assert.strictEqual(yield* codeOf(shorten(w, accessId, 5)), "invalid_state")
        assert.strictEqual(yield* codeOf(shorten(w, accessId, 7)), "invalid_state")
        assert.strictEqual(yield* codeOf(shorten(w, accessId, 0)), "HTTPValidationError")
        assert.strictEqual(yield* codeOf(shorten(w, accessId, 3, w.ada, 2)), "version_conflict")
        assert.strictEqual(yield* codeOf(shorten(w, accessId, 3, w.sam)), "role_required")
        assert.strictEqual(yield* codeOf(shorten(w, accessId, 3, w.pat)), "not_found")
        assert.strictEqual(yield* codeOf(shorten(w, AccessId.make("nothing"), 3)), "not_found")
        const { ends, ends_at } = yield* explained(w, accessId)
        assert.strictEqual(ends_at, iso(start + 5 * day))
        assert.deepStrictEqual(
          ends.map(({ access_version, made_by, request_id }) => [made_by, request_id === null, access_version]),
          [
            [w.ada, true, null],
            [w.pat, false, null],
          ],
        )
        // One that the directory granted has no end, until it is given one here.
        const user = yield* person()
        const fed = yield* access(w.fern, portal, user)
        yield* shorten(w, fed, 2)
        yield* TestClock.adjust(2 * day)
        assert.strictEqual(yield* fire, 1)
        assert.deepStrictEqual((yield* explained(w, fed)).effective.blocked_by, ["access_revoked"])
        assert.strictEqual(yield* codeOf(shorten(w, fed, 3)), "access_not_active")
        yield* tell("access", {
          id: fed,
          version: 2,
          institution_id: w.fern,
          project_id: portal,
          person_id: user,
          role: "user",
          state: "active",
        })
        assert.deepStrictEqual((yield* explained(w, fed)).effective.blocked_by, ["access_revoked"])
        yield* TestClock.adjust(3 * day)
        assert.strictEqual(yield* fire, 1)
        assert.isTrue((yield* explained(w, accessId)).versions[0]!.at_its_end)
      })))

    it.effect("the end comes later by a request that is signed anew, which makes no new version", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const portal = yield* project(w.fern)
        const accessId = yield* granted(w, yield* asking(w, portal, 10))
        assert.strictEqual(yield* codeOf(asking(w, portal, 10)), "invalid_state")
        assert.strictEqual(yield* codeOf(asking(w, portal, 0)), "HTTPValidationError")
        const events = (yield* told(portal)).length
        const longer = yield* asking(w, portal, 20)
        assert.strictEqual((yield* explained(w, accessId)).ends_at, iso(start + 10 * day))
        assert.strictEqual(yield* granted(w, longer), accessId)
        const said = yield* explained(w, accessId)
        assert.strictEqual(said.ends_at, iso(start + 20 * day))
        assert.lengthOf(said.versions, 1)
        assert.lengthOf(yield* told(portal), events)
        yield* TestClock.adjust(10 * day)
        yield* fire
        assert.deepStrictEqual((yield* explained(w, accessId)).effective.blocked_by, [])
        // Without an end: for good.
        assert.strictEqual(yield* granted(w, yield* askAccess(w.fern, portal, w.pat)), accessId)
        assert.strictEqual((yield* explained(w, accessId)).ends_at, null)
        yield* TestClock.adjust(100 * day)
        yield* fire
        assert.deepStrictEqual((yield* explained(w, accessId)).effective.blocked_by, [])
        assert.strictEqual(yield* codeOf(askAccess(w.fern, portal, w.pat)), "invalid_state")
      })))

    it.effect("an Access that the directory moves has no end of before", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const [portal, other, user] = [yield* project(w.fern), yield* project(w.fern), yield* person()]
        const accessId = yield* access(w.fern, portal, user)
        yield* shorten(w, accessId, 5)
        yield* TestClock.adjust(day)
        const line = { id: accessId, institution_id: w.fern, project_id: other, person_id: user, role: "user" }
        yield* tell("access", { ...line, version: 2, state: "active" })
        assert.strictEqual((yield* explained(w, accessId)).ends_at, null)
        yield* TestClock.adjust(5 * day)
        yield* fire
        assert.deepStrictEqual((yield* explained(w, accessId)).effective.blocked_by, [])
        const { access: listed } = yield* Institutions
        const { items } = yield* listed(w.sam, w.fern, { limit: 100, afterId: null, at: start + 2 * day })
        assert.deepInclude(items.find(({ access_id }) => access_id === accessId), { project_id: other, ends_at: null })
      })))

    it.effect("an Access that the directory renames to the same, merged person keeps its end", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const { sql } = yield* Database
        const { access: listed } = yield* Institutions
        const [portal, one, two] = [yield* project(w.fern), yield* person(), yield* person()]
        const line = { institution_id: w.fern, project_id: portal, role: "user", state: "active", version: 2 }
        const [fed, decidedHere, stranger] = yield* Effect.all([1, 2, 3].map(() => access(w.fern, portal, one)))
        for (const id of [fed!, decidedHere!, stranger!]) yield* shorten(w, id, 5)
        yield* TestClock.adjust(day)
        yield* tell("access", { ...line, id: stranger!, person_id: two })
        yield* sql`update people set merged_into = ${two} where id = ${one}`
        yield* tell("access", { ...line, id: fed!, person_id: two })
        const { record } = yield* AccessVersions
        yield* run(record({
          accessId: decidedHere!,
          institutionId: w.fern,
          projectId: portal,
          personId: two,
          role: "user",
          state: "active",
          madeBy: w.ada,
          approvedBy: [w.sam],
        }))
        for (const id of [fed!, decidedHere!]) {
          assert.strictEqual((yield* explained(w, id)).ends_at, iso(start + 5 * day))
          const { items } = yield* listed(w.sam, w.fern, { limit: 100, afterId: null, at: start + day })
          const then = items.find(({ access_id }) => access_id === id)
          assert.deepInclude(then, { access_version: 3, ends_at: iso(start + 5 * day) })
        }
        assert.strictEqual((yield* explained(w, stranger!)).ends_at, null, "another person's end is not this one's")
        yield* TestClock.adjust(4 * day)
        yield* fire
        assert.deepStrictEqual((yield* explained(w, stranger!)).effective.blocked_by, [])
        for (const id of [fed!, decidedHere!]) {
          assert.deepInclude((yield* explained(w, id)).versions[0], { state: "revoked", at_its_end: true })
        }
      })))

    it.effect("a request is over with the end that it asks for", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const asked = yield* asking(w, yield* project(w.fern), 1)
        assert.strictEqual(asked.expires_at, asked.ends_at)
        yield* sign(asked, "administrator", w.ada)
        yield* TestClock.adjust(day)
        assert.strictEqual(yield* codeOf(sign(asked, "sponsor", w.sam)), "invalid_state")
        yield* fire
        assert.strictEqual((yield* requestRow(asked.request_id)).state, "expired")
      })))
  },
)
