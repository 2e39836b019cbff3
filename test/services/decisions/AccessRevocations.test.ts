/** Revocation of an Access: proposed by a person who answers for it, decided by an independent administrator. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { AccessId, PersonId } from "../../../schemas/BrandedIds.ts"
import { AccessEnds } from "../../../services/access/AccessEnds.ts"
import { Institutions } from "../../../services/access/Institutions.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { access, institution, member, owner, person, project, tell } from "../../support/TestIdentity.ts"
import {
  codeOf,
  decided,
  decline,
  fire,
  fixture as fern,
  projectRow,
  requestRow,
  services,
  sign,
  told,
  withdraw,
} from "./RequestFixture.ts"

const fixture = Effect.gen(function* () {
  const w = yield* fern
  const [ona, user] = yield* Effect.all([person(), person()])
  const portal = yield* project(w.fern)
  yield* owner(portal, ona)
  return { ...w, ona, user, portal, accessId: yield* access(w.fern, portal, user) }
})
type Fixture = Effect.Success<typeof fixture>

const propose = ({ accessId, fern }: Fixture, personId: PersonId, expected_version = 1, id: AccessId = accessId) =>
  Effect.flatMap(
    Requests,
    (requests) => run(requests.revocation({ personId, institutionId: fern, accessId: id, expected_version, reason })),
  )

const explained = ({ accessId, fern, sam }: Fixture) =>
  Effect.flatMap(Institutions, ({ explain }) => explain(sam, fern, accessId))

/** The end of an Access as its row has it. */
const endOf = ({ accessId }: Fixture) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const [row] = yield* sql<{ ends_at: Date | null; ends_version: number | null; ends_before: Date | null }>`
      select ends_at, ends_version, ends_before from access where id = ${accessId}`
    const { ends_at, ends_before, ends_version } = row!
    return { ends_at: ends_at?.toISOString() ?? null, ends_version, ends_before: ends_before?.toISOString() ?? null }
  })

const waitingFor = (personId: PersonId) =>
  Effect.map(
    Effect.flatMap(
      PolicyDecisions,
      (policies) => policies.list({ personId, state: "open", afterId: null, limit: 100 }),
    ),
    ({ items }) => items.filter(({ kind }) => kind === "access_revocation"),
  )

