import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Stream } from "effect"
import { createHash, randomUUID } from "node:crypto"
import { AccessId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { type AccessDecision, AccessVersions } from "../../../services/access/AccessVersions.ts"
import { Directory, type RefusedLine } from "../../../services/directory/Directory.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { runOnce } from "../../../services/platform/database/UnitOfWork.ts"
import { access, identity, institution, issuer, owner, person, project, tell } from "../../support/TestIdentity.ts"

const versions = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const rows = yield* sql<Record<"access_version" | "role" | "state" | "kind", string | number>>`
    select v.access_version, v.role, v.state, e.kind
    from access_versions v left join lifecycle_events e on e.id = v.event_id and e.project_id = v.project_id
    where v.access_id = ${id} order by v.access_version`
  return rows.map(({ access_version, kind, role, state }) => [access_version, role, state, kind])
})

interface Told {
  readonly kind: string
  readonly txn: string
  readonly sub_id: object & { readonly user?: { readonly sub: string } }
  readonly payload: Record<string, unknown>
}

const told = Effect.fnUntraced(function* (project: string) {
  const { sql } = yield* Database
  return yield* sql<Told>`
    select kind, txn, sub_id, payload from lifecycle_events
    where project_id = ${project} and kind not in ('project-registered', 'project-launched') order by position`
})
const kinds = (project: string) => Effect.map(told(project), (facts) => facts.map(({ kind }) => kind))

const stands = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql`
    select role, state, state_decided, removed, access_version, version from access where id = ${id}`
  return row
})

const scene = Effect.gen(function* () {
  const fern = yield* institution()
  return { fern, portal: yield* project(fern), pat: yield* person() }
})

const [ada, sam] = [PersonId.make("ada"), PersonId.make("sam")]

const record = (decision: AccessDecision) => Effect.flatMap(AccessVersions, ({ record }) => runOnce(record(decision)))

const decision = (
  { fern, pat, portal }: Effect.Success<typeof scene>,
  fields: Partial<AccessDecision> = {},
): AccessDecision => ({
  accessId: AccessId.make(randomUUID()),
  institutionId: fern,
  projectId: portal,
  personId: pat,
  role: "user",
  state: "active",
  madeBy: sam,
  approvedBy: [ada],
  ...fields,
})

