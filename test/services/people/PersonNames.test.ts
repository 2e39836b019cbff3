import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { PersonNames } from "../../../services/people/PersonNames.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { access, institution, member, owner, person, project, tell } from "../../support/TestIdentity.ts"
import { askAccess, services } from "../decisions/RequestFixture.ts"

const fixture = PersonNames.layer.pipe(Layer.provideMerge(services))

/** The names that a person learns, by id. */
const learnt = Effect.fnUntraced(function* (personId: PersonId, ...ids: ReadonlyArray<string>) {
  const found = yield* (yield* PersonNames).of(personId, ids)
  return Object.fromEntries(found.map(({ display_name, person_id }) => [person_id, display_name]))
})

/** Fern with a sponsor and a member, and everyone whose name only some of them learn. */
const fern = Effect.gen(function* () {
  const id = yield* institution()
  const [sam, meg, old, user, keeper, asker, lapsed] = [
    yield* person({ display_name: "Sam" }),
    yield* person({ display_name: "Meg" }),
    yield* person({ display_name: "Old" }),
    yield* person({ display_name: "User" }),
    yield* person({ display_name: "Keeper" }),
    yield* person({ display_name: "Asker" }),
    yield* person({ display_name: "Lapsed" }),
  ]
  yield* member(id, sam, "sponsor")
  yield* member(id, meg, "member")
  yield* member(id, old, "administrator", { state: "ended" })
  yield* member(id, lapsed, "administrator", { state: "suspended" })
  const portal = yield* project(id)
  yield* owner(portal, keeper)
  yield* access(id, portal, user)
  yield* askAccess(id, yield* project(id), asker)
  return { id, sam, meg, old, user, keeper, asker, lapsed }
})

layer(fixture, { excludeTestServices: true, timeout: "2 minutes" })("PersonNames", (it) => {
  it.effect("members learn members' names; those who decide also of former members, owners, users and askers", () =>
    Effect.gen(function* () {
      const { asker, id: _, keeper, lapsed, meg, old, sam, user } = yield* fern
      const all = [asker, keeper, lapsed, meg, old, sam, user]
      assert.deepStrictEqual(yield* learnt(sam, ...all), {
        [asker]: "Asker",
        [keeper]: "Keeper",
        [lapsed]: "Lapsed",
        [meg]: "Meg",
        [old]: "Old",
        [sam]: "Sam",
        [user]: "User",
      })
      // An administrator whose role does not count now decides nothing.
      for (const member of [meg, lapsed]) {
        assert.deepStrictEqual(yield* learnt(member, ...all), { [lapsed]: "Lapsed", [meg]: "Meg", [sam]: "Sam" })
      }
      for (const [who, name] of [[old, "Old"], [user, "User"], [keeper, "Keeper"], [asker, "Asker"]] as const) {
        assert.deepStrictEqual(yield* learnt(who, ...all), { [who]: name })
      }
    }))

  it.effect("an operator learns all names, an auditor those of any institution; a person of another one none, whatever the role", () =>
    Effect.gen(function* () {
      const { asker, keeper, meg, sam, user } = yield* fern
      const [oz, eve] = [yield* person({ operator: true }), yield* person()]
      yield* member(yield* institution({ name: "Moss" }), eve, "sponsor")
      const all = [asker, keeper, meg, sam, user]
      assert.lengthOf(Object.keys(yield* learnt(oz, ...all)), all.length)
      assert.deepStrictEqual(yield* learnt(eve, ...all, randomUUID(), "nobody"), {})
      const [auditor, stranger] = [yield* person({ auditor: true }), yield* person()]
      assert.sameMembers(Object.keys(yield* learnt(auditor, ...all, oz, eve, stranger)), [...all, oz, eve])
      const former = yield* person({ operator: true, status: "suspended" })
      assert.deepStrictEqual(yield* learnt(former, ...all), {})
    }))

  it.effect("names come in the order of the ids, each once; without a name it is null; a removed person has none", () =>
    Effect.gen(function* () {
      const { id, meg, sam } = yield* fern
      const [nameless, gone] = [yield* person({ display_name: null }), yield* person()]
      yield* member(id, nameless, "member")
      yield* member(id, gone, "member")
      yield* tell("person", { id: gone, version: 2, removed: true })
      const { of } = yield* PersonNames
      assert.deepStrictEqual(yield* of(sam, [sam, nameless, gone, meg, sam]), [
        { person_id: sam, display_name: "Sam" },
        { person_id: nameless, display_name: null },
        { person_id: meg, display_name: "Meg" },
      ])
    }))

  it.effect("a merged person has the name of the person that remains", () =>
    Effect.gen(function* () {
      const { id, sam } = yield* fern
      const [kept, merged] = [yield* person({ display_name: "Kept" }), yield* person({ display_name: "Merged" })]
      yield* member(id, merged, "member")
      const { sql } = yield* Database
      yield* sql`update people set merged_into = ${kept} where id = ${merged}`
      assert.deepStrictEqual(yield* learnt(sam, merged), { [merged]: "Kept" })
    }))

  it.effect("among 20,000 others a hundred names are found by index", () =>
    Effect.gen(function* () {
      const { owner: owning, reads } = yield* Database
      const { id, sam } = yield* fern
      yield* owning.unsafe(`
        insert into people (id, issuer, subject, status, version, updated_at, revision)
        select n::text, 'https://x.example', n::text, 'active', 1, now(), 1 from generate_series(1, 20000) n`)
      yield* owning.unsafe(`
        insert into institution_memberships (id, institution_id, person_id, role, state, version, updated_at, revision)
        select n::text, case when n <= 10000 then '${id}' else n::text end, n::text, 'member', 'active', 1, now(), 1
        from generate_series(1, 20000) n`)
      yield* owning.unsafe(`
        insert into access (id, institution_id, project_id, person_id, role, state, access_version, version, updated_at,
          revision)
        select n::text, n::text, n::text, n::text, 'user', 'active', 1, 1, now(), 1 from generate_series(1, 20000) n`)
      yield* owning`vacuum analyze people, institution_memberships, access, project_owners, requests`
      const asked = Array.from({ length: 100 }, (_, n) => String(9_951 + n))
      const [rows, names] = yield* rowsRead(reads, Effect.flatMap(PersonNames, ({ of }) => of(sam, asked)))
      assert.lengthOf(names, 50)
      for (const [table, n] of rows) assert.isAtMost(n, 500, table)
    }))
})
