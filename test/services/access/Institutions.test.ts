import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { InstitutionId, type PersonId } from "../../../schemas/BrandedIds.ts"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { Institutions, type ListPage } from "../../../services/access/Institutions.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { access, institution, member, owner, person, project, tell } from "../../support/TestIdentity.ts"
import { codeOf, decided, services } from "../decisions/RequestFixture.ts"

const fixture = Layer.mergeAll(Institutions.layer, AccessReviews.layer).pipe(Layer.provideMerge(services))

const first: ListPage = { limit: 100, afterId: null }

/** Fern with a sponsor, an administrator and a member; an operator; and a person who administrates Moss. */
const fern = Effect.gen(function* () {
  const [id, moss] = [yield* institution(), yield* institution({ name: "Moss" })]
  const [sam, ada, meg, eve, oz] = [
    yield* person({ display_name: "Sam" }),
    yield* person({ display_name: "Ada" }),
    yield* person({ display_name: null }),
    yield* person(),
    yield* person({ operator: true }),
  ]
  yield* member(id, sam, "sponsor")
  yield* member(id, ada, "administrator")
  yield* member(id, meg, "member")
  yield* member(moss, eve, "administrator")
  return { id, moss, sam, ada, meg, eve, oz }
})

/** Ids of all pages of `limit` items each. */
const walk = Effect.fnUntraced(function* <A, E>(
  read: (page: ListPage) => Effect.Effect<{ readonly items: ReadonlyArray<A> }, E>,
  idOf: (item: A) => string,
  limit: number,
) {
  const ids: Array<string> = []
  let page: ListPage = { limit, afterId: null }
  while (true) {
    const { items } = yield* read(page)
    ids.push(...items.map(idOf))
    if (items.length < limit) return ids
    page = { limit, afterId: ids.at(-1)! }
  }
})

