import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { Drift } from "../../../services/lifecycle/Drift.ts"
import { drifting, gaugeLag, lagging } from "../../../services/lifecycle/Lag.ts"
import { countsOf, p99Of } from "../../../services/lifecycle/LatencyMetrics.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { access, owner, person, tell } from "../../support/TestIdentity.ts"
import { decodeJwt } from "jose"
import { everything, grant, scene, signAll, transmitter } from "./LifecycleFixture.ts"

describe("counts of durations", () => {
  it("give the p99 of durations, rounded up to the histogram's next step", () => {
    assert.isNull(p99Of(countsOf([])))
    assert.strictEqual(p99Of(countsOf([0, 1])), 1)
    const most = p99Of(countsOf([...Array.from({ length: 99 }, () => 100), 60_000]))!
    assert.isAtLeast(most, 100)
    assert.isAtMost(most, 100 * Math.SQRT2)
    assert.isAtLeast(p99Of(countsOf([1, 60_000]))!, 60_000)
    assert.isAbove(p99Of(countsOf([1e12]))!, 10_000_000)
  })
})

layer(Drift.layer.pipe(Layer.provideMerge(transmitter)), { excludeTestServices: true })("Lag", (it) => {
  it.effect("lag shows each consumer's delivered and acknowledged positions, version and need of a snapshot", () =>
    Effect.gen(function* () {
      const { wide } = yield* Database
      const { acknowledge, events, snapshot } = yield* CursorApi
      const made = yield* scene
      const { asking, institution, project } = made
      yield* signAll
      const consumer = `${asking.issuer} ${asking.clientId}`
      const now = Effect.map(
        lagging(wide, project),
        (found) => found.find(({ consumer_id }) => consumer_id === consumer)!,
      )
      const head = (yield* now).head_position
      const none = yield* now
      assert.deepInclude(none, {
        project_id: project,
        delivered_position: 0,
        acknowledged_position: 0,
        installed_version: null,
        lag_events: head,
        snapshot_required: true,
        acknowledged_at: null,
        queue_to_delivery_ms_p99: null,
      })
      assert.isNumber(none.decision_to_queue_ms_p99)
      assert.isAtLeast(none.oldest_unacknowledged_seconds!, 0)

      const claims = decodeJwt(yield* snapshot(asking)) as { readonly cursor: string; readonly chain_head: string }
      const say = (cursor: string, chain_head: string) =>
        acknowledge({ ...asking, cursor, chain_head, installed_version: "1" })
      yield* say(claims.cursor, claims.chain_head)
      assert.deepInclude(yield* now, {
        acknowledged_position: head,
        delivered_position: 0,
        installed_version: "1",
        lag_events: 0,
        snapshot_required: false,
        oldest_unacknowledged_seconds: null,
      })

      yield* access(institution, project, yield* person())
      yield* access(institution, project, yield* person())
      assert.strictEqual((yield* now).lag_events, 2)
      yield* signAll
      const page = yield* events({ ...asking, after: claims.cursor, limit: 10, waitMillis: 0 })
      const delivered = yield* now
      assert.deepInclude(delivered, { delivered_position: head + 2, acknowledged_position: head, lag_events: 2 })
      assert.isNumber(delivered.queue_to_delivery_ms_p99)
      assert.isNull(delivered.delivery_to_ack_ms_p99)
      const event = decodeJwt(page.items.at(-1)!.set)["events"] as Record<string, { lifecycle: { digest: string } }>
      yield* say(page.cursor, Object.values(event)[0]!.lifecycle.digest)
      const done = yield* now
      assert.deepInclude(done, { acknowledged_position: head + 2, lag_events: 0, snapshot_required: false })
      assert.isNumber(done.delivery_to_ack_ms_p99)

      // The consumer joined too late for a new key: it is below its minimum position.
      const { sql } = yield* Database
      const setMinimumCursor = (position: number | null) =>
        sql`
          update lifecycle_consumers set floor_epoch = case when ${position}::bigint is null then null else 1 end,
            floor_position = ${position} where project_id = ${project}`
      yield* setMinimumCursor(head + 3)
      assert.isTrue((yield* now).snapshot_required)
      yield* setMinimumCursor(null)

      // A new consumer with a grant lags by everything; a consumer whose grant expired is not listed.
      const grantId = yield* grant(made, "other", ["events.read"])
      yield* signAll
      assert.sameMembers((yield* lagging(wide, project)).map(({ consumer_id }) => consumer_id), [
        consumer,
        `${asking.issuer} other`,
      ])
      // A consumer that may not acknowledge lags by what was not delivered to it.
      const other = (yield* lagging(wide, project)).find(({ consumer_id }) => consumer_id === `${asking.issuer} other`)!
      assert.deepInclude(other, {
        delivered_position: 0,
        acknowledged_position: 0,
        lag_events: other.head_position,
        snapshot_required: false,
        oldest_unacknowledged_seconds: null,
      })
      yield* everything({ ...asking, clientId: "other" })
      const told = (yield* lagging(wide, project)).find(({ consumer_id }) => consumer_id === `${asking.issuer} other`)!
      assert.deepInclude(told, { delivered_position: told.head_position, lag_events: 0, acknowledged_position: 0 })
      yield* sql`update service_grants set expires_at = 'epoch' where id = ${grantId}::uuid`
      assert.lengthOf(yield* lagging(wide, project), 1)
      yield* gaugeLag(wide)
    }))

  it.effect("pages of consumers have each once, the furthest behind first", () =>
    Effect.gen(function* () {
      const { wide } = yield* Database
      const made = yield* scene
      // Of two that are behind by as much, their names decide.
      for (const name of ["c", "b", "d", "a"]) yield* grant(made, name, ["events.read"])
      yield* signAll
      yield* everything({ ...made.asking, clientId: "d" })
      for (const project of [made.project, null]) {
        const all = yield* lagging(wide, project)
        assert.isAtLeast(all.length, 5)
        const ordered = all.map(({ lag_events }) => lag_events)
        assert.deepStrictEqual(ordered, ordered.toSorted((a, b) => b - a))
        for (const limit of [1, 2, all.length]) {
          const found: Array<typeof all[number]> = []
          while (found.length < all.length) {
            const page = yield* lagging(wide, project, { limit, after: found.at(-1) ?? null })
            assert.isAtLeast(page.length, 1)
            found.push(...page)
          }
          const named = (of: typeof all) => of.map(({ consumer_id, project_id }) => [project_id, consumer_id])
          assert.deepStrictEqual(named(found), named(all))
          assert.deepStrictEqual(yield* lagging(wide, project, { limit, after: all.at(-1)! }), [])
        }
      }
    }))

  it.effect("drift is noted while the event state differs from the tables, and cleared once they agree", () =>
    Effect.gen(function* () {
      const { sql, wide } = yield* Database
      const { look } = yield* Drift
      const { asking, institution, project } = yield* scene
      const [gone, ill] = [yield* person(), yield* person()]
      const revoked = yield* access(institution, project, gone)
      yield* access(institution, project, gone, { id: revoked, version: 2, state: "revoked" })
      const kept = yield* access(institution, project, ill)
      yield* access(institution, project, ill, { id: kept, version: 2, role: "editor" })
      yield* person({ id: ill, version: 2, status: "suspended" })
      const second = yield* person()
      const owns = yield* owner(project, second)
      yield* owner(project, second, { id: owns, version: 2, active: false })
      yield* signAll
      yield* everything(asking)
      const all = Effect.gen(function* () {
        yield* sql`update lifecycle_drift_looks set looked_at = 'epoch'`
        while (yield* look);
        return (yield* drifting(wide, project)).map(({ expected, key, observed }) => ({ key, expected, observed }))
      })
      while (yield* look);
      assert.deepStrictEqual(yield* drifting(wide, null), [])

      const held = yield* sql<{ key: string; value: unknown; position: bigint }>`
        delete from lifecycle_state where project_id = ${project} and (key = ${`access/${kept}`} or key like 'person/%')
        returning key, value, position`
      yield* sql`
        insert into lifecycle_state (project_id, key, value, position) values (${project}, ${`owner/${second}`}, '{}', 1)`
      assert.deepStrictEqual(yield* all, [
        { key: `access/${kept}`, expected: "version 2 as editor", observed: null },
        { key: `owner/${second}`, expected: null, observed: "active" },
        { key: `person/https://id.example ${ill}`, expected: "disabled", observed: null },
      ])
      yield* sql`delete from lifecycle_state where project_id = ${project} and key = ${`owner/${second}`}`
      yield* sql`
        insert into lifecycle_state (project_id, key, value, position)
        select ${project}, key, value, 1 from jsonb_to_recordset(${
        sql.json(held.map(({ key, value }) => ({ key, value })))
      })
          r(key text, value jsonb)`
      assert.deepStrictEqual(yield* all, [])

      // Another person now has the subject of a removed one.
      const removed = yield* person()
      yield* access(institution, project, removed)
      yield* tell("person", { id: removed, version: 2, removed: true })
      yield* access(institution, project, yield* person({ subject: removed, status: "suspended" }))
      assert.deepStrictEqual(yield* all, [])
      const key = `person/https://id.example ${removed}`
      yield* sql`delete from lifecycle_state where project_id = ${project} and key = ${key}`
      assert.deepStrictEqual(yield* all, [{ key, expected: "disabled", observed: null }])

      // Drift also shows a person that events disabled and the tables allow to sign in with Access.
      const barred = yield* person()
      yield* access(institution, project, barred)
      yield* sql`
        insert into lifecycle_state (project_id, key, value, position)
        select ${project}, replace(key, ${ill}, ${barred}), replace(value::text, ${ill}, ${barred})::jsonb, 1
        from lifecycle_state where project_id = ${project} and key = ${`person/https://id.example ${ill}`}`
      assert.deepInclude(yield* all, {
        key: `person/https://id.example ${barred}`,
        expected: null,
        observed: "disabled",
      })
    }))
})
