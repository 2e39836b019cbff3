import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import {
  askAccess,
  codeOf,
  decline,
  fire,
  type Fixture,
  fixture,
  own,
  projectRow,
  propose,
  requestRow,
  services,
  sign,
  told,
  website,
  withdraw,
  workJobs,
} from "../decisions/RequestFixture.ts"
import { reason, timed } from "../../support/Fixtures.ts"
import { access, issuer, member, owner, person, tell } from "../../support/TestIdentity.ts"

const jobsOf = Effect.fnUntraced(function* (projectId: ProjectId) {
  const { sql } = yield* Database
  return yield* sql<{ id: string; kind: string; state: string; held: boolean }>`
    select id::text as id, kind, state, held from provider_jobs where project_id = ${projectId} order by id`
})

/** A registered and provisioned staging website that Pat owns. */
const provisioned = Effect.fnUntraced(function* (w: Fixture, uris?: ReadonlyArray<string>) {
  const made = yield* website(w, w.pat, {}, uris)
  yield* sign(made, "administrator", w.ada)
  yield* workJobs
  return made.project_id
})

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Projects", (it) => {
  it.effect("a registration is answered at once, and its approval releases the provider's job", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const made = yield* website(w, w.pat, { website: "https://portal.fern.example" })
      assert.deepInclude(made, {
        state: "registered",
        version: 1,
        client_id: null,
        connector_kind: "standard_oidc",
        requested_scopes: ["openid", "email"],
        owner_person_id: w.pat,
        environment: "staging",
      })
      const [job] = yield* jobsOf(made.project_id)
      assert.deepStrictEqual(job, { id: made.job_id!, kind: "client.create", state: "pending", held: true })
      assert.deepStrictEqual(yield* told(made.project_id), ["project-registered", "project-owner-changed"])
      const { sql } = yield* Database
      const event = yield* sql`select kind from lifecycle_events where id = ${made.event_id}::uuid`
      assert.deepStrictEqual(event, [{ kind: "project-registered" }])
      const twin = website(w, w.pat, { website: "https://portal.fern.example" })
      assert.strictEqual(yield* codeOf(twin), "website_exists")
      yield* website(w, w.pat, { website: "https://portal.fern.example", environment: "production" })
      yield* workJobs
      assert.isNull((yield* projectRow(made.project_id)).client_id)
      yield* sign(made, "administrator", w.ada)
      yield* workJobs
      assert.isNotNull((yield* projectRow(made.project_id)).client_id)
      assert.deepStrictEqual(
        yield* sql`select made_by, approved_by from project_owners where project_id = ${made.project_id}`,
        [{ made_by: w.sam, approved_by: [w.ada] }],
      )
    })))

  it.effect("a production website needs an administrator and an operator; owners are active persons", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const made = yield* website(w, w.pat, { environment: "production", by: w.ada })
      assert.deepStrictEqual(made.policy_review!.required_roles, ["administrator", "operator"])
      assert.strictEqual(yield* codeOf(sign(made, "administrator", w.ada)), "four_eyes_required")
      assert.strictEqual(yield* codeOf(sign(made, "operator", w.abe)), "role_required")
      assert.strictEqual((yield* sign(made, "operator", w.oz)).state, "open")
      assert.strictEqual((yield* sign(made, "administrator", w.abe)).state, "applied")
      const gone = yield* person({ status: "suspended" })
      assert.strictEqual(yield* codeOf(website(w, gone)), "owner_not_active")
      assert.strictEqual(yield* codeOf(website(w, PersonId.make("nobody"))), "owner_not_active")
      assert.strictEqual(yield* codeOf(website(w, w.pat, { by: w.pat })), "not_found")
      yield* member(w.fern, w.pat, "member")
      assert.strictEqual(yield* codeOf(website(w, w.pat, { by: w.pat })), "role_required")
    })))

  it.effect("a declined registration is withdrawn, and its website may be registered again", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const made = yield* website(w, w.pat, { website: "https://declined.fern.example" })
      yield* decline(made, "administrator", w.ada)
      assert.strictEqual((yield* projectRow(made.project_id)).state, "withdrawn")
      assert.deepStrictEqual((yield* jobsOf(made.project_id)).map(({ kind, state }) => [kind, state]), [
        ["client.create", "effective"],
      ])
      assert.strictEqual((yield* told(made.project_id)).at(-1), "project-withdrawn")
      yield* website(w, w.pat, { website: "https://declined.fern.example" })
    })))

  it.effect("a launch is proposed by an owner under a verified domain, and happens once all is complete", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const made = yield* website(w, w.pat)
      const { project_id: id } = made
      assert.strictEqual(yield* codeOf(propose(id, w.sam)), "role_required")
      assert.strictEqual(yield* codeOf(propose(id, yield* person())), "not_found")
      assert.strictEqual(yield* codeOf(propose(ProjectId.make("unknown"), w.pat)), "not_found")
      assert.strictEqual(
        yield* codeOf(propose(id, w.pat, "https://fern.example.evil.example/")),
        "launch_url_unverified",
      )
      assert.strictEqual(yield* codeOf(propose(id, w.pat, "https://notfern.example/")), "launch_url_unverified")
      const first = yield* propose(id, w.pat, "https://fern.example/first")
      const second = yield* propose(id, w.pat, "https://Portal.Fern.example/")
      assert.strictEqual((yield* requestRow(first.launch_id)).state, "superseded")
      assert.strictEqual(yield* codeOf(sign(first, "administrator", w.ada)), "invalid_state")
      assert.deepInclude(second, { state: "proposed", project_version: 3 })
      // Approved before the registration: the launch is held for that review, then for the client.
      yield* sign(second, "administrator", w.abe)
      const before = yield* projectRow(id)
      assert.deepInclude(before, { state: "held", held_reason: "registration_unreviewed" })
      assert.deepInclude(yield* requestRow(second.launch_id), { state: "held", held_reason: "registration_unreviewed" })
      yield* sign(made, "administrator", w.ada)
      yield* TestClock.adjust(5_000)
      yield* fire
      // The provider's progress makes no new version.
      assert.deepInclude(yield* projectRow(id), { ...before, held_reason: "client_not_provisioned" })
      yield* workJobs
      yield* TestClock.adjust(60_000)
      yield* fire
      assert.deepInclude(yield* projectRow(id), {
        state: "launched",
        revision: before.revision + 1,
        held_reason: null,
        launch_url: "https://Portal.Fern.example/",
      })
      const row = yield* requestRow(second.launch_id)
      assert.deepInclude(row, { state: "launched", held_reason: null })
      assert.isNotNull(row.event_id)
      assert.strictEqual((yield* told(id)).at(-1), "project-launched")
      assert.strictEqual(yield* codeOf(propose(id, w.pat)), "invalid_state")
    })))

  it.effect("a launch without a redirect URI waits for the directory's, which the client is given", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const id = yield* provisioned(w, [])
      const launch = yield* propose(id, w.pat)
      // Ada approved Pat's ownership, so she is not independent of Pat.
      assert.strictEqual(yield* codeOf(sign(launch, "administrator", w.ada)), "four_eyes_required")
      yield* sign(launch, "administrator", w.abe)
      assert.deepInclude(yield* projectRow(id), { state: "held", held_reason: "redirect_uri_missing" })
      const { sql } = yield* Database
      const [row] = yield* sql<{ website: string }>`select website from projects where id = ${id}`
      yield* tell("project", {
        id,
        version: 1,
        institution_id: w.fern,
        name: "Portal",
        website: row!.website,
        environment: "staging",
        connector_kind: "standard_oidc",
        state: "registered",
        redirect_uris: ["https://portal.fern.example/cb"],
      })
      yield* TestClock.adjust(60_000)
      yield* fire
      assert.strictEqual((yield* projectRow(id)).state, "launched")
      assert.strictEqual((yield* jobsOf(id)).at(-1)!.kind, "client.update")
    })))

  it.effect("a launch is of the proposed version and preview, and of no other", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const id = yield* provisioned(w)
      const launch = yield* propose(id, w.pat)
      yield* own(id, w.ada, w.oz)
      assert.strictEqual(yield* codeOf(sign(launch, "administrator", w.abe)), "version_conflict")
      const { sql } = yield* Database
      yield* sql`update projects set preview_digest = 'other' where id = ${id}`
      assert.strictEqual(yield* codeOf(sign(launch, "administrator", w.abe)), "preview_changed")
      const again = yield* propose(id, w.pat)
      yield* decline(again, "administrator", w.abe)
      assert.deepInclude(yield* projectRow(id), { state: "registered" })
      assert.strictEqual((yield* requestRow(again.launch_id)).state, "declined")
      const last = yield* propose(id, w.pat)
      yield* sql`update projects set rollout = 'fail' where id = ${id}`
      assert.strictEqual(yield* codeOf(sign(last, "administrator", w.abe)), "environment_held")
      assert.strictEqual(yield* codeOf(propose(id, w.pat)), "environment_held")
      yield* sql`update projects set rollout = null where id = ${id}`
      yield* sign(last, "administrator", w.abe)
      assert.strictEqual((yield* projectRow(id)).state, "launched")
    })))

  it.effect("an administrator changes owners, and one owner always stays", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { project_id: id } = yield* website(w, w.pat)
      assert.strictEqual(yield* codeOf(own(id, w.sam, w.oz)), "role_required")
      assert.strictEqual(yield* codeOf(own(id, w.pat, w.oz)), "role_required")
      assert.strictEqual(yield* codeOf(own(id, yield* person(), w.oz)), "not_found")
      assert.strictEqual(yield* codeOf(own(id, w.ada, PersonId.make("nobody"))), "not_found")
      assert.strictEqual(yield* codeOf(own(id, w.ada, yield* person({ status: "disabled" }))), "owner_not_active")
      assert.strictEqual(yield* codeOf(own(id, w.ada, w.pat, false)), "last_owner")
      const same = yield* own(id, w.ada, w.pat)
      assert.deepStrictEqual(same, {
        project_id: id,
        version: 1,
        owners: [{ person_id: w.pat, active: true, since: "2026-03-01T12:00:00.000Z" }],
      })
      assert.strictEqual((yield* own(id, w.ada, w.abe, false)).version, 1)
      const added = yield* own(id, w.ada, w.abe)
      assert.strictEqual(added.version, 2)
      const names = added.owners.filter(({ active }) => active).map(({ person_id }) => person_id)
      assert.sameMembers(names, [w.pat, w.abe])
      const removed = yield* own(id, w.ada, w.pat, false)
      assert.strictEqual(removed.version, 3)
      assert.deepStrictEqual((yield* told(id)).slice(1), Array(3).fill("project-owner-changed"))
      assert.strictEqual(yield* codeOf(withdraw(w.fern, id, w.pat, 3)), "not_found")
    })))

  it.effect("two concurrent removals of owners leave one", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { project_id: id } = yield* website(w, w.pat)
      // An owner under a merged name does not count as a remaining owner.
      const merged = yield* person()
      yield* owner(id, merged)
      yield* (yield* Database).sql`update people set merged_into = ${w.ola} where id = ${merged}`
      assert.strictEqual(yield* codeOf(own(id, w.ada, w.pat, false)), "last_owner")
      yield* own(id, w.ada, w.oz)
      const codes = yield* Effect.all(
        [codeOf(own(id, w.ada, w.pat, false)), codeOf(own(id, w.abe, w.oz, false))],
        { concurrency: 2 },
      )
      assert.deepStrictEqual(codes.sort(), ["done", "last_owner"])
    })))

  it.effect("a withdrawal ends client, sessions and service grants, and keeps the Access", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const id = yield* provisioned(w)
      const accessId = yield* access(w.fern, id, w.ola)
      const grants = yield* ServiceGrants
      const grant = yield* run(grants.propose({
        personId: w.pat,
        projectId: id,
        service_id: "reader",
        service_issuer: issuer,
        reason,
        capabilities: ["events.read"],
        environment: "staging",
        expires_at: null,
      }))
      const asked = yield* askAccess(w.fern, id, w.sam)
      const launch = yield* propose(id, w.pat)
      const { client_id, revision } = yield* projectRow(id)
      const { sql } = yield* Database
      const now = new Date(0)
      yield* sql`
        insert into sessions (id, issuer, sid, person_id, client_id, issued_at, last_seen_at, expires_at, aal, amr)
        values (gen_random_uuid(), ${issuer}, ${`sid of ${id}`}, ${w.ola}, ${client_id}, ${now}, ${now}, ${now}, 'aal1', '{}')`
      for (const one of [w.sam, w.oz]) assert.strictEqual(yield* codeOf(withdraw(w.fern, id, one, 1)), "role_required")
      assert.strictEqual(yield* codeOf(withdraw(InstitutionId.make("elsewhere"), id, w.ada, revision)), "not_found")
      assert.strictEqual(yield* codeOf(withdraw(w.fern, id, w.pat, revision + 1)), "version_conflict")
      const all = sql`
        select to_jsonb(j) from projects j where id = ${id} union all select to_jsonb(r) from requests r
        union all select to_jsonb(p) from provider_jobs p union all select to_jsonb(e) from lifecycle_events e
        union all select to_jsonb(s) from sessions s union all select to_jsonb(g) from service_grants g
        union all select to_jsonb(v) from policy_reviews v union all select to_jsonb(a) from audit_records a`
      const before = yield* all
      const undone = run(Effect.andThen(withdraw(w.fern, id, w.pat, revision), Effect.fail({ code: "undone" })))
      assert.strictEqual(yield* codeOf(undone), "undone")
      assert.deepStrictEqual(yield* all, before)
      const gone = yield* withdraw(w.fern, id, w.pat, revision)
      assert.deepInclude(gone, { state: "withdrawn", version: revision + 1, project_id: id, client_id, reason })
      assert.strictEqual(yield* codeOf(withdraw(w.fern, id, w.ada, 99)), "invalid_state")
      assert.strictEqual((yield* requestRow(launch.launch_id)).state, "superseded")
      assert.strictEqual((yield* requestRow(asked.request_id)).state, "declined")
      assert.strictEqual(yield* codeOf(sign(asked, "sponsor", w.sam)), "four_eyes_required")
      assert.strictEqual(yield* codeOf(sign(asked, "administrator", w.ada)), "invalid_state")
      const [state] = yield* sql<{ grant: string; session: Date | null; access: string; access_version: number }>`
        select (select state from service_grants where id = ${grant.id}::uuid) as grant,
          (select revoked_at from sessions where sid = ${`sid of ${id}`}) as session,
          a.state as access, a.access_version from access a where a.id = ${accessId}`
      assert.deepInclude(state, { grant: "revoked", access: "active", access_version: 1 })
      assert.isNotNull(state!.session)
      assert.includeMembers((yield* told(id)).slice(-2), ["project-withdrawn", "session-revoked"])
      assert.strictEqual((yield* jobsOf(id)).find(({ id }) => id === gone.job_id)!.kind, "client.disable")
      yield* workJobs
      assert.deepStrictEqual(
        yield* sql`select disabled from provider_clients where project_id = ${id}`,
        [{ disabled: true }],
      )
    })))

  it.effect("concurrent withdrawals and an approval each succeed or are refused, without a deadlock", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const id = yield* provisioned(w)
      const launch = yield* propose(id, w.pat)
      const { revision } = yield* projectRow(id)
      const codes = yield* Effect.all([
        codeOf(withdraw(w.fern, id, w.pat, revision)),
        codeOf(withdraw(w.fern, id, w.ada, revision)),
        codeOf(sign(launch, "administrator", w.abe)),
      ], { concurrency: 3 })
      assert.include([
        "done,invalid_state,invalid_state",
        "invalid_state,done,invalid_state",
        "version_conflict,version_conflict,done",
      ], codes.join())
    })))
})