layer(fixture, { excludeTestServices: true, timeout: "2 minutes" })("Institutions", (it) => {
  it.effect("a person sees institutions of memberships that have not ended, with the own roles; an operator sees all", () =>
    Effect.gen(function* () {
      const { list, read } = yield* Institutions
      const { ada, eve, id, meg, moss, oz, sam } = yield* fern
      yield* member(moss, ada, "member", { state: "suspended" })
      yield* member(moss, ada, "sponsor", { state: "ended" })
      const gone = yield* institution({ name: "Gone" })
      yield* member(gone, meg, "member", { state: "ended" })
      const removed = yield* institution()
      yield* member(removed, meg, "member")
      yield* tell("institution", { id: removed, version: 2, removed: true })

      const seen = (yield* list(ada, first)).items
      assert.deepStrictEqual(seen.map((one) => one.institution_id), [id, moss].sort())
      assert.deepInclude(yield* read(ada, id), {
        institution_id: id,
        name: "Fern",
        status: "active",
        verified_domains: ["fern.example"],
        memberships: [{ role: "administrator", effective: true }],
      })
      assert.deepStrictEqual((yield* read(ada, moss)).memberships, [{ role: "member", effective: false }])
      assert.deepStrictEqual((yield* list(meg, first)).items.map((one) => one.institution_id), [id])
      for (const hidden of [moss, gone, removed, InstitutionId.make(randomUUID()), InstitutionId.make("no id")]) {
        assert.strictEqual(yield* codeOf(read(meg, hidden)), "not_found")
      }
      assert.deepStrictEqual((yield* read(oz, id)).memberships, [])
      const all = yield* walk((page) => list(oz, page), (one) => one.institution_id, 2)
      assert.includeMembers(all, [id, moss, gone])
      assert.notInclude(all, removed)
      assert.deepStrictEqual(all, [...new Set(all)].sort())
      assert.deepStrictEqual(yield* walk((page) => list(ada, page), (one) => one.institution_id, 1), [id, moss].sort())
      assert.deepStrictEqual((yield* list(eve, first)).items.map((one) => one.institution_id), [moss])
      assert.strictEqual(yield* codeOf(read(sam, moss)), "not_found")
    }))

  it.effect("members are listed with every role, by person, page by page", () =>
    Effect.gen(function* () {
      const { members } = yield* Institutions
      const { ada, id, meg, oz, sam } = yield* fern
      yield* member(id, sam, "member", { state: "ended", expires_at: "2002-02-02T00:00:00Z" })
      const later = yield* person({ display_name: "Lea" })
      const from = new Date(Date.now() + 30 * day).toISOString()
      yield* member(id, later, "administrator", { effective_from: from })
      const found = (yield* members(ada, id, first)).items
      assert.deepStrictEqual(found.map((one) => one.person_id), [ada, later, meg, sam].sort())
      const of = (personId: string) => found.find((one) => one.person_id === personId)
      assert.deepStrictEqual(of(sam), {
        person_id: sam,
        display_name: "Sam",
        memberships: [
          {
            role: "member",
            state: "ended",
            effective: false,
            accepted_at: "2001-01-01T00:00:00.000Z",
            effective_from: null,
            expires_at: "2002-02-02T00:00:00.000Z",
          },
          {
            role: "sponsor",
            state: "active",
            effective: true,
            accepted_at: "2001-01-01T00:00:00.000Z",
            effective_from: null,
            expires_at: null,
          },
        ],
      })
      assert.deepInclude(of(later)!.memberships[0], { effective: false, effective_from: from })
      assert.isNull(of(meg)!.display_name)
      for (const limit of [1, 3, 4]) {
        const walked = yield* walk((page) => members(oz, id, page), (one) => one.person_id, limit)
        assert.deepStrictEqual(walked, [ada, later, meg, sam].sort())
      }
    }))

  it.effect("Access is listed with the version and event that a proposal names, and with its review", () =>
    timed(Effect.gen(function* () {
      const { access: list } = yield* Institutions
      const reviews = yield* AccessReviews
      const { ada, id, moss, oz, sam } = yield* fern
      const [portal, pat, kim] = [yield* project(id), yield* person({ display_name: "Pat" }), yield* person()]
      const [one, two] = [yield* access(id, portal, pat), yield* access(id, portal, kim)]
      yield* access(moss, yield* project(moss), pat)
      const item = Effect.fnUntraced(function* (accessId: string) {
        return (yield* list(sam, id, first)).items.find(({ access_id }) => access_id === accessId)!
      })
      const fresh = yield* item(one)
      assert.deepInclude(fresh, {
        access_id: one,
        access_version: 1,
        project_id: portal,
        person_id: pat,
        display_name: "Pat",
        role: "user",
        state: "active",
        review: null,
      })
      const asked = { access_id: one, access_version: 1, grant_event_id: fresh.grant_event_id, reason }
      const { review_id } = yield* decided(reviews.propose({ ...asked, personId: sam, institutionId: id }))
      assert.deepStrictEqual((yield* item(one)).review, { review_id, state: "proposed" })
      yield* tell("access", {
        id: one,
        version: 2,
        institution_id: id,
        project_id: portal,
        person_id: pat,
        role: "editor",
        state: "active",
      })
      assert.deepInclude(yield* item(one), { access_version: 2, role: "editor", review: null })
      yield* tell("access", {
        id: two,
        version: 2,
        institution_id: id,
        project_id: portal,
        person_id: kim,
        role: "user",
        state: "revoked",
      })
      assert.deepInclude(yield* item(two), { access_version: 2, state: "revoked" })
      for (const limit of [1, 2]) {
        const walked = yield* walk((page) => list(oz, id, page), ({ access_id }) => access_id, limit)
        assert.deepStrictEqual(walked, [one, two].sort())
      }
      assert.isAtLeast(Date.parse(fresh.granted_at), start)
      assert.strictEqual((yield* list(ada, id, { limit: 1, afterId: one > two ? one : two })).items.length, 0)
    })))

  it.effect("a review that has expired is not shown beside its Access", () =>
    timed(Effect.gen(function* () {
      const { access: list } = yield* Institutions
      const reviews = yield* AccessReviews
      const { id, sam } = yield* fern
      const accessId = yield* access(id, yield* project(id), yield* person())
      const asked = { access_id: accessId, access_version: 1, reason }
      yield* decided(reviews.propose({ ...asked, personId: sam, institutionId: id }))
      const shown = Effect.map(list(sam, id, first), ({ items }) => items[0]!.review?.state ?? null)
      assert.strictEqual(yield* shown, "proposed")
      yield* TestClock.adjust("7 days")
      assert.isNull(yield* shown)
    })))

  it.effect("members and Access are for those who decide: others learn the missing role, or nothing", () =>
    Effect.gen(function* () {
      const { access: accesses, members } = yield* Institutions
      const { eve, id, meg } = yield* fern
      const owns = yield* person()
      yield* owner(yield* project(id), owns)
      const late = yield* person()
      yield* member(id, late, "administrator", { state: "suspended" })
      const refused = Effect.fnUntraced(function* (personId: PersonId, institutionId: InstitutionId) {
        return [
          yield* codeOf(members(personId, institutionId, first)),
          yield* codeOf(accesses(personId, institutionId, first)),
        ]
      })
      const both = (code: string) => [code, code]
      assert.deepStrictEqual(yield* refused(meg, id), both("role_required"))
      assert.deepStrictEqual(yield* refused(late, id), both("administrator_not_effective"))
      for (const stranger of [eve, owns]) assert.deepStrictEqual(yield* refused(stranger, id), both("not_found"))
      assert.deepStrictEqual(yield* refused(eve, InstitutionId.make(randomUUID())), both("not_found"))
    }))

  it.effect("among 20,000 rows of others each list finds its page by index", () =>
    Effect.gen(function* () {
      const { access: accesses, list, members, read } = yield* Institutions
      const { owner: owning, reads } = yield* Database
      const { id, oz, sam } = yield* fern
      yield* access(id, yield* project(id), sam)
      const feed = "version, updated_at, revision"
      yield* owning.unsafe(`
        insert into institutions (id, name, status, ${feed})
        select gen_random_uuid()::text, 'Other', 'active', 1, now(), 1 from generate_series(1, 20000)`)
      yield* owning.unsafe(`
        insert into people (id, issuer, subject, status, ${feed})
        select id, 'https://x.example', id, 'active', 1, now(), 1 from institutions where name = 'Other'`)
      yield* owning.unsafe(`
        insert into institution_memberships (id, institution_id, person_id, role, state, ${feed})
        select gen_random_uuid()::text, id, id, 'member', 'active', 1, now(), 1 from institutions where name = 'Other'`)
      yield* owning.unsafe(`
        insert into access (id, institution_id, project_id, person_id, role, state, access_version, ${feed})
        select id, id, id, id, 'user', 'active', 1, 1, now(), 1 from institutions where name = 'Other'`)
      yield* owning.unsafe(`
        insert into access_versions (access_id, access_version, institution_id, project_id, person_id, role, state, digest,
          event_id, created_at)
        select id, 1, id, id, id, 'user', 'active', 'sha256:0', gen_random_uuid(), now()
        from institutions where name = 'Other'`)
      yield* owning`vacuum analyze institutions, people, institution_memberships, access, access_versions`
      const page = { limit: 10, afterId: null }
      const statements: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        list(sam, page),
        list(oz, { ...page, afterId: "8" }),
        read(sam, id),
        members(sam, id, page),
        accesses(sam, id, page),
      ]
      for (const [nth, statement] of statements.entries()) {
        const [rows] = yield* rowsRead(reads, statement)
        assert.isAbove(rows.size, 0)
        for (const [table, n] of rows) assert.isAtMost(n, 60, `${nth} ${table}`)
      }
    }))
})