layer(Institutions.layer.pipe(Layer.provideMerge(services)), { excludeTestServices: true, timeout: "2 minutes" })(
  "access revocations",
  (it) => {
    it.effect("an owner proposes, another administrator signs, and the Access is revoked with both as its evidence", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const request = yield* propose(w, w.ona)
        assert.deepInclude(request, {
          access_id: w.accessId,
          access_version: 1,
          person_id: w.user,
          project_id: w.portal,
          state: "submitted",
        })
        assert.deepStrictEqual(request.policy_review?.required_roles, ["administrator"])
        yield* fire
        assert.deepStrictEqual((yield* explained(w)).effective.blocked_by, [])
        const [shown] = yield* waitingFor(w.ada)
        assert.deepInclude(shown?.asked, { access_id: w.accessId, access_version: 1, person_id: w.user })

        yield* TestClock.adjust(day)
        yield* sign(request, "administrator", w.ada)
        assert.deepInclude(yield* requestRow(request.request_id), { state: "approved", result_id: w.accessId })
        assert.strictEqual(yield* fire, 1)
        const { effective, ends, versions } = yield* explained(w)
        assert.deepStrictEqual(effective.blocked_by, ["access_revoked"])
        assert.deepInclude(versions[0], { access_version: 2, state: "revoked", at_its_end: true })
        assert.deepInclude(ends[0], {
          ends_at: new Date(start + day).toISOString(),
          made_by: w.ona,
          approved_by: [w.ada],
          request_id: request.request_id,
          access_version: 1,
          reason,
        })
        assert.deepStrictEqual((yield* told(w.portal)).slice(-2), ["access-revoked", "session-revoked"])
      })))

    it.effect("nobody decides alone, nor about the own Access; declined and expired proposals change nothing", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const mo = yield* person()
        yield* member(w.fern, mo, "member")
        assert.strictEqual(yield* codeOf(propose(w, mo)), "role_required")
        assert.strictEqual(yield* codeOf(propose(w, w.pat)), "not_found")
        assert.strictEqual(yield* codeOf(propose(w, w.ona, 2)), "version_conflict")
        const own = yield* access(w.fern, w.portal, w.abe)
        assert.strictEqual(yield* codeOf(propose(w, w.abe, 1, own)), "four_eyes_required")

        const request = yield* propose(w, w.ada)
        assert.strictEqual(yield* codeOf(propose(w, w.ona)), "request_exists")
        assert.strictEqual(yield* codeOf(sign(request, "administrator", w.ada)), "four_eyes_required")
        assert.strictEqual(yield* codeOf(sign(request, "administrator", w.sam)), "role_required")
        yield* decline(request, "administrator", w.abe)

        // The person whose Access it is neither signs nor declines; with no other administrator left an operator stands in.
        const abes = yield* propose(w, w.ada, 1, own)
        assert.deepStrictEqual(yield* waitingFor(w.abe), [])
        assert.strictEqual(yield* codeOf(sign(abes, "administrator", w.abe)), "four_eyes_required")
        assert.strictEqual(yield* codeOf(decline(abes, "administrator", w.abe)), "four_eyes_required")
        const { one } = yield* PolicyDecisions
        const { signers } = yield* one(w.oz, abes.policy_review!.review_id)
        assert.strictEqual(signers?.people.find(({ person_id }) => person_id === w.abe)?.refusal, "own_access")
        assert.lengthOf(yield* waitingFor(w.oz), 1)

        const last = yield* propose(w, w.sam)
        yield* TestClock.adjust(14 * day)
        yield* fire
        assert.strictEqual((yield* requestRow(last.request_id)).state, "expired")
        assert.deepStrictEqual((yield* explained(w)).effective.blocked_by, [])
        assert.lengthOf((yield* explained(w)).versions, 1)
      })))

    it.effect("what was signed is exactly what was proposed: another version is not revoked, a revoked one is as asked", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const line = { id: w.accessId, institution_id: w.fern, project_id: w.portal, person_id: w.user }
        const request = yield* propose(w, w.ona)
        yield* tell("access", { ...line, version: 2, role: "editor", state: "active" })
        assert.strictEqual(yield* codeOf(sign(request, "administrator", w.ada)), "invalid_state")
        assert.strictEqual((yield* requestRow(request.request_id)).state, "submitted")

        // The open proposal about the first version is no proposal about the second.
        const second = yield* propose(w, w.ona, 2)
        yield* tell("access", { ...line, version: 3, role: "editor", state: "revoked" })
        yield* sign(second, "administrator", w.ada)
        assert.strictEqual((yield* requestRow(second.request_id)).state, "approved")
        yield* fire
        assert.lengthOf((yield* explained(w)).versions, 3)
        assert.strictEqual(yield* codeOf(propose(w, w.ona, 3)), "access_not_active")

        // An end that is to come is brought forward; a proposal of a project that is withdrawn is closed.
        const other = { ...w, accessId: yield* access(w.fern, w.portal, w.pat) }
        const ends_at = new Date(start + 10 * day).toISOString()
        const asked = { personId: w.ada, institutionId: w.fern, accessId: other.accessId, expected_version: 1, reason }
        yield* Effect.flatMap(AccessEnds, ({ shorten }) => run(shorten({ ...asked, ends_at })))
        yield* sign(yield* propose(other, w.sam), "administrator", w.abe)
        assert.strictEqual(yield* fire, 1)
        assert.deepStrictEqual((yield* explained(other)).effective.blocked_by, ["access_revoked"])
        const open = yield* propose({ ...w, accessId: yield* access(w.fern, w.portal, w.pat) }, w.sam)
        yield* withdraw(w.fern, w.portal, w.ada, (yield* projectRow(w.portal)).revision)
        assert.strictEqual((yield* requestRow(open.request_id)).state, "declined")
        assert.strictEqual(yield* codeOf(sign(open, "administrator", w.abe)), "invalid_state")
      })))

    it.effect("a version that the directory writes after the signature is not revoked, and has the end of before", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const line = { id: w.accessId, institution_id: w.fern, project_id: w.portal, person_id: w.user }
        yield* sign(yield* propose(w, w.ona), "administrator", w.ada)
        yield* tell("access", { ...line, version: 2, role: "editor", state: "active" })
        yield* fire
        const lapsed = yield* explained(w)
        assert.deepStrictEqual(lapsed.effective.blocked_by, [])
        assert.deepStrictEqual([lapsed.versions.length, lapsed.ends_at, lapsed.ends.length], [2, null, 1])
        // What the directory revokes later did not come to its end.
        yield* TestClock.adjust(day)
        yield* tell("access", { ...line, version: 3, role: "editor", state: "revoked" })
        assert.isFalse((yield* explained(w)).versions[0]!.at_its_end)

        // The end that an administrator gave it stays the one of any version.
        const other = { ...w, accessId: yield* access(w.fern, w.portal, w.user) }
        const ends_at = new Date(start + 10 * day).toISOString()
        const asked = { personId: w.ada, institutionId: w.fern, accessId: other.accessId, expected_version: 1, reason }
        yield* Effect.flatMap(AccessEnds, ({ shorten }) => run(shorten({ ...asked, ends_at })))
        const signed = yield* propose(other, w.sam)
        yield* TestClock.adjust(day)
        yield* sign(signed, "administrator", w.abe)
        yield* tell("access", { ...line, id: other.accessId, version: 2, role: "editor", state: "active" })
        yield* fire
        assert.deepStrictEqual((yield* explained(other)).effective.blocked_by, [])
        assert.strictEqual((yield* explained(other)).ends_at, ends_at)
        const { access: listed } = yield* Institutions
        const then = yield* listed(w.sam, w.fern, { limit: 100, afterId: null, at: start + 2 * day })
        assert.strictEqual(then.items.find(({ access_id }) => access_id === other.accessId)?.ends_at, ends_at)
        // A program of the version before knows `ends_at` alone: it writes a version, and leaves what stands beside the end.
        yield* sign(yield* propose(other, w.sam, 2), "administrator", w.abe)
        const { sql } = yield* Database
        yield* sql`
          with version as (
            insert into access_versions (access_id, access_version, institution_id, project_id, person_id, role, state, digest,
              event_id, created_at, made_by, approved_by)
            select access_id, 3, institution_id, project_id, person_id, 'user', state, digest, event_id, ${new Date(
          start + 2 * day,
        )}, null, approved_by from access_versions where access_id = ${other.accessId} and access_version = 2
          )
          update access set role = 'user', access_version = 3 where id = ${other.accessId}`
        assert.deepStrictEqual(yield* endOf(other), { ends_at, ends_version: null, ends_before: null })
        yield* fire
        assert.deepStrictEqual((yield* explained(other)).effective.blocked_by, [])
        yield* TestClock.adjust(8 * day)
        assert.strictEqual(yield* fire, 1)
        assert.isTrue((yield* explained(other)).versions[0]!.at_its_end)
      })))

    it.effect("an end that a program of the version before sets beside a signed revocation counts", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const { sql } = yield* Database
        yield* sign(yield* propose(w, w.ona), "administrator", w.ada)
        const signed = new Date(start).toISOString()
        assert.deepStrictEqual(yield* endOf(w), { ends_at: signed, ends_version: 1, ends_before: null })
        yield* sql`update access set revision = revision + 1 where id = ${w.accessId}`
        assert.deepStrictEqual(yield* endOf(w), { ends_at: signed, ends_version: 1, ends_before: null })
        const ends_at = new Date(start + 20 * day).toISOString()
        yield* sql`update access set ends_at = ${ends_at}, revision = revision + 1 where id = ${w.accessId}`
        assert.deepStrictEqual(yield* endOf(w), { ends_at, ends_version: null, ends_before: null })
        yield* fire
        assert.strictEqual((yield* explained(w)).ends_at, ends_at)
        // A version after that has the same end.
        const line = { id: w.accessId, institution_id: w.fern, project_id: w.portal, person_id: w.user }
        yield* tell("access", { ...line, version: 2, role: "editor", state: "active" })
        assert.strictEqual((yield* explained(w)).ends_at, ends_at)
      })))

    it.effect("a request that would lengthen an Access waits for the revocation that was signed before", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const site = yield* project(w.fern)
        const temporary = { institution_id: w.fern, project_id: site, personId: w.pat, reason }
        const { access: ask } = yield* Requests
        const granted = yield* decided(ask({ ...temporary, ends_at: new Date(start + 10 * day).toISOString() }))
        yield* sign(granted, "administrator", w.ada)
        yield* sign(granted, "sponsor", w.sam)
        const held = { ...w, accessId: (yield* requestRow(granted.request_id)).result_id as AccessId }
        const longer = yield* decided(ask(temporary))
        yield* sign(longer, "sponsor", w.sam)
        yield* sign(yield* propose(held, w.sam), "administrator", w.abe)
        assert.strictEqual(yield* codeOf(sign(longer, "administrator", w.ada)), "invalid_state")
        assert.strictEqual(yield* fire, 1)
        assert.deepStrictEqual((yield* explained(held)).effective.blocked_by, ["access_revoked"])
        yield* sign(longer, "administrator", w.ada)
        assert.notStrictEqual((yield* requestRow(longer.request_id)).result_id, held.accessId)
      })))

    it.effect("an Access that moved to another institution is not revoked, nor decided by its person's other identity", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const request = yield* propose(w, w.ona)
        const { sql } = yield* Database
        yield* sql`update people set merged_into = ${w.ada} where id = ${w.user}`
        assert.strictEqual(yield* codeOf(sign(request, "administrator", w.ada)), "four_eyes_required")
        yield* sql`update people set merged_into = null where id = ${w.user}`

        const moss = yield* institution()
        const site = yield* project(moss)
        const line = { id: w.accessId, institution_id: moss, project_id: site, person_id: w.user }
        yield* tell("access", { ...line, version: 2, role: "user", state: "active" })
        assert.strictEqual(yield* codeOf(sign(request, "administrator", w.ada)), "invalid_state")
        assert.strictEqual((yield* requestRow(request.request_id)).state, "submitted")
        yield* fire
        const [row] = yield* sql<{ state: string }>`select state from access where id = ${w.accessId}`
        assert.strictEqual(row!.state, "active")
      })))

    it.effect("the table takes no signature by the Access's person, under none of its identities", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const { sql } = yield* Database
        const request = yield* propose({ ...w, accessId: yield* access(w.fern, w.portal, w.abe) }, w.ona)
        const other = yield* person()
        const signed = (by: PersonId) =>
          codeOf(sql`
            insert into policy_approvals (review_id, author, role, person_id, stands_in, reason, approved_at)
            values (${request.policy_review!.review_id}::uuid, ${w.ona}, 'administrator', ${by}, false, ${reason},
              ${new Date(start)})`)
        assert.strictEqual(yield* signed(w.abe), "SqlError")
        yield* sql`update people set merged_into = ${w.abe} where id = ${other}`
        assert.strictEqual(yield* signed(other), "SqlError")
        yield* sql`update people set merged_into = null where id = ${other}`
        yield* sql`update people set merged_into = ${w.ada} where id = ${w.abe}`
        assert.strictEqual(yield* signed(w.ada), "SqlError")
        yield* sql`update people set merged_into = null where id = ${w.abe}`
        assert.strictEqual(yield* signed(w.ada), "done")
      })))

    it.effect("of two proposals at once one is made; of two signatures at once one revokes", () =>
      Effect.gen(function* () {
        const w = yield* fixture
        const tried = yield* Effect.all([w.ona, w.sam].map((by) => codeOf(propose(w, by))), { concurrency: 2 })
        assert.deepStrictEqual(tried.sort(), ["done", "request_exists"])
        const { sql } = yield* Database
        const [row] = yield* sql<{ id: never }>`
          select v.id::text as id from policy_reviews v join requests r on r.id = v.request_id
          where r.fields ->> 'access_id' = ${w.accessId}`
        const signed = yield* Effect.all(
          [w.ada, w.abe].map((by) => codeOf(sign(row!.id, "administrator", by))),
          { concurrency: 2 },
        )
        assert.deepStrictEqual(signed.sort(), ["done", "invalid_state"])
        assert.lengthOf(yield* sql`select from access_ends where access_id = ${w.accessId}`, 1)
      }))
  },
)
