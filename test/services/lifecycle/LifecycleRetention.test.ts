import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { encodeCursor } from "../../../schemas/identity/Cursor.ts"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { LifecycleRetention } from "../../../services/lifecycle/LifecycleRetention.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { leastIdAt } from "../../../services/platform/Ids.ts"
import { verifySnapshot } from "../../../sdk/Verify.ts"
import { tagOf } from "../../support/Fixtures.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { access, member, person } from "../../support/TestIdentity.ts"
import { daysAgo } from "./Ago.ts"
import { stream } from "./Keys/KeysFixture.ts"
import { everything, pinsFor, scene, signAll, transmitter } from "./LifecycleFixture.ts"

const fixture = Layer.mergeAll(LifecycleRetention.layer, AccessReviews.layer.pipe(Layer.provide(Roles.layer))).pipe(
  Layer.provideMerge(transmitter),
)

const positions = Effect.fnUntraced(function* (project: string) {
  const { sql } = yield* Database
  const rows = yield* sql<{ position: bigint }>`
    select position from lifecycle_events where project_id = ${project} order by position`
  return rows.map(({ position }) => Number(position))
})

/** A project with an old history, an Access 15 minutes older than 90 days, and one 15 minutes younger. */
const long = Effect.gen(function* () {
  const made = yield* daysAgo(200)(scene)
  const old = yield* daysAgo(90.01)(Effect.flatMap(person(), (who) => access(made.institution, made.project, who)))
  yield* daysAgo(90.01)(signAll)
  const young = yield* daysAgo(89.99)(Effect.flatMap(person(), (who) => access(made.institution, made.project, who)))
  yield* daysAgo(89.99)(signAll)
  const { head } = yield* Effect.map(positions(made.project), (all) => ({ head: all.at(-1)! }))
  return { ...made, old, young, head }
})

