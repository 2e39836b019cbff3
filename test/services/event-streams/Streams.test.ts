import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result } from "effect"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import type { LifecycleEventKind } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { poll, push } from "../../../schemas/identity/StreamBodies.ts"
import type { Subject } from "../../../schemas/identity/SubjectIds.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { Streams } from "../../../services/event-streams/Streams.ts"
import { streamColumns, type StreamRow } from "../../../services/event-streams/Streams/Rows.ts"
import { isFor, type SaidSubject } from "../../../services/event-streams/Streams/StreamSubjects.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { access, person } from "../../support/TestIdentity.ts"
import { grant, publicUrl, scene, transmitter } from "../lifecycle/LifecycleFixture.ts"

const limits = { perReceiver: 3, subjects: 8 }
const managed = Streams.layer(publicUrl, limits).pipe(
  Layer.provide(RateLimits.layer),
  Layer.provide(
    Outbound.layer({ allowedCidrs: [], certificateAuthorities: [], timeoutMillis: 1_000, ownPorts: [] }),
  ),
  Layer.provideMerge(transmitter),
)

const receiving = Effect.gen(function* () {
  const made = yield* scene
  const clientId = `receiver-${randomUUID()}`
  const grantId = yield* grant(made, clientId, ["stream.manage"])
  return { ...made, grantId, receiver: { issuer: made.asking.issuer, clientId } }
})

const rowOf = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<StreamRow>`select ${streamColumns(sql)} from lifecycle_streams t where t.id = ${id}::uuid`
  return row!
})

const headOf = Effect.fnUntraced(function* (project: string) {
  const { sql } = yield* Database
  const [head] = yield* sql<{ epoch: number; position: bigint }>`
    select epoch, position from lifecycle_heads where project_id = ${project}`
  return head!
})

const nameOf = (error: unknown) => error instanceof Error ? error.name : String(error)
const outcome = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.result(effect), (result) => Result.isSuccess(result) ? "done" : nameOf(result.failure))

const pushed = (endpoint_url: string, authorization_header?: string) => ({
  method: push,
  endpoint_url,
  ...(authorization_header === undefined ? {} : { authorization_header }),
} as const)