layer(identity)("AccessVersions", (it) => {
  it.effect("each change from the feed makes a version with its grant event; an unchanged line makes none", () =>
    Effect.gen(function* () {
      const { fern, pat, portal } = yield* scene
      const id = yield* access(fern, portal, pat)
      yield* access(fern, portal, pat, { id, version: 2 })
      yield* access(fern, portal, pat, { id, version: 3, role: "editor" })
      yield* access(fern, portal, pat, { id, version: 4, role: "editor", state: "revoked" })
      yield* access(fern, portal, pat, { id, version: 5, role: "editor" })
      yield* tell("access", { id, version: 6, removed: true })
      assert.deepStrictEqual(yield* versions(id), [
        [1, "user", "active", "access-granted"],
        [2, "editor", "active", "token-claims-change"],
        [3, "editor", "revoked", "access-revoked"],
        [4, "editor", "active", "access-granted"],
        [5, "editor", "revoked", "access-revoked"],
      ])
      const facts = yield* told(portal)
      assert.deepStrictEqual(facts.map(({ kind }) => kind), [
        "access-granted",
        "token-claims-change",
        ...["access-revoked", "session-revoked"],
        "access-granted",
        ...["access-revoked", "session-revoked"],
      ])
      assert.strictEqual(facts[2]!.txn, facts[3]!.txn)
      assert.deepStrictEqual(facts[1]!.payload, {
        event_timestamp: 0,
        initiating_entity: "system",
        reason_admin: { en: "ACCESS_ROLE_CHANGED_BY_DIRECTORY" },
        access: { access_id: id, version: 2, previous_version: 1, role: "editor" },
        claims: { role: "editor" },
      })
      assert.deepStrictEqual<object>(facts[0]!.sub_id, {
        format: "complex",
        user: { format: "iss_sub", iss: issuer, sub: pat },
        application: { format: "opaque", id: portal },
        tenant: { format: "opaque", id: fern },
      })
    }))

  it.effect("the digest covers the version's facts, and a version cannot be changed by the tables' owner", () =>
    Effect.gen(function* () {
      const { owner: tables, sql } = yield* Database
      const asked = decision(yield* scene)
      const made = yield* record(asked)
      const [row] = yield* sql<Record<string, unknown>>`
        select * from access_versions where access_id = ${asked.accessId}`
      const { digest, ...facts }: Record<string, unknown> = row!
      const names = Object.keys(facts).sort()
      assert.lengthOf(names, 11)
      const jcs = `{${names.map((name) => `"${name}":${JSON.stringify(facts[name])}`)}}`
      assert.strictEqual(digest, `sha256:${createHash("sha256").update(jcs).digest("hex")}`)
      assert.deepStrictEqual(made, { accessVersion: 1, eventId: String(row!["event_id"]), digest: String(digest) })
      for (const role of [sql, tables]) {
        for (
          const statement of [
            role`update access_versions set state = 'revoked'`,
            role`delete from access_versions`,
            role`truncate access_versions`,
          ]
        ) assert.strictEqual((yield* Effect.result(statement))._tag, "Failure")
      }
      assert.deepStrictEqual((yield* sql`select * from access_versions where access_id = ${asked.accessId}`)[0], row)
    }))

  it.effect("a decision writes the Access, its version and its event, names its author, and runs once", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const set = yield* scene
      const asked = decision(set)
      const first = yield* record(asked)
      assert.deepStrictEqual(yield* record(asked), first)
      const second = yield* record({ ...asked, state: "revoked", madeBy: ada, approvedBy: [] })
      assert.deepStrictEqual([first.accessVersion, second.accessVersion], [1, 2])
      const rows = yield* sql`
        select made_by, approved_by from access_versions where access_id = ${asked.accessId} order by access_version`
      assert.deepStrictEqual([...rows], [
        { made_by: "sam", approved_by: ["ada"] },
        { made_by: "ada", approved_by: [] },
      ])
      const facts = yield* told(set.portal)
      assert.deepStrictEqual(facts.map(({ kind }) => kind), ["access-granted", "access-revoked", "session-revoked"])
      assert.deepStrictEqual(facts[1]!.payload["reason_admin"], { en: "ACCESS_REVOKED_BY_ADMINISTRATOR" })
      assert.strictEqual(facts[1]!.payload["initiating_entity"], "admin")
    }))

  it.effect("concurrent decisions on one Access follow each other without a gap, and the row has the last", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const set = yield* scene
      const asked = decision(set)
      const roles = ["user", "editor", "viewer", "owner", "guest", "auditor"]
      const made = yield* Effect.forEach(roles, (role) => record({ ...asked, role }), { concurrency: "unbounded" })
      assert.deepStrictEqual(made.map(({ accessVersion }) => accessVersion).sort(), [1, 2, 3, 4, 5, 6])
      const rows = yield* sql<{ role: string }>`
        select role from access_versions where access_id = ${asked.accessId} order by access_version`
      assert.include(yield* stands(asked.accessId), { role: rows.at(-1)!.role, access_version: 6 })
      const facts = yield* told(set.portal)
      assert.deepStrictEqual(
        facts.map(({ payload }) => (payload["access"] as { version: number; role: string })).map(({ role }) => role),
        rows.map(({ role }) => role),
      )
    }))

  it.effect("the feed cannot give back a revoked Access until it has revoked it too; its removal always revokes", () =>
    Effect.gen(function* () {
      const set = yield* scene
      const { fern, pat, portal } = set
      const id = yield* access(fern, portal, pat)
      yield* record(decision(set, { accessId: id, state: "revoked" }))
      const directory = yield* Directory
      const line = (version: number, fields: object = {}) =>
        JSON.stringify({
          kind: "access",
          id,
          version,
          institution_id: fern,
          project_id: portal,
          person_id: pat,
          role: "user",
          state: "active",
          ...fields,
        })
      const refused: Array<RefusedLine> = []
      const told = yield* directory.applyFile(
        Stream.make(line(2), line(1), line(2, { state: "odd" })),
        (_, lines) => Effect.sync(() => void refused.push(...lines)),
      )
      assert.deepStrictEqual(told, { applied: 0, ignored: 2, rejected: 1 })
      assert.deepStrictEqual(refused[0], { line: 1, reason: "decided_here", detail: "state" })
      assert.deepStrictEqual(refused.map(({ line, reason }) => [line, reason]), [[1, "decided_here"], [
        3,
        "invalid_line",
      ]])
      assert.include(yield* stands(id), { state: "revoked", state_decided: true, access_version: 2 })
      assert.deepStrictEqual(yield* directory.apply([line(3)]), [{ _tag: "ignored", because: "state" }])
      yield* access(fern, portal, pat, { id, version: 4, state: "revoked" })
      assert.include(yield* stands(id), { state: "revoked", state_decided: false, access_version: 2 })
      yield* access(fern, portal, pat, { id, version: 5 })
      assert.include(yield* stands(id), { state: "active", access_version: 3 })

      yield* record(decision(set, { accessId: id, state: "revoked" }))
      yield* tell("access", { id, version: 6, removed: true })
      yield* access(fern, portal, pat, { id, version: 7 })
      assert.include(yield* stands(id), { state: "revoked", state_decided: true, removed: false, access_version: 4 })

      const given = decision(set)
      yield* record(given)
      yield* tell("access", { id: given.accessId, version: 1, removed: true })
      assert.include(yield* stands(given.accessId), { state: "revoked", removed: true, access_version: 2 })
    }))

  it.effect("an Access that moves to another project or person is revoked in the old place", () =>
    Effect.gen(function* () {
      const { fern, pat, portal } = yield* scene
      const other = yield* project(fern)
      const pet = yield* person()
      const id = yield* access(fern, portal, pat)
      yield* access(fern, other, pet, { id, version: 2 })
      assert.deepStrictEqual(yield* kinds(portal), ["access-granted", "access-revoked", "session-revoked"])
      const facts = yield* told(other)
      assert.deepStrictEqual(facts.map(({ kind, sub_id }) => [kind, sub_id.user?.sub]), [["access-granted", pet]])
      assert.deepStrictEqual((yield* versions(id)).map(([version, , state]) => [version, state]), [
        [1, "active"],
        [2, "revoked"],
        [3, "active"],
      ])
    }))

  it.effect("Access and ownerships wait for a person or project that the feed brings later", () =>
    Effect.gen(function* () {
      const fern = yield* institution()
      const [portal, pat] = [ProjectId.make(randomUUID()), PersonId.make(randomUUID())]
      const id = yield* access(fern, portal, pat)
      yield* owner(portal, pat)
      assert.deepStrictEqual(yield* versions(id), [])
      yield* person({ id: pat })
      assert.deepStrictEqual(yield* versions(id), [[1, "user", "active", "access-granted"]])
      assert.deepStrictEqual(yield* kinds(portal), ["access-granted"])
      yield* project(fern, { id: portal })
      assert.deepStrictEqual(yield* kinds(portal), ["access-granted", "project-owner-changed"])
    }))

  it.effect("a project is told of a person with past or present Access or ownership, and a new one of the status", () =>
    Effect.gen(function* () {
      const { fern, pat, portal } = yield* scene
      const [had, owned, never, late] = [
        yield* project(fern),
        yield* project(fern),
        yield* project(fern),
        yield* project(fern),
      ]
      yield* access(fern, portal, pat)
      const past = yield* access(fern, had, pat)
      yield* access(fern, had, pat, { id: past, version: 2, state: "revoked" })
      yield* owner(owned, pat)
      const before = yield* Effect.forEach([portal, had, owned, never], kinds)
      yield* person({ id: pat, version: 2, status: "suspended" })
      yield* person({ id: pat, version: 3, status: "disabled" })
      const news = yield* Effect.forEach([portal, had, owned, never], kinds)
      assert.deepStrictEqual(news.map((all, i) => all.slice(before[i]!.length)), [
        ["account-disabled"],
        ["account-disabled"],
        ["account-disabled"],
        [],
      ])
      yield* access(fern, late, pat)
      assert.deepStrictEqual(yield* kinds(late), ["access-granted", "account-disabled"])
      yield* person({ id: pat, version: 4 })
      yield* tell("person", { id: pat, version: 5, removed: true })
      assert.deepStrictEqual((yield* kinds(late)).slice(2), ["account-enabled", "account-purged"])
    }))

  it.effect("a project is told nothing of a person whose Access ended more than 90 days ago", () =>
    Effect.gen(function* () {
      const { fern, pat, portal } = yield* scene
      const id = yield* access(fern, portal, pat)
      yield* access(fern, portal, pat, { id, version: 2, state: "revoked" })
      const before = yield* kinds(portal)
      const clock = yield* Clock.Clock
      const later = (days: number): Clock.Clock =>
        Object.create(clock, {
          currentTimeMillis: { value: Effect.map(clock.currentTimeMillis, (now) => now + days * 86_400_000) },
        })
      yield* person({ id: pat, version: 2, status: "disabled" }).pipe(Effect.provideService(Clock.Clock, later(89)))
      assert.deepStrictEqual((yield* kinds(portal)).slice(before.length), ["account-disabled"])
      yield* person({ id: pat, version: 3 }).pipe(Effect.provideService(Clock.Clock, later(91)))
      assert.deepStrictEqual((yield* kinds(portal)).slice(before.length), ["account-disabled"])

      // Once the person has Access again the project is told the current status, since its last news says disabled.
      yield* access(fern, portal, pat, { id, version: 3, state: "active" })
      assert.deepStrictEqual((yield* kinds(portal)).slice(before.length + 1), ["access-granted", "account-enabled"])
      yield* access(fern, portal, pat, { id, version: 4, state: "revoked" })
      yield* access(fern, portal, pat, { id, version: 5, state: "active" })
      assert.strictEqual((yield* kinds(portal)).at(-1), "access-granted")
    }))

  it.effect("a removed person's subject stays barred: the product may still have that person's Access", () =>
    Effect.gen(function* () {
      const { fern, pat, portal } = yield* scene
      yield* access(fern, portal, pat)
      yield* tell("person", { id: pat, version: 2, removed: true })
      const before = yield* kinds(portal)
      yield* access(fern, portal, yield* person({ subject: pat }))
      assert.deepStrictEqual((yield* kinds(portal)).slice(before.length), ["access-granted"])
    }))
})
