/** Keys kept for unread streams, rotation over more projects than one transaction takes, and keys of a lost history. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { KeyRotation } from "../../../../services/lifecycle/KeyRotation.ts"
import { ownMessages } from "../../../../services/event-streams/Streams/ControlMessages.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { timed } from "../../transfers/TransferFixture.ts"
import { consumer, ownKids, rotating, served, signedBy, slow, states, stream, work } from "./KeysFixture.ts"
import { everything, publicUrl, scene, signAll } from "../LifecycleFixture.ts"
import { day } from "../../../support/Fixtures.ts"

layer(rotating(), slow)("signing keys after a restore and of unread messages", (it) => {
  it.effect("the last key of the lost history signs here, earlier ones verify, and resuming happens once", () =>
    Effect.gen(function* () {
      const { advance, list, resume } = yield* KeyRotation
      const made = yield* scene
      yield* work
      const own = yield* consumer(made)
      const { active, announced } = yield* states
      const [first, second, third] = [active[0]!, announced[0]!, announced[1]!]
      assert.isFalse(yield* resume([first, "nobody's"]))
      assert.isTrue(yield* resume([first, third]))
      assert.isFalse(yield* Effect.map(Effect.all([resume([second]), advance]), ([again]) => again))
      yield* work
      assert.deepInclude(yield* states, { active: [third], retiring: [first, second], published: [] })
      assert.lengthOf((yield* states).announced, 2)
      assert.isNull((yield* list).transition)
      assert.isFalse(yield* resume([first, third]))
      assert.strictEqual((yield* signedBy(made.project)).at(-1), third)
      assert.strictEqual((yield* own.read).at(-1)!.kid, third)
    }).pipe(timed))

  it.effect("a key is kept for a stream's own unread messages; those signed by a stolen key are dropped", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const { sql } = yield* Database
      const { addVerification } = yield* ownMessages(publicUrl)
      yield* TestClock.adjust(100 * day)
      const made = yield* scene
      yield* work
      const { active: [first] } = yield* states
      const paused = yield* stream(made, 0)
      yield* addVerification(paused, "asked")
      assert.deepStrictEqual(yield* ownKids(paused), [first!])
      yield* rotation.announce(0)
      yield* rotation.activate({ force: true })
      yield* work
      yield* sql`
        update lifecycle_streams t set position = h.position from lifecycle_heads h
        where t.id = ${paused}::uuid and h.project_id = t.project_id`
      yield* TestClock.adjust(8 * day)
      yield* work
      assert.include((yield* states).retiring, first)

      const { active: [second] } = yield* states
      yield* addVerification(paused, "again")
      yield* rotation.compromise(second!, "found in a log")
      assert.deepStrictEqual(yield* ownKids(paused), [first!])
      yield* sql`update lifecycle_stream_messages set delivered_at = created_at where stream_id = ${paused}::uuid`
      yield* work
      assert.include((yield* states).retired, first)
    }).pipe(timed))
})

layer(rotating(), slow)("unread streams", (it) => {
  it.effect("keep the old key for 90 days; only their unread messages of a stolen key are signed anew", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const { sql } = yield* Database
      const [holds, other] = [yield* scene, yield* scene]
      yield* work
      const told = yield* everything(holds.asking)
      yield* stream(holds, told.head - 2)
      yield* rotation.announce(0)
      yield* rotation.activate({ force: true })
      yield* work
      const first = (yield* states).retiring[0]!
      yield* TestClock.adjust(89 * day)
      yield* work
      assert.deepStrictEqual((yield* states).retiring, [first])
      assert.include(yield* served, first)

      // The unread events are signed again under the next key, at the same positions.
      const messages = (project: string) =>
        sql<{ position: number; kid: string; message: string; payload: string }>`
          select m.position::int as position, m.kid, m.message, o.payload from lifecycle_messages m
          join outbox o on o.id = m.event_id where m.project_id = ${project} order by m.position`
      const [before, untouched] = [yield* messages(holds.project), yield* messages(other.project)]
      const second = (yield* states).active[0]!
      yield* rotation.compromise(first, "found in a log")
      yield* work
      const after = yield* messages(holds.project)
      assert.lengthOf(after, before.length + 1)
      before.forEach(({ kid, message, position }, i) => {
        const anew = kid === first && position > told.head - 2
        assert.deepStrictEqual([after[i]!.position, after[i]!.kid], [position, anew ? second : kid])
        assert.strictEqual(after[i]!.message === message, !anew)
        // The message was not published yet, so the outbox carries the new signature.
        assert.strictEqual(after[i]!.payload, after[i]!.message)
      })
      assert.deepStrictEqual((yield* messages(other.project)).slice(0, untouched.length), untouched)
      assert.deepStrictEqual((yield* states).compromised, [first])
    }).pipe(timed))

  it.effect("keep the old key no longer than 90 days", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      yield* TestClock.adjust(200 * day)
      const made = yield* scene
      yield* work
      yield* stream(made, 1)
      yield* rotation.announce(0)
      yield* work
      const { retiring } = yield* states
      yield* TestClock.adjust(90 * day - 1)
      yield* work
      assert.deepStrictEqual((yield* states).retiring, retiring)
      yield* TestClock.adjust(1)
      yield* work
      assert.deepStrictEqual((yield* states).retired, retiring)
    }).pipe(timed))
})

layer(rotating(), slow)("more projects than one transaction may lock", (it) => {
  it.effect("are told of a rotation, and switch, in batches of a hundred", () =>
    Effect.gen(function* () {
      const rotation = yield* KeyRotation
      const { sql } = yield* Database
      const made = yield* scene
      yield* work
      const { active: [first], announced: [second] } = yield* states
      // 210 more projects that get no events any more.
      yield* sql`
        insert into lifecycle_project_keys (project_id, kid, news_id, told_epoch, told_position)
        select 'gone-' || n, ${first!}, 0, 0, 0 from generate_series(1, 210) n`
      yield* rotation.announce(0)
      const counted = Effect.map(rotation.list, ({ transition }) => [transition!.untold, transition!.left])
      const steps: Array<ReadonlyArray<number>> = []
      while ((yield* rotation.list).transition !== null) {
        yield* rotation.advance
        if ((yield* rotation.list).transition !== null) steps.push(yield* counted)
        if (steps.at(-1)?.[1] === 0) yield* signAll
      }
      const distinct = steps.filter((step, i) => String(step) !== String(steps[i - 1]))
      assert.deepStrictEqual(distinct, [[111, 211], [11, 211], [0, 211], [0, 111], [0, 11], [0, 0]])
      assert.strictEqual((yield* signedBy(made.project)).at(-1), second)
    }).pipe(timed))
})
