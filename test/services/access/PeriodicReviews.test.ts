/** Overdue reviews of Access, and confirmations that it is still needed. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { AccessId, type PersonId } from "../../../schemas/BrandedIds.ts"
import { AccessConfirmations } from "../../../services/access/AccessConfirmations.ts"
import { OverdueReviews } from "../../../services/access/OverdueReviews.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { access, institution, member, owner, person, tell } from "../../support/TestIdentity.ts"
import { codeOf } from "../decisions/RequestFixture.ts"
import { approve, type Fixture, fixture as reviewed, on, propose, revoke, services } from "./ReviewFixture.ts"

const iso = (millis: number) => new Date(millis).toISOString()

const fixture = Effect.gen(function* () {
  const w = yield* reviewed
  const [ona, oz] = yield* Effect.all([person(), person({ operator: true })])
  yield* owner(w.portal, ona)
  return { ...w, ona, oz }
})

const overdue = ({ fern, sam }: Fixture, by: PersonId = sam, page: { limit?: number; afterId?: string } = {}) =>
  Effect.flatMap(OverdueReviews, ({ list }) => list(by, fern, { limit: 100, afterId: null, ...page }))

const confirm = ({ accessId, fern }: Fixture, personId: PersonId, expected_version = 1, id = accessId) =>
  Effect.flatMap(
    AccessConfirmations,
    (confirmations) =>
      run(confirmations.confirm({ personId, institutionId: fern, accessId: id, expected_version, reason })),
  )

const there = Layer.mergeAll(AccessConfirmations.layer, OverdueReviews.layer).pipe(Layer.provideMerge(services))

layer(there, { excludeTestServices: true, timeout: "2 minutes" })("periodic reviews", (it) => {
  it.effect("an Access is due a year after its grant, an approved review or a confirmation, whichever is last", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { accessId, ada, fern, ona, pat, sam } = w
      yield* TestClock.adjust(365 * day - 1)
      assert.deepStrictEqual((yield* overdue(w)).items, [])
      yield* TestClock.adjust(1)
      const [due] = (yield* overdue(w)).items
      assert.deepInclude(due, {
        access_id: accessId,
        access_version: 1,
        person_id: pat,
        due_at: iso(start + 365 * day),
      })
      assert.deepStrictEqual(due!.last_review, { kind: "grant", at: iso(start), person_id: null })

      const confirmed = yield* confirm(w, ona)
      assert.deepInclude(confirmed, {
        access_id: accessId,
        access_version: 1,
        confirmed_by: ona,
        due_at: iso(start + 730 * day),
      })
      assert.deepStrictEqual((yield* overdue(w)).items, [])
      yield* TestClock.adjust(365 * day)
      const [again] = (yield* overdue(w)).items
      assert.deepStrictEqual(again!.last_review, { kind: "confirmation", at: iso(start + 365 * day), person_id: ona })

      // A proposal is no review yet; an approval is; one that was revoked is none any more.
      const { review_id } = yield* propose(w)
      assert.lengthOf((yield* overdue(w)).items, 1)
      yield* approve(on(w, ada, review_id))
      assert.deepStrictEqual((yield* overdue(w)).items, [])
      yield* revoke(on(w, ada, review_id))
      assert.lengthOf((yield* overdue(w)).items, 1)

      // A new version was granted anew, and what was said of the one before does not count for it.
      yield* tell("access", {
        id: accessId,
        version: 2,
        institution_id: fern,
        project_id: w.portal,
        person_id: pat,
        role: "editor",
        state: "active",
      })
      assert.deepStrictEqual((yield* overdue(w)).items, [])
      yield* TestClock.adjust(365 * day)
      assert.deepInclude((yield* overdue(w)).items[0], { access_version: 2, role: "editor" })
      yield* tell("access", { id: accessId, version: 3, removed: true })
      assert.deepStrictEqual((yield* overdue(w, sam)).items, [])
    })))

  it.effect("of a person's confirmations of one version on a day the first is kept, and answered again", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { sql } = yield* Database
      const kept = sql<{ confirmed_by: PersonId }>`
        select confirmed_by from access_confirmations where access_id = ${w.accessId} order by id`
      const ids = yield* Effect.all(Array.from({ length: 4 }, () => confirm(w, w.ona)), { concurrency: 4 })
      assert.strictEqual(new Set(ids.map(({ confirmation_id }) => confirmation_id)).size, 1)
      yield* TestClock.adjust(12 * 3_600_000 - 1)
      assert.deepStrictEqual(yield* confirm(w, w.ona), ids[0]!)
      yield* confirm(w, w.sam)
      assert.deepStrictEqual((yield* kept).map(({ confirmed_by }) => confirmed_by), [w.ona, w.sam])
      const audited = yield* sql`
        select from audit_records where action = 'access.confirmed' and subject = ${`access:${w.accessId}`}`
      assert.lengthOf(audited, 2)
      // It is midnight, in UTC.
      yield* TestClock.adjust(1)
      yield* confirm(w, w.ona)
      assert.lengthOf(yield* kept, 3)
    })))

  it.effect("pages end where an institution has nothing more to look at", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ids = [w.accessId]
      for (let n = 0; n < 4; n++) ids.push(yield* access(w.fern, w.portal, yield* person()))
      yield* access(yield* institution(), w.portal, yield* person())
      ids.sort()
      yield* TestClock.adjust(365 * day)
      yield* confirm(w, w.ona, 1, ids[3]!)
      const pages: Array<ReadonlyArray<string>> = []
      let afterId: string | null = ""
      while (afterId !== null) {
        const page: Effect.Success<ReturnType<typeof overdue>> = yield* overdue(w, w.oz, { limit: 2, afterId })
        pages.push(page.items.map(({ access_id }) => access_id))
        afterId = page.next_after_id
      }
      assert.deepStrictEqual(pages, [ids.slice(0, 2), [ids[2]!, ids[4]!], []])
    })))

  it.effect("owners, Sponsors and administrators confirm exactly one version, of another person, and it is kept", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { accessId, ada, fern, ona, oz, pat, portal, sam } = w
      const [mo, stranger] = yield* Effect.all([person(), person()])
      yield* member(fern, mo, "member")
      const elsewhere = yield* reviewed
      assert.strictEqual(yield* codeOf(confirm(w, mo)), "role_required")
      assert.strictEqual(yield* codeOf(confirm(w, stranger)), "not_found")
      assert.strictEqual(yield* codeOf(confirm(w, oz)), "role_required")
      assert.strictEqual(yield* codeOf(confirm(w, elsewhere.ada)), "not_found")
      // An Access of another institution, and one that is not: a member without a role learns of neither.
      assert.strictEqual(yield* codeOf(confirm(w, ada, 1, elsewhere.accessId)), "not_found")
      assert.strictEqual(yield* codeOf(confirm(w, mo, 1, AccessId.make("nothing"))), "role_required")
      assert.strictEqual(yield* codeOf(confirm(w, ada, 2)), "version_conflict")
      const own = yield* access(fern, portal, ona)
      assert.strictEqual(yield* codeOf(confirm(w, ona, 1, own)), "four_eyes_required")
      for (const by of [ona, sam, ada]) yield* confirm(w, by)

      const { sql } = yield* Database
      const kept = yield* sql<{ confirmed_by: PersonId }>`
        select confirmed_by from access_confirmations where access_id = ${accessId} order by id`
      assert.deepStrictEqual(kept.map(({ confirmed_by }) => confirmed_by), [ona, sam, ada])
      const change = sql`update access_confirmations set reason = 'another' where access_id = ${accessId}`
      assert.strictEqual((yield* Effect.flip(change))._tag, "SqlError")
      const audited = yield* sql`
        select from audit_records where action = 'access.confirmed' and subject = ${`access:${accessId}`}`
      assert.lengthOf(audited, 3)
      // The Access is as it was: one version.
      assert.lengthOf(yield* sql`select from access_versions where access_id = ${accessId}`, 1)

      const ended = { id: accessId, institution_id: fern, project_id: portal, person_id: pat, role: "user" }
      yield* tell("access", { ...ended, version: 2, state: "revoked" })
      assert.strictEqual(yield* codeOf(confirm(w, ada, 2)), "access_not_active")
    })))
})