layer(fixture, { excludeTestServices: true })("Retention", (it) => {
  it.effect("events older than 90 days are pruned from the beginning; a cursor before the rest is expired", () =>
    Effect.gen(function* () {
      const { acknowledge, events, snapshot } = yield* CursorApi
      const { sql } = yield* Database
      const { prune } = yield* LifecycleRetention
      const { asking, head, project } = yield* long
      assert.isAbove(head, 3)
      yield* prune
      assert.deepStrictEqual(yield* positions(project), [head])
      assert.strictEqual(yield* prune, 0)
      const messages = yield* sql<{ position: bigint }>`
        select position from lifecycle_messages where project_id = ${project}`
      assert.deepStrictEqual(messages.map(({ position }) => Number(position)), [head])
      const from = (position: number) => encodeCursor({ epoch: 1, position })
      const poll = (after: string | undefined) => tagOf(events({ ...asking, after, limit: 10, waitMillis: 0 }))
      assert.strictEqual(yield* poll(undefined), "CursorExpired")
      assert.strictEqual(yield* poll(from(head - 2)), "CursorExpired")
      assert.deepStrictEqual((yield* everything(asking, from(head - 1))).items.map(({ position }) => position), [head])

      const token = yield* snapshot(asking)
      const pins = yield* pinsFor(project)
      const taken = yield* Effect.promise(() => verifySnapshot(token, project, pins))
      assert.lengthOf(taken.state["access"] as ReadonlyArray<unknown>, 2)
      const say = (position: number, chain_head: string) =>
        acknowledge({ ...asking, cursor: from(position), installed_version: "1", chain_head })
      assert.strictEqual(yield* tagOf(say(head - 2, taken.chainHead)), "CursorExpired")
      assert.strictEqual(yield* tagOf(say(head - 1, taken.chainHead)), "ChainMismatch")
      assert.strictEqual((yield* say(head, taken.chainHead)).lag, 0)
    }))

  it.effect("a project whose whole history was pruned is followed, snapshotted and acknowledged as before", () =>
    Effect.gen(function* () {
      const { acknowledge, events, snapshot } = yield* CursorApi
      const { prune } = yield* LifecycleRetention
      const { asking, project } = yield* daysAgo(200)(scene)
      yield* daysAgo(200)(signAll)
      yield* prune
      assert.deepStrictEqual(yield* positions(project), [])
      const token = yield* snapshot(asking)
      const pins = yield* pinsFor(project)
      const { chainHead, cursor, position } = yield* Effect.promise(() => verifySnapshot(token, project, pins))
      const page = yield* events({ ...asking, after: cursor, limit: 10, waitMillis: 0 })
      assert.deepStrictEqual(page, { items: [], cursor, head: position, more: false })
      const said = { ...asking, cursor, installed_version: "1", chain_head: chainHead }
      assert.deepStrictEqual(yield* acknowledge(said), { acknowledged_cursor: cursor, head: position, lag: 0 })
    }))

  it.effect("an unsigned event is not pruned, nor one with a younger event before it", () =>
    Effect.gen(function* () {
      const { prune } = yield* LifecycleRetention
      const unsigned = yield* daysAgo(120)(scene)
      const before = yield* positions(unsigned.project)
      yield* prune
      assert.deepStrictEqual(yield* positions(unsigned.project), before)
      yield* daysAgo(120)(signAll)
      // The clock of the younger event's process was behind, so its position is the lower one.
      const mixed = yield* scene
      yield* daysAgo(120)(Effect.flatMap(person(), (who) => access(mixed.institution, mixed.project, who)))
      yield* signAll
      const all = yield* positions(mixed.project)
      yield* prune
      assert.deepStrictEqual(yield* positions(mixed.project), all)
      assert.deepStrictEqual(yield* positions(unsigned.project), [])
    }))

  it.effect("a process without the owner's role leaves events, and prunes the rest", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { url } = yield* TestDatabase
      const { snapshot } = yield* CursorApi
      const { asking, project } = yield* long
      const before = yield* positions(project)
      yield* daysAgo(2)(snapshot(asking))
      const weaker = Layer.fresh(LifecycleRetention.layer).pipe(
        Layer.provide(Database.layer({ url, ownerUrl: null, maxConnections: 1 })),
      )
      const { prune } = Context.get(yield* Layer.build(weaker), LifecycleRetention)
      assert.strictEqual(yield* prune, 0)
      assert.deepStrictEqual(yield* positions(project), before)
      const old = sql`select from lifecycle_snapshot_parts where named_at < now() - interval '1 day'`
      assert.lengthOf(yield* old, 0)
    }).pipe(Effect.scoped))

  it.effect("younger events cannot be deleted, and events and positions cannot be changed by any role", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const { prune } = yield* LifecycleRetention
      const { project } = yield* long
      yield* prune
      const refused = (statement: string) => Effect.map(Effect.flip(owner.unsafe(statement)), String)
      const of = `where project_id = '${project}'`
      yield* refused(`delete from lifecycle_events ${of}`)
      for (
        const statement of [
          `update lifecycle_events set kind = 'account-enabled' ${of}`,
          `update lifecycle_places set position = 1 ${of}`,
          `delete from lifecycle_places ${of}`,
          "truncate lifecycle_events",
        ]
      ) yield* refused(statement)
      assert.lengthOf(yield* positions(project), 1)
      for (const table of ["lifecycle_events", "lifecycle_places"]) {
        const denied = yield* Effect.flip(sql.unsafe(`delete from ${table}`))
        assert.strictEqual(denied.reason._tag, "AuthorizationError")
      }
    }))

  it.effect("decisions keep their pruned events: an old Access is reviewed, an old grant stays acknowledged", () =>
    Effect.gen(function* () {
      const { acknowledge, snapshot } = yield* CursorApi
      const { sql } = yield* Database
      const { prune } = yield* LifecycleRetention
      const { asking, grantId, institution, old, owner, project } = yield* long
      const sponsor = yield* person()
      yield* member(institution, sponsor, "sponsor")
      const token = yield* snapshot(asking)
      const pins = yield* pinsFor(project)
      const { chainHead, cursor } = yield* Effect.promise(() => verifySnapshot(token, project, pins))
      yield* acknowledge({ ...asking, cursor, installed_version: "1", chain_head: chainHead })
      const { list } = yield* ServiceGrants
      const facts = Effect.map(
        list({ personId: owner, projectId: project, afterId: null, limit: 100 }),
        (grants) => grants.find(({ id }) => id === grantId)!,
      )
      const before = yield* facts
      assert.strictEqual(before.acknowledgement.state, "acknowledged")
      const [grantEvent] = yield* sql<{ id: string; digest: string }>`
        select e.id::text as id, e.digest from access_versions v join lifecycle_events e on e.id = v.event_id
        where v.access_id = ${old}`
      yield* prune
      assert.deepStrictEqual(yield* facts, before)

      const { propose } = yield* AccessReviews
      const receipt = yield* run(propose({
        personId: sponsor,
        institutionId: institution,
        access_id: old,
        access_version: 1,
        grant_event_id: null,
        reason: "looked at it again",
      }))
      assert.strictEqual(receipt.grant_event.event_id, grantEvent!.id)
      assert.strictEqual(receipt.grant_event.digest, grantEvent!.digest)
    }))

  it.effect("snapshot parts and a stream's own messages are pruned after their own retention", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { prune } = yield* LifecycleRetention
      const hours = (n: number) => new Date(Date.now() - n * 3_600_000)
      yield* sql`
        insert into lifecycle_snapshot_parts (project_id, digest, content, named_at)
        select 'kept', n::text, '', case when n <= 120 then ${hours(25)}::timestamptz else ${hours(23)} end
        from generate_series(1, 125) n`
      yield* prune
      const left = yield* sql<{ n: number }>`
        select count(*)::int as n from lifecycle_snapshot_parts where project_id = 'kept'`
      assert.deepStrictEqual(left, [{ n: 5 }])

      const id = yield* stream(yield* scene, 0)
      yield* sql`
        insert into lifecycle_stream_messages (id, stream_id, kind, message, created_at, delivered_at)
        select o.id, ${id}::uuid, 'verification', name, made, had
        from (values (${leastIdAt(hours(90 * 24 + 1).getTime())}::uuid, 'waits too long', ${
        hours(90 * 24 + 1)
      }::timestamptz,
            null::timestamptz),
          (${leastIdAt(hours(90 * 24 - 1).getTime())}, 'waits', ${hours(90 * 24 - 1)}, null),
          (${leastIdAt(hours(31).getTime())}, 'had', ${hours(31)}, ${hours(25)}),
          (${leastIdAt(hours(30).getTime())}, 'had lately', ${hours(30)}, ${hours(23)})) o(id, name, made, had)`
      yield* prune
      const own = yield* sql<{ message: string }>`
        select message from lifecycle_stream_messages where stream_id = ${id}::uuid order by message`
      assert.deepStrictEqual(own.map(({ message }) => message), ["had lately", "waits"])
    }))
})
