/**
 * The four states of a decision: decided, delivered, acknowledged by a product, in effect. Each is moved alone, and the
 * others stay where they were.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { Drift } from "../../../services/lifecycle/Drift.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { reason } from "../../support/Fixtures.ts"
import { access, identity, institution, member, owner, person, project, tell } from "../../support/TestIdentity.ts"
import { said } from "../access/ReviewFixture.ts"

const services = Layer.mergeAll(
  AccessReviews.layer,
  ServiceGrants.layer({ issuers: ["https://services.example"] }),
  Drift.layer,
).pipe(
  Layer.provide(Roles.layer),
  Layer.provideMerge(identity),
)

const fixture = Effect.gen(function* () {
  const [fern, olga, sam, ada, pat] = yield* Effect.all([institution(), person(), person(), person(), person()])
  yield* member(fern, sam, "sponsor")
  yield* member(fern, ada, "administrator")
  const portal = yield* project(fern)
  yield* owner(portal, olga)
  const line = { institution_id: fern, project_id: portal, person_id: pat, state: "active" }
  return { fern, olga, sam, ada, portal, line, accessId: yield* access(fern, portal, pat) }
})

/** Sets the project's consumer to these positions (null: none yet). A snapshot alone delivers no event. */
const follows = Effect.fnUntraced(function* (projectId: string, delivered: bigint | null, acknowledged: bigint | null) {
  const { sql } = yield* Database
  const at = new Date("2026-03-01T12:00:00Z")
  const place = (position: bigint | null) =>
    position === null ? sql`null, null, null` : sql`1, ${position}::bigint, ${at}::timestamptz`
  yield* sql`delete from lifecycle_consumers where project_id = ${projectId}`
  yield* sql`insert into lifecycle_consumers (project_id, consumer, delivered_epoch, delivered_position, delivered_at,
      acknowledged_epoch, acknowledged_position, acknowledged_at)
    values (${projectId}, 'https://services.example backend', ${place(delivered)}, ${place(acknowledged)})`
})

const placeOf = Effect.fnUntraced(function* (eventId: string | null) {
  const { sql } = yield* Database
  const [event] = yield* sql<{ position: bigint }>`select position from lifecycle_events where id = ${eventId}::uuid`
  return event!.position
})

