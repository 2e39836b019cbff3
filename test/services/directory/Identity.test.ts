import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { Directory } from "../../../services/directory/Directory.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { account, fresh } from "../../support/DirectoryLines.ts"
import { access, identity, institution, issuer, member, person, project, tell } from "../../support/TestIdentity.ts"

const line = (kind: string, id: string, version: number, fields: object) =>
  JSON.stringify({ kind, id, version, ...fields })
const personLine = (id: string, version: number, fields: object = {}) =>
  line("person", id, version, { issuer, subject: id, status: "active", ...fields })

const personRow = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql`
    select subject, display_name, email, email_verified, operator, status, removed from people where id = ${id}`
  return row
})

layer(identity)("Directory of identities", (it) => {
  it.effect("ids are opaque, and differ by case", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const id = `emp_${randomUUID()}`
      const results = yield* directory.apply([
        personLine(id, 1),
        personLine(id.toUpperCase(), 1),
        personLine("emp.1", 1),
        personLine("x".repeat(129), 1),
        personLine(fresh(), 1, { issuer: "https://id.example\u0000" }),
        personLine(fresh(), 1, { subject: "" }),
        personLine(fresh(), 1, { status: "gone" }),
        line("access", fresh(), 1, {
          institution_id: "a b",
          project_id: "p",
          person_id: "q",
          role: "r",
          state: "active",
        }),
      ])
      assert.deepStrictEqual(
        results.map((result) => result._tag === "rejected" ? result.detail : result._tag),
        [
          "applied",
          "applied",
          "at fault: id",
          "at fault: id",
          "at fault: issuer",
          "at fault: subject",
          "at fault: status",
          "at fault: institution_id",
        ],
      )
      assert.lengthOf(yield* sql`select from people where lower(id) = ${id.toLowerCase()}`, 2)
    }))

  it.effect("a line with another person's identity is rejected alone, until that identity is free", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()]
      const results = yield* directory.apply([
        personLine(first, 1, { subject: first }),
        personLine(second, 1, { subject: first }),
        personLine(third, 1),
      ])
      assert.deepStrictEqual(results.map(({ _tag }) => _tag), ["applied", "rejected", "applied"])
      const refused = results[1]!
      assert.strictEqual(refused._tag === "rejected" ? refused.detail : "", "the identity is another person's")
      assert.isUndefined(yield* personRow(second))
      // The first person takes another subject, which frees the old one.
      yield* person({ id: first, version: 2, subject: `${first}-new` })
      yield* person({ id: second, subject: first })
      const held = yield* sql`select subject, person_id from identities where person_id in (${first}, ${second})`
      assert.deepStrictEqual(
        new Set(held.map(({ person_id, subject }) => `${subject} ${person_id}`)),
        new Set([`${first}-new ${first}`, `${first} ${second}`]),
      )
    }))

  it.effect("a changed identity is an event to products, and ends the sessions of the old one", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const fern = yield* institution()
      const portal = yield* project(fern)
      const pat = yield* person()
      yield* access(fern, portal, pat)
      yield* person({ id: pat, version: 2, subject: `${pat}-new` })
      const facts = yield* sql<{ kind: string; sub_id: object; payload: Record<string, unknown> }>`
        select kind, sub_id, payload from lifecycle_events where project_id = ${portal} order by position desc limit 2`
      assert.deepStrictEqual<unknown>(facts.map(({ kind, payload, sub_id }) => [kind, sub_id, payload["previous"]]), [
        [
          "identity-linked",
          { format: "iss_sub", iss: issuer, sub: `${pat}-new` },
          { format: "iss_sub", iss: issuer, sub: pat },
        ],
        ["session-revoked", { format: "iss_sub", iss: issuer, sub: pat }, undefined],
      ])
    }))

  it.effect("a publisher that is not followed may not set identities, roles, status or Access", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const fern = yield* institution()
      const portal = yield* project(fern)
      const oz = yield* person({ operator: true, display_name: "Oz" })
      const pat = yield* person({ status: "disabled" })
      const gone = yield* person()
      yield* tell("person", { id: gone, version: 2, removed: true })
      const mallory = randomUUID()
      const before = yield* personRow(oz)
      const results = yield* directory.apply(
        [
          personLine(oz, 2, { subject: mallory, display_name: "Ozzy", email: "o@evil.example", email_verified: true }),
          personLine(pat, 2),
          personLine(mallory, 1, { operator: true, email: "m@evil.example", email_verified: true }),
          personLine(gone, 3),
          line("person", oz, 3, { removed: true }),
          line("institution", fern, 2, { name: "Fern & Co", verified_domains: ["fern.example"], status: "suspended" }),
          line("institution_membership", randomUUID(), 1, {
            institution_id: fern,
            person_id: mallory,
            role: "administrator",
            state: "active",
          }),
          line("project_owner", randomUUID(), 1, { project_id: portal, person_id: mallory }),
          line("access", randomUUID(), 1, {
            institution_id: fern,
            project_id: portal,
            person_id: mallory,
            role: "user",
            state: "active",
          }),
          line("project_link", portal, 1, { project_id: portal, installed_version: "1.0" }),
          account(fresh(), 1),
        ],
        undefined,
        "plain",
      )
      assert.deepStrictEqual<unknown>(
        results.map((result) =>
          result._tag === "applied" ? result.setAside : result._tag === "rejected" ? result.reason : result._tag
        ),
        [
          ["subject", "email_verified"],
          ["status"],
          ["operator", "status"],
          ...Array.from({ length: 2 }, () => "not_followed"),
          ["status"],
          ...Array.from({ length: 3 }, () => "not_followed"),
          [],
          [],
        ],
      )
      assert.deepStrictEqual(yield* personRow(oz), {
        ...before,
        display_name: "Ozzy",
        email: "o@evil.example",
        email_verified: false,
      })
      assert.include(yield* personRow(pat), { status: "disabled" })
      assert.include(yield* personRow(mallory), { operator: false, status: "suspended" })
      assert.include(yield* personRow(gone), { removed: true })
      const [renamed] = yield* sql`select name, status from institutions where id = ${fern}`
      assert.deepStrictEqual(renamed, { name: "Fern & Co", status: "active" })
      assert.lengthOf(yield* sql`select from institution_memberships where person_id = ${mallory}`, 0)
      assert.lengthOf(yield* sql`select from access where person_id = ${mallory}`, 0)
      // The same versions from a followed publisher complete the rest, once.
      const full = [
        personLine(mallory, 1, { operator: true, email: "m@evil.example", email_verified: true }),
        line("institution", fern, 2, { name: "Fern & Co", status: "suspended" }),
      ]
      for (const tag of ["applied", "ignored"]) {
        assert.deepStrictEqual((yield* directory.apply(full)).map(({ _tag }) => _tag), [tag, tag])
      }
      assert.include(yield* personRow(mallory), { operator: true, status: "active" })
      const off = yield* directory.apply([personLine(oz, 9), account(fresh(), 1)], undefined, "none")
      assert.deepStrictEqual(off.map(({ _tag }) => _tag), ["rejected", "applied"])
    }))

  it.effect("lines are applied in order; a line about several projects gets its own transaction", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const fern = yield* institution()
      const [one, two, pat, pet] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
      const grant = (project_id: string, person_id: string) =>
        line("access", randomUUID(), 1, { institution_id: fern, project_id, person_id, role: "user", state: "active" })
      const [{ before }] = (yield* sql<{ before: bigint }>`
        select count(*) as before from audit_records where action = 'directory.applied'`) as [{ before: bigint }]
      yield* directory.apply([
        ...[personLine(pat, 1), personLine(pet, 1), grant(one, pat), grant(one, pet), grant(two, pat)],
        ...[personLine(pet, 2, { display_name: "Pet" }), personLine(pat, 2, { status: "suspended" })],
        ...[grant(two, pet)],
      ])
      const audits = yield* sql<{ details: { lines: number } }>`
        select details from audit_records where action = 'directory.applied' order by id offset ${Number(before)}`
      assert.deepStrictEqual(audits.map(({ details }) => details.lines), [5, 1, 1, 1])
      const told = yield* sql<{ project_id: string; kind: string }>`
        select project_id, kind from lifecycle_events where project_id in (${one}, ${two}) order by project_id, position`
      const of = (project: string) => told.filter((e) => e.project_id === project).map(({ kind }) => kind)
      assert.deepStrictEqual(of(one), ["access-granted", "access-granted", "account-disabled"])
      assert.deepStrictEqual(of(two), ["access-granted", "account-disabled", "access-granted"])
    }))

  it.effect("appliers of the same lines in opposite orders do not deadlock, and append each event once", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const fern = yield* institution()
      const portal = randomUUID()
      const people = Array.from({ length: 20 }, () => randomUUID())
      const lines = people.flatMap((id) => [
        personLine(id, 1),
        line("access", id, 1, {
          institution_id: fern,
          project_id: portal,
          person_id: id,
          role: "user",
          state: "active",
        }),
      ])
      yield* Effect.forEach([lines, lines.toReversed(), lines], (run) => directory.apply(run), { concurrency: 3 })
      const told = yield* sql<{ kind: string }>`select kind from lifecycle_events where project_id = ${portal}`
      assert.deepStrictEqual(told.map(({ kind }) => kind), people.map(() => "access-granted"))
    }))

  it.effect("a second membership in one role is rejected, and a state decided here stays", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const fern = yield* institution()
      const sam = yield* person()
      const id = yield* member(fern, sam, "sponsor")
      yield* member(fern, sam, "member")
      const twice = line("institution_membership", randomUUID(), 1, {
        institution_id: fern,
        person_id: sam,
        role: "sponsor",
        state: "active",
      })
      const [result] = yield* directory.apply([twice])
      assert.deepStrictEqual(result, {
        _tag: "rejected",
        reason: "refused",
        detail: "by the database: UniqueViolation",
      })
      yield* sql`update institution_memberships set state = 'suspended', state_decided = true where id = ${id}`
      const state = Effect.map(
        sql`select state, state_decided from institution_memberships where id = ${id}`,
        ([row]) => row,
      )
      const outvoted = line("institution_membership", id, 2, {
        institution_id: fern,
        person_id: sam,
        role: "sponsor",
        state: "active",
      })
      assert.deepStrictEqual(yield* directory.apply([outvoted]), [{ _tag: "ignored", because: "state" }])
      assert.deepStrictEqual(yield* state, { state: "suspended", state_decided: true })
      yield* member(fern, sam, "sponsor", { id, version: 3, state: "suspended" })
      yield* member(fern, sam, "sponsor", { id, version: 4 })
      assert.deepStrictEqual(yield* state, { state: "active", state_decided: false })
    }))

  it.effect("a membership's dates decided here stay until the feed agrees on its state", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [fern, ada] = [yield* institution(), yield* person()]
      const id = yield* member(fern, ada, "administrator", { state: "invited", accepted_at: null })
      const since = new Date("2026-03-01T12:00:00Z")
      yield* sql`
        update institution_memberships set state = 'active', accepted_at = ${since}, state_decided = true, made_by = ${ada}
        where id = ${id}`
      const said = Effect.fnUntraced(
        function* (version: number, state: "active" | "invited", expires_at: string | null) {
          yield* member(fern, ada, "administrator", { id, version, state, accepted_at: null, expires_at })
          const [row] = yield* sql`
          select state, state_decided, accepted_at, expires_at from institution_memberships where id = ${id}`
          return row
        },
      )
      const over = "2001-01-01T00:00:00Z"
      const stands = { state: "active", accepted_at: since, expires_at: null }
      assert.deepStrictEqual(yield* said(2, "invited", over), { ...stands, state_decided: true })
      assert.deepStrictEqual(yield* said(3, "active", null), { ...stands, state_decided: false })
      assert.deepStrictEqual(yield* said(4, "invited", over), {
        state: "invited",
        state_decided: false,
        accepted_at: null,
        expires_at: new Date(over),
      })
    }))
})
