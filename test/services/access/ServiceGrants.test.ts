import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { type PersonId, ServiceGrantId } from "../../../schemas/BrandedIds.ts"
import type { LifecycleServiceProposal } from "../../../schemas/identity/ServiceGrant.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { EnvironmentMismatch } from "../../../schemas/problems/IdentityProblems.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, tagOf, timed } from "../../support/Fixtures.ts"
import { identity, institution, member, owner, person, project } from "../../support/TestIdentity.ts"

const lifecycleIssuer = "https://services.example"

const services = ServiceGrants.layer({ issuers: [lifecycleIssuer] }).pipe(
  Layer.provide(Roles.layer),
  Layer.provideMerge(identity),
)

const fixture = Effect.gen(function* () {
  const [fern, olga, ada, oz] = yield* Effect.all([institution(), person(), person(), person({ operator: true })])
  yield* member(fern, ada, "administrator")
  const portal = yield* project(fern)
  yield* owner(portal, olga)
  return { fern, olga, ada, oz, portal }
})
type Fixture = Effect.Success<typeof fixture>

const proposal: LifecycleServiceProposal = {
  service_id: "backend",
  capabilities: ["events.read", "snapshot.read"],
  environment: "production",
  reason,
}

const propose = ({ olga, portal }: Fixture, more: Partial<LifecycleServiceProposal> & { personId?: PersonId } = {}) =>
  Effect.flatMap(
    ServiceGrants,
    (grants) => run(grants.propose({ ...proposal, personId: olga, projectId: portal, ...more })),
  )

const approve = ({ portal }: Fixture, personId: PersonId, grantId: ServiceGrantId, expectedVersion = 1) =>
  Effect.flatMap(ServiceGrants, (grants) =>
    run(grants.approve({
      personId,
      projectId: portal,
      grantId,
      reason,
      expectedVersion,
      stepUp: Effect.void,
    })))

const revoke = ({ portal }: Fixture, personId: PersonId, grantId: ServiceGrantId) =>
  Effect.flatMap(ServiceGrants, (grants) => run(grants.revoke({ personId, projectId: portal, grantId, reason })))

const list = ({ portal }: Fixture, personId: PersonId, limit = 100, afterId: string | null = null) =>
  Effect.flatMap(ServiceGrants, (grants) => grants.list({ personId, projectId: portal, limit, afterId }))

const told = ({ portal }: Fixture) =>
  Effect.flatMap(Database, ({ sql }) =>
    Effect.map(
      sql<{ kind: string }>`
        select kind from lifecycle_events where project_id = ${portal} and kind like 'service-grant%' order by position`,
      (rows) => rows.map(({ kind }) => kind),
    ))