layer(services, { excludeTestServices: true })("The four states of a decision", (it) => {
  it.effect("of a review: none of them implies another", () =>
    Effect.gen(function* () {
      const { accessId, ada, fern, line, portal, sam } = yield* fixture
      const reviews = yield* AccessReviews
      const on = { institutionId: fern, reason }
      const { grant_event, review_id } = yield* run(
        reviews.propose({ ...on, personId: sam, access_id: accessId, access_version: 1 }),
      )
      const granted = BigInt(grant_event.position)
      const seen = Effect.map(reviews.list(ada, fern), (list) => said(list).reviews[0]!)
      const facts = Effect.map(seen, ({ acknowledgement, decision, delivery, effective_access }) => [
        ...[decision.state, delivery.state, acknowledgement.state, effective_access.state],
      ])
      // An undecided proposal has no event to deliver; the Access itself is in effect all the same.
      assert.deepStrictEqual(yield* facts, ["proposed", "none", "none", "unknown"])
      yield* follows(portal, granted, granted)
      assert.deepStrictEqual(yield* facts, ["proposed", "none", "none", "effective"])

      const acts = {
        approved: () => reviews.approve({ ...on, personId: ada, reviewId: review_id, stepUp: Effect.void }),
        revoked: () => reviews.revoke({ ...on, personId: ada, reviewId: review_id }),
      }
      let version = 1
      for (const decision of ["approved", "revoked"] as const) {
        yield* run(acts[decision]())
        const told = yield* placeOf((yield* seen).delivery.event_id)
        // A filtered stream delivered the event, and vouches for this event alone.
        yield* follows(portal, null, null)
        const { sql } = yield* Database
        yield* sql`insert into lifecycle_given values (${portal}, 1, ${told}, '2026-03-01T11:00:00Z')`
        assert.deepInclude((yield* seen).delivery, { state: "delivered", last_attempt_at: "2026-03-01T11:00:00.000Z" })
        yield* sql`delete from lifecycle_given`
        // The event of the current Access version was appended before the decision, and then after it.
        for (const before of version === 1 ? [true, false] : [false]) {
          if (!before) yield* tell("access", { id: accessId, version: ++version, ...line, role: `role-${version}` })
          for (const delivered of [null, told - 1n, told]) {
            for (const acknowledged of [null, told - 1n, told]) {
              yield* follows(portal, delivered, acknowledged)
              const effective = before && acknowledged !== null && acknowledged >= granted
              assert.deepStrictEqual(yield* facts, [
                decision,
                delivered === told ? "delivered" : "queued",
                acknowledged === told ? "acknowledged" : "pending",
                effective ? "effective" : "unknown",
              ])
            }
          }
        }
      }
    }))

  it.effect("a review shows drift when the product's event state differs from the Access", () =>
    Effect.gen(function* () {
      const { accessId, ada, fern, portal, sam } = yield* fixture
      const reviews = yield* AccessReviews
      const { look } = yield* Drift
      const { sql } = yield* Database
      const proposal = { access_id: accessId, access_version: 1, personId: sam, institutionId: fern, reason }
      yield* run(reviews.propose(proposal))
      const drift = Effect.map(reviews.list(ada, fern), (list) => said(list).reviews[0]!.effective_access.drift)
      assert.isFalse(yield* drift)
      yield* sql`update lifecycle_state set value = value || '{"role": "editor"}' where key = ${`access/${accessId}`}`
      yield* Effect.repeat(look, { while: (more) => more })
      assert.isTrue(yield* drift)
      yield* sql`update lifecycle_state set value = value || '{"role": "user"}' where key = ${`access/${accessId}`}`
      yield* sql`delete from lifecycle_drift_looks where project_id = ${portal}`
      yield* look
      assert.isFalse(yield* drift)
    }))

  it.effect("of a service grant: none of them implies another", () =>
    Effect.gen(function* () {
      const { ada, olga, portal } = yield* fixture
      const { sql } = yield* Database
      const grants = yield* ServiceGrants
      const on = { projectId: portal, reason }
      const { id } = yield* run(grants.propose({
        ...on,
        personId: olga,
        service_id: "backend",
        capabilities: ["events.read"],
        environment: "production",
      }))
      const seen = Effect.map(grants.list({ ...on, personId: ada, limit: 1, afterId: null }), ([grant]) => grant!)
      const facts = Effect.map(seen, ({ acknowledgement, delivery, effective, state }) => [
        ...[state, delivery.state, acknowledgement.state, effective],
      ])
      assert.deepStrictEqual(yield* facts, ["proposed", "none", "none", "not_effective"])

      const about = { ...on, personId: ada, grantId: id }
      const acts = {
        approved: () => grants.approve({ ...about, expectedVersion: 1, stepUp: Effect.void }),
        revoked: () => grants.revoke(about),
      }
      for (const decision of ["approved", "revoked"] as const) {
        yield* run(acts[decision]())
        const told = yield* placeOf((yield* seen).delivery.event_id)
        // A project that serves another environment gives the grant no effect.
        for (const environment of ["staging", "production"]) {
          yield* sql`update projects set environment = ${environment} where id = ${portal}`
          for (const delivered of [null, told - 1n, told]) {
            for (const acknowledged of [null, told - 1n, told]) {
              yield* follows(portal, delivered, acknowledged)
              assert.deepStrictEqual(yield* facts, [
                decision,
                delivered === told ? "delivered" : "queued",
                acknowledged === told ? "acknowledged" : "pending",
                decision === "approved" && environment === "production" ? "effective" : "not_effective",
              ])
            }
          }
        }
      }
    }))
})