layer(managed, { excludeTestServices: true })("Streams", (it) => {
  it.effect("a stream begins at its project's head at the moment of its creation", () =>
    Effect.gen(function* () {
      const { create } = yield* Streams
      const { institution, project, receiver } = yield* receiving
      yield* access(institution, project, yield* person())
      const before = yield* headOf(project)
      const { stream_id } = yield* create(receiver, {})
      yield* access(institution, project, yield* person())
      const { epoch, position, status } = yield* rowOf(stream_id)
      assert.deepStrictEqual({ epoch, position, status }, { ...before, status: "enabled" })
      assert.isTrue((yield* headOf(project)).position > position)
    }))

  it.effect("a receiver has a limited number of streams of a project, also under concurrent creations", () =>
    Effect.gen(function* () {
      const { create, list, remove } = yield* Streams
      const { receiver } = yield* receiving
      const outcomes = yield* Effect.all(Array.from({ length: 6 }, () => outcome(create(receiver, {}))), {
        concurrency: "unbounded",
      })
      assert.deepStrictEqual(outcomes.sort(), ["StreamLimit", "StreamLimit", "StreamLimit", "done", "done", "done"])
      const [first] = yield* list(receiver)
      yield* remove(receiver, first!.stream_id)
      assert.strictEqual(yield* outcome(create(receiver, {})), "done")
      const { receiver: another } = yield* receiving
      assert.strictEqual(yield* outcome(create(another, {})), "done")
    }))

  it.effect("a grant revoked meanwhile lets no stream be made or changed: the caller waits and is refused", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { change, create, list } = yield* Streams
      const { revoke } = yield* ServiceGrants
      const { administrator, grantId, project, receiver } = yield* receiving
      const { stream_id } = yield* create(receiver, {})
      const [revoked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const losing = yield* Effect.forkChild(run(Effect.gen(function* () {
        yield* revoke({ personId: administrator, projectId: project, grantId, reason: "over and out" })
        yield* Deferred.succeed(revoked, undefined)
        yield* Deferred.await(go)
      })))
      yield* Deferred.await(revoked)
      const calls = [create(receiver, {}), change(receiver, "update", { stream_id, description: "too late" })]
      const asking = yield* Effect.forEach(calls, (call) => Effect.forkChild(outcome<unknown, unknown, never>(call)))
      const waits = sql<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%service_grants%'`
      yield* waits.pipe(Effect.repeat({ until: ([row]) => row!.n === calls.length }))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(losing)
      for (const call of asking) assert.strictEqual(yield* Fiber.join(call), "CapabilityRequired")
      assert.strictEqual(yield* outcome(list(receiver)), "CapabilityRequired")
      const rows = yield* sql`select description from lifecycle_streams where project_id = ${project}`
      assert.deepStrictEqual(rows, [{ description: null }])
    }))

  it.effect("a grant of another environment, an expired one, and one of a withdrawn project are refused", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const { create, list, read } = yield* Streams
      const { grantId, project, receiver } = yield* receiving
      const { stream_id } = yield* create(receiver, {})
      const refused = Effect.fnUntraced(function* () {
        for (const call of [create(receiver, {}), list(receiver), read(receiver, stream_id)]) {
          assert.strictEqual(yield* outcome<unknown, unknown, never>(call), "CapabilityRequired")
        }
      })
      yield* owner`update projects set environment = 'staging' where id = ${project}`
      yield* refused()
      yield* owner`update projects set environment = 'production', state = 'withdrawn' where id = ${project}`
      yield* refused()
      yield* owner`update projects set state = 'launched' where id = ${project}`
      assert.strictEqual(yield* outcome(read(receiver, stream_id)), "done")
      yield* owner`update service_grants set expires_at = 'epoch' where id = ${grantId}::uuid`
      yield* refused()
    }))

  it.effect("a held installation lets no stream send more; pausing and deleting still work", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const { change, create, remove, setStatus } = yield* Streams
      const { receiver } = yield* receiving
      const { stream_id } = yield* create(receiver, {})
      yield* owner`update installation set state = 'held', held_since = 'epoch', held_reason = 'restored'`
      const delivery = pushed("https://receiver.example/")
      for (
        const call of [
          create(receiver, {}),
          change(receiver, "update", { stream_id, delivery }),
          setStatus(receiver, { stream_id, status: "enabled" }),
        ]
      ) {
        assert.strictEqual(yield* outcome<unknown, unknown, never>(call), "Held")
      }
      assert.strictEqual((yield* change(receiver, "update", { stream_id, description: "mine" })).description, "mine")
      assert.strictEqual((yield* setStatus(receiver, { stream_id, status: "paused" })).status, "paused")
      assert.deepInclude(yield* rowOf(stream_id), { delivery: "poll", status: "paused" })
      yield* remove(receiver, stream_id)
      yield* owner`update installation set state = 'open', held_since = null, held_reason = null`
      assert.strictEqual(yield* outcome(create(receiver, {})), "done")
    }))

  it.effect("a new address or authorization clears the stream's failures; the same one keeps them", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { change, create } = yield* Streams
      const { receiver } = yield* receiving
      const there = pushed("https://receiver.example/", "Bearer one")
      const { stream_id } = yield* create(receiver, { delivery: there })
      const failing = Effect.gen(function* () {
        yield* sql`
          update lifecycle_streams set attempts = 5, not_before = '2999-01-01', last_error = 'timeout', claim = 7,
            lease_until = '2999-01-01', failing_since = '2020-01-01', reached = 9
          where id = ${stream_id}::uuid`
        yield* sql`
          insert into lifecycle_stream_failing (stream_id, subject_digest, subject, epoch, position, attempts, not_before)
          values (${stream_id}::uuid, ${randomUUID()}, '{}', 1, 1, 1, '2999-01-01')`
      })
      const slate = Effect.map(
        sql`
          select t.attempts, t.not_before = 'epoch' as due, t.last_error, t.claim, t.failing_since, t.reached,
            (select count(*)::int from lifecycle_stream_failing f where f.stream_id = t.id) as failing
          from lifecycle_streams t where t.id = ${stream_id}::uuid`,
        ([row]) => row,
      )
      const clean = {
        attempts: 0,
        due: true,
        last_error: null,
        claim: null,
        failing_since: null,
        reached: null,
        failing: 0,
      }
      yield* failing
      yield* change(receiver, "update", { stream_id, description: "same place" })
      yield* change(receiver, "replace", { stream_id, delivery: there })
      assert.deepInclude(yield* slate, { attempts: 5, claim: 7n, failing: 1 })
      for (
        const delivery of [
          pushed("https://receiver.example/", "Bearer two"),
          pushed("https://elsewhere.example/", "Bearer two"),
          { method: poll } as const,
          there,
        ]
      ) {
        yield* failing
        yield* change(receiver, "update", { stream_id, delivery })
        assert.deepStrictEqual(yield* slate, clean, JSON.stringify(delivery))
      }
    }))

  it.effect("the stored subjects select the same events as every choice ever made, and are limited", () =>
    Effect.gen(function* () {
      const { create, say } = yield* Streams
      const { receiver } = yield* receiving
      const { stream_id } = yield* create(receiver, {})
      const user = (sub: string): Subject => ({ format: "iss_sub", iss: "https://id.example", sub })
      const opaque = (id: string): Subject => ({ format: "opaque", id })
      const members = { user: user("a"), application: opaque("p"), tenant: opaque("t") }
      const subjects: ReadonlyArray<Subject> = [
        ...[user("a"), user("b"), opaque("p"), { format: "complex", ...members }],
        ...[{ format: "complex", tenant: opaque("t") }, { format: "complex", user: user("a"), device: opaque("d") }],
      ]
      const events = [...subjects, { format: "complex", ...members, user: user("b") }]
        .map((subId) => ({ kind: "access-revoked" as LifecycleEventKind, subId }))
      const said: Array<SaidSubject> = []
      const context = yield* Effect.context<Database>()
      const step = (one: SaidSubject) =>
        Effect.gen(function* () {
          yield* say(receiver, stream_id, one.subject, one.included)
          said.push(one)
          const stream = yield* rowOf(stream_id)
          // The latest choice about a subject replaces the earlier ones.
          const last = said.filter(({ subject }, i) => !said.slice(i + 1).some((later) => later.subject === subject))
          assert.deepStrictEqual(
            events.map((event) => isFor(stream, event)),
            events.map((event) => isFor({ events_requested: null, subjects: last }, event)),
          )
          if (last.every(({ included }) => included)) assert.deepStrictEqual(stream.subjects, [])
        })
      const one = fc.record({ subject: fc.constantFrom(...subjects), included: fc.boolean() })
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 8 }), (steps) =>
            Effect.runPromiseWith(context)(Effect.forEach(steps, step, { discard: true }))),
          { numRuns: 8, endOnFailure: true },
        )
      )
      const many = Effect.forEach(
        Array.from({ length: limits.subjects + 1 }, (_, i) => opaque(`many-${i}`)),
        (subject) => say(receiver, stream_id, subject, false),
        { discard: true },
      )
      assert.strictEqual(yield* outcome(many), "SubjectLimit")
      const { subjects: kept } = yield* rowOf(stream_id)
      assert.lengthOf(kept, limits.subjects)
      // At the limit the receiver may still change its choice about a stored subject.
      assert.strictEqual(yield* outcome(say(receiver, stream_id, kept[0]!.subject, false)), "done")
    }))
})
