/**
 * The laws of the lifecycle over every event kind, on the real services and a real database: a snapshot and the events
 * after it make the current state; positions have no gaps under concurrent writers and killed connections;
 * acknowledgements only go forward.
 */
import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Exit, Layer } from "effect"
import { SqlError } from "effect/sql"
import { randomUUID } from "node:crypto"
import { InstitutionId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { encodeCursor } from "../../../schemas/identity/Cursor.ts"
import { type LifecycleEventKind, lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { changesOf as ours } from "../../../services/lifecycle/StateProjection.ts"
import { EventLog } from "../../../services/lifecycle/EventLog.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { runOnce } from "../../../services/platform/database/UnitOfWork.ts"
import { type Json, sha256 } from "../../../sdk/Canonical.ts"
import { changesOf, entriesOf, type StateEntry as Known } from "../../../sdk/EventProjection.ts"
import { type VerifiedEvent, type VerifiedSnapshot, verifyEvent, verifySnapshot } from "../../../sdk/Verify.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { anyEvent, diceOf, eventOf, kinds } from "./RandomEvents.ts"
import { everything, pinsFor, scene, signAll, transmitter } from "./LifecycleFixture.ts"

/** Connections for sixteen writers at once, and for the test that watches them. */
const crowded = Layer.unwrap(
  Effect.map(TestDatabase, ({ ownerUrl, url }) => Layer.orDie(Database.layer({ url, ownerUrl, maxConnections: 20 }))),
)

type State = ReadonlyArray<readonly [string, unknown]>

const sorted = (state: ReadonlyMap<string, unknown>): State => [...state].sort(([a], [b]) => a < b ? -1 : 1)

const keyed = (entries: ReadonlyArray<Known>) =>
  new Map(entries.map(({ group, id, value }) => [`${group} ${id}`, value]))

/** The state that a product reaches from a starting state by events. */
const after = (before: ReadonlyArray<Known>, events: ReadonlyArray<VerifiedEvent>): State => {
  const state: Map<string, unknown> = keyed(before)
  for (const { group, id, value } of events.flatMap(changesOf)) {
    if (value === null) state.delete(`${group} ${id}`)
    else state.set(`${group} ${id}`, value)
  }
  return sorted(state)
}

const known = (state: VerifiedSnapshot["state"]) => sorted(keyed(entriesOf(state)))

interface Row {
  readonly id: string
  readonly project_id: string
  readonly kind: LifecycleEventKind
  readonly position: bigint
  readonly epoch: number
  readonly digest: string
  readonly prev_digest: string
  readonly body_digest: string
  readonly txn: string
  readonly sub_id: Json
  readonly payload: Json
}

const history = Effect.fnUntraced(function* (project: string) {
  const { sql } = yield* Database
  return yield* sql<Row>`select * from lifecycle_events where project_id = ${project} order by epoch, position`
})

const kindOf = (uri: string) => kinds.find((kind) => lifecycleEventKinds[kind].uri === uri)!

/** As in `lifecycle_state`, by the transmitter's own fold of what was sent. */
const folded = (events: ReadonlyArray<VerifiedEvent>): State => {
  const state = new Map<string, unknown>()
  for (const { payload, subId, type } of events) {
    for (const { key, value } of ours({ kind: kindOf(type), subId, payload })) {
      if (value === null) state.delete(key)
      else state.set(key, value)
    }
  }
  return sorted(state)
}

class Enough extends Error {}

const fights = new Set(["UniqueViolation", "DeadlockError", "SerializationError"])

layer(transmitter, { excludeTestServices: true, timeout: "2 minutes" })("Laws", (it) => {
  it.effect(
    "snapshot(c) + events(c..h) = state(h), over every event kind, at any time",
    () =>
      Effect.gen(function* () {
        const { append } = yield* EventLog
        const { sql } = yield* Database
        const { snapshot } = yield* CursorApi
        const seed = Math.floor(Math.random() * 2 ** 32)
        const dice = diceOf(seed)
        const made = yield* scene
        const { asking, project } = made
        yield* signAll
        const pins = yield* pinsFor(project)
        const snapshots: Array<VerifiedSnapshot> = []
        let going = true
        // Snapshots are taken all the while, between the commits of other writers.
        const take = Effect.gen(function* () {
          while (going) {
            const token = yield* snapshot(asking)
            snapshots.push(yield* Effect.promise(() => verifySnapshot(token, project, pins)))
          }
        })
        const write = Effect.gen(function* () {
          for (const kind of kinds) yield* runOnce(append(eventOf(dice, kind, made)))
          for (let i = 0; i < 30; i++) {
            const some = Array.from({ length: 1 + dice.below(4) }, () => anyEvent(dice, made))
            yield* runOnce(append(...some))
          }
        })
        yield* Effect.all([
          take,
          Effect.andThen(Effect.all([write, write], { concurrency: "unbounded" }), Effect.sync(() => going = false)),
        ], { concurrency: "unbounded" })
        const last = yield* snapshot(asking)
        snapshots.push(yield* Effect.promise(() => verifySnapshot(last, project, pins)))
        yield* signAll

        const { head, items } = yield* everything(asking, undefined, 200)
        const events = yield* Effect.forEach(items, ({ set }) => Effect.promise(() => verifyEvent(set, pins)))
        assert.deepStrictEqual([...new Set(events.map(({ type }) => kindOf(type)))].sort(), [...kinds].sort())
        const now = known(snapshots.at(-1)!.state)
        assert.strictEqual(snapshots.at(-1)!.position, head)
        const rows = yield* sql<{ key: string; value: unknown }>`
          select key, value from lifecycle_state where project_id = ${project}`
        assert.deepStrictEqual(folded(events), sorted(new Map(rows.map(({ key, value }) => [key, value]))), `${seed}`)
        assert.isAbove(new Set(snapshots.map(({ position }) => position)).size, 2)
        for (const { chainHead, position, state } of snapshots) {
          assert.deepStrictEqual(known(state), after([], events.slice(0, position)), `${seed} up to ${position}`)
          assert.deepStrictEqual(after(entriesOf(state), events.slice(position)), now, `${seed} from ${position}`)
          assert.strictEqual(chainHead, events[position - 1]?.digest)
        }
        // At any cut both state projections hold the same number of things, under names of their own.
        for (let cut = 0; cut <= head; cut += 1 + dice.below(7)) {
          const some = events.slice(0, cut)
          assert.lengthOf(after([], some), folded(some).length, `${seed} cut at ${cut}`)
        }
      }),
    { timeout: 120_000 },
  )

  it.effect(
    "positions have no gaps under sixteen writers, some rolled back, some slow, some disconnected",
    () =>
      Effect.gen(function* () {
        const { append } = yield* EventLog
        const { owner, sql } = yield* Database
        const seed = Math.floor(Math.random() * 2 ** 32)
        const dice = diceOf(seed)
        const crowd = randomUUID()
        const projects = Array.from({ length: 5 }, (_, i) => `${crowd} ${i}`)
        const told = {
          committed: [] as Array<string>,
          lost: [] as Array<ReadonlyArray<string>>,
          taken: [] as Array<string>,
          killed: 0,
        }
        const pause = Effect.suspend(() => Effect.sleep(dice.next() < 0.5 ? 0 : 6 * dice.next()))

        const write = Effect.gen(function* () {
          for (let i = 0; i < 14; i++) {
            const ids: Array<string> = []
            const command = Effect.gen(function* () {
              for (let n = dice.below(3); n >= 0; n--) {
                const events = Array.from(
                  { length: 1 + dice.below(4) },
                  () =>
                    anyEvent(dice, {
                      institution: InstitutionId.make("i"),
                      project: ProjectId.make(dice.one(projects)),
                    }),
                )
                ids.push(...(yield* append(...events)))
                yield* pause
              }
              if (dice.next() < 0.2) return yield* Effect.fail(new Enough())
            })
            // Where the rollback itself loses its connection, the writer ends with that error.
            const exit = yield* Effect.exit(runOnce(command))
            if (Exit.isSuccess(exit)) {
              told.committed.push(...ids)
              continue
            }
            const why = Cause.squash(exit.cause)
            if (why instanceof Enough) told.taken.push(...ids)
            // Writers wait for the positions' lock in one order, so no deadlock or serialization failure may occur.
            else if (SqlError.isSqlError(why) && !fights.has(why.reason._tag)) told.lost.push(ids)
            else assert.fail(String(why))
          }
        })

        // Kills connections in the middle of a transaction, one at a time; slow writers must partly survive.
        let going = true
        const kill = Effect.gen(function* () {
          while (going && told.killed < 60) {
            yield* Effect.sleep(15)
            const rows = yield* owner<{ killed: boolean }>`
              select pg_terminate_backend(pid) as killed from pg_stat_activity
              where datname = current_database() and usename <> current_user and xact_start is not null
                and backend_type = 'client backend'
              order by random() limit 1`
            told.killed += rows.filter(({ killed }) => killed).length
          }
        })
        const writers = Effect.all(Array.from({ length: 16 }, () => write), { concurrency: "unbounded" })
        yield* Effect.all([Effect.andThen(writers, Effect.sync(() => going = false)), kill], {
          concurrency: "unbounded",
        })
        assert.isAbove(told.killed, 0)

        const found = new Map<string, string>()
        for (const project of projects) {
          const rows = yield* history(project)
          let digest = `sha256:${"0".repeat(64)}`
          for (const [i, row] of rows.entries()) {
            assert.strictEqual(Number(row.position), i + 1, `${seed}: ${project}`)
            assert.strictEqual(row.prev_digest, digest)
            digest = sha256(`${digest}\n${row.epoch}\n${row.position}\n${row.body_digest}`)
            assert.strictEqual(row.digest, digest)
            found.set(row.id, row.txn)
          }
          const [head] = yield* sql<{ position: bigint; digest: string }>`
            select position, digest from lifecycle_heads where project_id = ${project}`
          assert.deepStrictEqual([Number(head!.position), head!.digest], [rows.length, digest])
        }
        // Committed events are all there, rolled-back ones are not; of a lost commit either all or none are there.
        for (const id of told.committed) assert.isTrue(found.has(id), `${seed}: ${id}`)
        for (const id of told.taken) assert.isFalse(found.has(id), `${seed}: ${id}`)
        for (const ids of told.lost) {
          const there = ids.filter((id) => found.has(id)).length
          assert.isTrue(there === 0 || there === ids.length, `${seed}: ${there} of ${ids.length}`)
        }
        const all = new Set([...told.committed, ...told.lost.flat()])
        assert.deepStrictEqual([...found.keys()].filter((id) => !all.has(id)), [])
        assert.isAbove(told.committed.length, 100)
      }).pipe(Effect.provide(Layer.provideMerge(Layer.fresh(EventLog.layer), crowded))),
    { timeout: 120_000 },
  )

  it.effect("acknowledgements only go forward, in any order and however many come at once", () =>
    Effect.gen(function* () {
      const { append } = yield* EventLog
      const { sql } = yield* Database
      const { acknowledge } = yield* CursorApi
      const made = yield* scene
      const { asking, project } = made
      const dice = diceOf(Math.floor(Math.random() * 2 ** 32))
      yield* runOnce(append(...Array.from({ length: 30 }, () => anyEvent(dice, made))))
      yield* signAll
      const rows = yield* history(project)
      const head = rows.length
      const at = (position: number) =>
        acknowledge({
          ...asking,
          installed_version: "1",
          cursor: encodeCursor({ epoch: 1, position }),
          chain_head: position === 0 ? `sha256:${"0".repeat(64)}` : rows[position - 1]!.digest,
        })
      let highest = 0
      for (let round = 0; round < 4; round++) {
        const places = Array.from({ length: 12 }, () => dice.below(head))
        places.push(places[0]!, places[0]!)
        const answers = yield* Effect.forEach(places, at, { concurrency: "unbounded" })
        answers.forEach(({ lag }, i) => {
          assert.isAtLeast(head - lag, Math.max(places[i]!, highest))
        })
        highest = Math.max(highest, ...places)
        assert.strictEqual(Math.max(...answers.map(({ lag }) => head - lag)), highest)
        const [row] = yield* sql<{ acknowledged_position: bigint }>`
          select acknowledged_position from lifecycle_consumers where project_id = ${project}`
        assert.strictEqual(Number(row!.acknowledged_position), highest)
      }
      // Repeating an acknowledgement keeps its time.
      const when = sql<{ acknowledged_at: Date }>`
        select acknowledged_at from lifecycle_consumers where project_id = ${project}`
      const before = yield* when
      yield* at(highest)
      yield* at(0)
      assert.deepStrictEqual(yield* when, before)
    }))
})