layer(services, { excludeTestServices: true })("ServiceGrants", (it) => {
  it.effect("a grant is proposed by an owner, approved by another person, and revoked at once", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const proposed = yield* propose(w)
      assert.deepInclude(proposed, {
        state: "proposed",
        version: 1,
        service_issuer: lifecycleIssuer,
        effective: "not_effective",
        proposed_by: w.olga,
        approved_by: null,
        proposed_at: new Date(start).toISOString(),
      })
      const approved = yield* approve(w, w.ada, proposed.id)
      assert.deepInclude(approved, { state: "approved", version: 2, effective: "effective", approved_by: w.ada })
      assert.deepInclude(approved.delivery, { state: "queued", queued_at: new Date(start).toISOString() })
      const revoked = yield* revoke(w, w.olga, proposed.id)
      assert.deepInclude(revoked, { state: "revoked", version: 3, effective: "not_effective", revoked_by: w.olga })
      // The revocation is an event of its own: the approval's delivery says nothing about it.
      assert.deepInclude(revoked.delivery, { state: "queued", queued_at: revoked.revoked_at, attempts: 0 })
      assert.notStrictEqual(revoked.delivery.event_id, approved.delivery.event_id)
      assert.deepInclude(revoked.acknowledgement, { state: "pending", cursor: null, acknowledged_at: null })
      // A late revocation is accepted and changes nothing.
      assert.deepStrictEqual(yield* revoke(w, w.ada, proposed.id), revoked)
      assert.deepStrictEqual(yield* told(w), ["service-grant-approved", "service-grant-revoked"])
    })))

  it.effect("the database refuses a grant that goes back in state or is approved by a dependent person", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ends = (days: number) => new Date(start + days * day).toISOString()
      const { id } = yield* propose(w, { expires_at: ends(9) })
      const { owner: owned } = yield* Database
      const alias = yield* person()
      yield* owned`update people set merged_into = ${w.olga} where id = ${alias}`
      const written = (who: string) =>
        owned`update service_grants set state = 'approved', approved_by = ${who}, approved_at = ${new Date(start)}
          where id = ${id}::uuid`
      const refused = Effect.fnUntraced(function* (...attempts: ReadonlyArray<Effect.Effect<unknown, unknown>>) {
        for (const attempt of attempts) assert.isTrue(Exit.isFailure(yield* Effect.exit(attempt)))
      })
      yield* owned`update project_owners set approved_by = array[${w.ada}::text], created_at = ${new Date(start)}
        where project_id = ${w.portal}`
      yield* refused(written(w.olga), written(alias), written(w.ada))
      yield* owned`update project_owners set approved_by = '{}' where project_id = ${w.portal}`
      yield* approve(w, w.ada, id)
      yield* refused(
        owned`update service_grants set capabilities = array['stream.manage'] where id = ${id}::uuid`,
        owned`update service_grants set environment = 'staging' where id = ${id}::uuid`,
        owned`update service_grants set expires_at = ${new Date(start + 10 * day)} where id = ${id}::uuid`,
        owned`update service_grants set expires_at = null where id = ${id}::uuid`,
        owned`update service_grants set approved_by = ${w.oz} where id = ${id}::uuid`,
        owned`update service_grants set state = 'proposed' where id = ${id}::uuid`,
        owned`delete from service_grants where id = ${id}::uuid`,
        owned`truncate service_grants`,
      )
      yield* owned`update service_grants set expires_at = ${new Date(start + 8 * day)} where id = ${id}::uuid`
      assert.strictEqual((yield* revoke(w, w.olga, id)).expires_at, ends(8))
      yield* refused(owned`update service_grants set state = 'approved', revoked_by = null, revoked_at = null
        where id = ${id}::uuid`)
    })))

  it.effect("a refused approval says why", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      yield* member(w.fern, w.olga, "administrator")
      const { id } = yield* propose(w)
      assert.strictEqual(yield* tagOf(approve(w, w.olga, id)), "FourEyesRequired")
      assert.strictEqual(yield* tagOf(approve(w, w.oz, id)), "RoleRequired")
      assert.strictEqual(yield* tagOf(approve(w, w.ada, id, 2)), "VersionConflict")
      assert.strictEqual(yield* tagOf(approve(w, w.ada, ServiceGrantId.make("no-uuid"))), "NotFound")
      assert.strictEqual(yield* tagOf(approve(yield* fixture, w.ada, id)), "NotFound")
      const { sql } = yield* Database
      const made = (at: number) =>
        sql`update project_owners set made_by = ${w.ada}, created_at = ${new Date(at)} where project_id = ${w.portal}`
      yield* made(start - 90 * day + 1)
      assert.strictEqual(yield* tagOf(approve(w, w.ada, id)), "FourEyesRequired", "the owner was made by the approver")
      yield* made(start - 90 * day)
      yield* sql`update projects set rollout = 'hold' where id = ${w.portal}`
      assert.strictEqual(yield* tagOf(approve(w, w.ada, id)), "EnvironmentHeld")
      yield* sql`update projects set rollout = null where id = ${w.portal}`
      const both = yield* Effect.all([tagOf(approve(w, w.ada, id)), tagOf(approve(w, w.ada, id))], { concurrency: 2 })
      assert.sameMembers([...both], ["done", "InvalidState"])
    })))

  it.effect("a moved project's grant is decided by its new institution, also while the approval waits", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { id } = yield* propose(w)
      const [moss, meg] = [yield* institution(), yield* person()]
      yield* member(moss, meg, "administrator")
      const { sql } = yield* Database
      const patient = sql`
        select set_config('lock_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const moving = patient.pipe(
        Effect.andThen(sql`update projects set institution_id = ${moss} where id = ${w.portal}`),
        Effect.andThen(Deferred.succeed(begun, undefined)),
        Effect.andThen(Deferred.await(go)),
        sql.withTransaction,
      )
      const moved = yield* Effect.forkChild(moving)
      yield* Deferred.await(begun)
      const waiting = yield* Effect.forEach(
        [w.ada, meg],
        (who) => Effect.forkChild(tagOf(sql.withTransaction(Effect.andThen(patient, approve(w, who, id))))),
      )
      const waits = sql<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`
      yield* waits.pipe(Effect.repeat({ until: ([row]) => row!.n >= waiting.length }))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(moved)
      assert.deepStrictEqual(yield* Effect.forEach(waiting, Fiber.join), ["NotFound", "done"])
    })))

  it.effect("a grant expires by the clock, at most a year on, and stays listed and revocable", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const at = (millis: number) => new Date(start + millis).toISOString()
      for (const expires_at of [at(-1), at(0), at(365 * day + 1)]) {
        assert.strictEqual(yield* tagOf(propose(w, { expires_at })), "HTTPValidationError")
      }
      yield* propose(w, { expires_at: at(365 * day) })
      const { id } = yield* propose(w, { expires_at: at(day) })
      yield* approve(w, w.ada, id)
      yield* TestClock.adjust(day - 1)
      const now = Effect.map(list(w, w.ada), (all) => all.find((grant) => grant.id === id)!)
      assert.deepInclude(yield* now, { state: "approved", effective: "effective" })
      yield* TestClock.adjust(1)
      assert.deepInclude(yield* now, { state: "expired", effective: "not_effective" })
      assert.strictEqual((yield* revoke(w, w.ada, id)).state, "revoked")
    })))

  it.effect("a grant must fit its project's environment when proposed and when approved", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const refusal = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        Effect.flip(effect).pipe(Effect.map((error) => error instanceof EnvironmentMismatch ? error : null))
      assert.deepInclude(yield* refusal(propose(w, { environment: "staging" })), {
        code: "environment_mismatch",
        status: 409,
        project_environment: "production",
        detail: "The grant is for staging, the project is in production: propose a grant for production.",
      })
      assert.lengthOf(yield* list(w, w.ada), 0)
      const { id } = yield* propose(w)
      // The directory moves the project to staging before the approval.
      const { sql } = yield* Database
      yield* sql`update projects set environment = 'staging' where id = ${w.portal}`
      assert.deepInclude(yield* refusal(approve(w, w.ada, id)), { project_environment: "staging" })
      assert.deepStrictEqual(yield* told(w), [])
      yield* sql`update projects set environment = 'production' where id = ${w.portal}`
      assert.strictEqual((yield* approve(w, w.ada, id)).effective, "effective")
      const staging = { ...w, portal: yield* project(w.fern, { environment: "staging" }) }
      yield* owner(staging.portal, w.olga)
      assert.strictEqual((yield* propose(staging, { environment: "staging" })).environment, "staging")
    })))

  it.effect("grants are shown to owners, administrators and operators only", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [plain, stranger] = yield* Effect.all([person(), person()])
      yield* member(w.fern, plain, "member")
      const seen = yield* Effect.forEach([w.olga, w.ada, w.oz, plain, stranger], (who) => tagOf(list(w, who)))
      assert.deepStrictEqual(seen, ["done", "done", "done", "RoleRequired", "NotFound"])
      const asked = yield* Effect.forEach([w.ada, w.oz, plain, stranger], (personId) => tagOf(propose(w, { personId })))
      assert.deepStrictEqual(asked, ["RoleRequired", "RoleRequired", "RoleRequired", "NotFound"])
    })))

  it.effect("grants end with their project", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [one, two, three] = yield* Effect.all([propose(w), propose(w), propose(w)])
      yield* approve(w, w.ada, two.id)
      yield* revoke(w, w.ada, three.id)
      const grants = yield* ServiceGrants
      assert.strictEqual(yield* run(grants.revokeAll(w.portal, w.ada, reason)), 2)
      assert.deepStrictEqual((yield* list(w, w.ada)).map(({ state }) => state), ["revoked", "revoked", "revoked"])
      assert.deepStrictEqual(yield* told(w), ["service-grant-approved", "service-grant-revoked"])
      const { sql } = yield* Database
      yield* sql`update projects set state = 'withdrawn' where id = ${w.portal}`
      assert.strictEqual(yield* tagOf(propose(w)), "InvalidState")
      assert.strictEqual((yield* list(w, w.ada))[0]!.id, one.id)
    })))

  it.effect("a grant takes the issuer that it names, or the only configured one", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const among = (issuers: ReadonlyArray<string>, service_issuer?: string | null) =>
        propose(w, service_issuer === undefined ? {} : { service_issuer }).pipe(
          Effect.provide(ServiceGrants.layer({ issuers }).pipe(Layer.provide(Roles.layer))),
          Effect.match({
            onFailure: (problem) => problem instanceof HTTPValidationError ? problem.detail : String(problem),
            onSuccess: (grant) => grant.service_issuer,
          }),
        )
      const missing = [{ loc: ["body", "service_issuer"], msg: "Field required", type: "missing" }]
      const two = ["https://a.example", "https://b.example"]
      for (const left of [undefined, null]) {
        assert.strictEqual(yield* among([two[0]!], left), two[0])
        assert.deepStrictEqual<unknown>(yield* among([], left), missing)
        assert.deepStrictEqual<unknown>(yield* among(two, left), missing)
      }
      for (const issuers of [[], two]) {
        assert.strictEqual(yield* among(issuers, "https://c.example"), "https://c.example")
      }

      // A grant with the longest issuer and service id can still be looked up by a token.
      const long = (length: number) =>
        Array.from({ length }, () => String.fromCodePoint(0x20000 + Math.floor(Math.random() * 0xa000))).join("")
      const { id } = yield* propose(w, { service_id: long(200), service_issuer: long(400) })
      assert.strictEqual((yield* approve(w, w.ada, id)).state, "approved")
    })))

  it.effect("a grant is effective where its service can authenticate or has a push stream", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const stranger = "https://nobody.example"
      const { id } = yield* propose(w, { service_issuer: stranger })
      assert.deepInclude(yield* approve(w, w.ada, id), { state: "approved", effective: "not_effective" })
      const effective = (of: Parameters<typeof ServiceGrants.layer>[0]) =>
        Effect.map(list(w, w.ada), ([grant]) => grant!.effective).pipe(
          Effect.provide(ServiceGrants.layer(of).pipe(Layer.provide(Roles.layer))),
        )
      assert.strictEqual(yield* effective({ issuers: [lifecycleIssuer, stranger] }), "effective")
      assert.strictEqual(yield* effective({ issuers: [lifecycleIssuer], anyIssuer: true }), "effective")
      // A stream that was made while the issuer was known goes on.
      const { sql } = yield* Database
      yield* sql`
        insert into lifecycle_streams (id, project_id, service_issuer, service_id, status, status_by, delivery,
          endpoint_url, created_at, updated_at, epoch, position)
        values (${id}::uuid, ${w.portal}, ${stranger}, ${proposal.service_id}, 'enabled', 'receiver', 'push',
          'https://nobody.example/sets', ${new Date(start)}, ${new Date(start)}, 1, 0)`
      assert.strictEqual(yield* effective({ issuers: [lifecycleIssuer] }), "effective")
      yield* sql`update lifecycle_streams set status = 'disabled' where id = ${id}::uuid`
      assert.strictEqual(yield* effective({ issuers: [lifecycleIssuer] }), "not_effective")
    })))
})
