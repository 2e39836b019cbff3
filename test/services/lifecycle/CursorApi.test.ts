import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Tracer } from "effect"
import { type InstitutionId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { encodeCursor } from "../../../schemas/identity/Cursor.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { genesis } from "../../../services/platform/security/CanonicalJson.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { verifySnapshot } from "../../../sdk/Verify.ts"
import { tagOf } from "../../support/Fixtures.ts"
import { access, link, person } from "../../support/TestIdentity.ts"
import { measured } from "../event-streams/StreamFixture.ts"
import { everything, grant, pinsFor, scene, signAll, transmitter } from "./LifecycleFixture.ts"

/** Makes one more Access and signs its event. */
const more = Effect.fnUntraced(function* (institution: InstitutionId, project: ProjectId) {
  yield* access(institution, project, yield* person())
  yield* signAll
})

const chainHead = Effect.fnUntraced(function* (project: string, position: number) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ digest: string }>`
    select digest from lifecycle_events where project_id = ${project} and position = ${position}`
  return row?.digest ?? genesis
})

layer(transmitter, { excludeTestServices: true })("Consumption", (it) => {
  it.effect("pages follow each other without a gap or a repeat, and the last cursor leads to later events", () =>
    Effect.gen(function* () {
      const { asking, institution, project } = yield* scene
      yield* Effect.forEach(Array.from({ length: 4 }), () => more(institution, project))
      const all = yield* everything(asking, undefined, 1_000)
      for (const limit of [1, 3]) assert.deepStrictEqual(yield* everything(asking, undefined, limit), all)
      yield* more(institution, project)
      const { items } = yield* everything(asking, all.cursor)
      assert.deepStrictEqual(items.map(({ position }) => position), [all.head + 1])
    }))

  it.effect("a position counts as delivered once, however often it is read, and never by a snapshot", () =>
    Effect.gen(function* () {
      const { acknowledge, events } = yield* CursorApi
      const { sql } = yield* Database
      const { asking, institution, project } = yield* scene
      yield* signAll
      const before = yield* measured("cursor")
      const counted = Effect.gen(function* () {
        const [row] = yield* sql<{ kept: number }>`
          select coalesce(sum(n), 0)::int as kept from lifecycle_consumers, unnest(to_delivery) n
          where project_id = ${project}`
        return [(yield* measured("cursor")) - before, row!.kept]
      })
      const [first] = (yield* events({ ...asking, after: undefined, limit: 2, waitMillis: 0 })).items
      assert.deepStrictEqual(yield* counted, [2, 2])
      const { cursor, head } = yield* everything(asking, undefined, 3)
      yield* everything(asking, undefined, 1)
      assert.strictEqual(first!.position, 1)
      assert.deepStrictEqual(yield* counted, [head, head])
      // The consumer has acknowledged a snapshot and reads again from an older cursor.
      yield* more(institution, project)
      const at = encodeCursor({ epoch: 1, position: head + 1 })
      yield* acknowledge({
        ...asking,
        cursor: at,
        installed_version: "1",
        chain_head: yield* chainHead(project, head + 1),
      })
      yield* more(institution, project)
      yield* everything(asking, cursor)
      assert.deepStrictEqual(yield* counted, [head + 1, head + 1])
    }))

  it.effect("a long poll is answered by the next event, not by the end of its wait", () =>
    Effect.gen(function* () {
      const { events } = yield* CursorApi
      const { asking, institution, project } = yield* scene
      yield* signAll
      const { cursor, head } = yield* everything(asking)
      const waiting = yield* Effect.forkChild(events({ ...asking, after: cursor, limit: 10, waitMillis: 600_000 }))
      yield* more(institution, project)
      const { items } = yield* Fiber.join(waiting)
      assert.deepStrictEqual(items.map(({ position }) => position), [head + 1])
    }))

  it.effect("a long poll for one project runs no query because of another project's events", () =>
    Effect.gen(function* () {
      const { events } = yield* CursorApi
      const [here, there] = [yield* scene, yield* scene]
      yield* signAll
      const { cursor } = yield* everything(here.asking)
      let statements = 0
      const counting = Tracer.make({
        span: (options) => {
          if (options.kind === "client") statements += 1
          return new Tracer.NativeSpan(options)
        },
      })
      const waiting = yield* Effect.forkChild(
        events({ ...here.asking, after: cursor, limit: 10, waitMillis: 1_500 }).pipe(
          Effect.provideService(Tracer.Tracer, counting),
        ),
        { startImmediately: true },
      )
      yield* more(there.institution, there.project)
      yield* more(there.institution, there.project)
      assert.deepStrictEqual((yield* Fiber.join(waiting)).items, [])
      // One query when the poll came, one when its wait was over.
      assert.strictEqual(statements, 2)
    }))

  it.effect("a revoked grant is refused on the next poll and during a wait; a service without a grant gets 404", () =>
    Effect.gen(function* () {
      const { acknowledge, events, snapshot } = yield* CursorApi
      const { administrator, asking, grantId, project, ...rest } = yield* scene
      yield* signAll
      const { cursor } = yield* everything(asking)
      const poll = (who = asking) => tagOf(events({ ...who, after: cursor, limit: 10, waitMillis: 0 }))
      assert.strictEqual(yield* poll({ ...asking, clientId: "nobody" }), "NotFound")
      assert.strictEqual(yield* poll({ ...asking, issuer: "https://other.example" }), "NotFound")
      assert.strictEqual(yield* poll({ ...asking, projectId: ProjectId.make("nothing") }), "NotFound")
      yield* grant({ administrator, project, ...rest }, "reader", ["events.read"])
      const reader = { ...asking, clientId: "reader" }
      assert.strictEqual(yield* poll(reader), "done")
      assert.strictEqual(yield* tagOf(snapshot(reader)), "RoleRequired")
      const acknowledgement = { cursor, installed_version: "1", chain_head: genesis }
      assert.strictEqual(yield* tagOf(acknowledge({ ...reader, ...acknowledgement })), "RoleRequired")

      yield* signAll
      const { cursor: latest } = yield* everything(asking)
      const waiting = yield* Effect.forkChild(
        tagOf(events({ ...asking, after: latest, limit: 10, waitMillis: 600_000 })),
      )
      const { revoke } = yield* ServiceGrants
      yield* run(revoke({ personId: administrator, projectId: project, grantId, reason: "over and out" }))
      assert.strictEqual(yield* Fiber.join(waiting), "RoleRequired")
      assert.strictEqual(yield* poll(), "RoleRequired")
      assert.strictEqual(yield* tagOf(snapshot(asking)), "RoleRequired")
    }))

  it.effect("a cursor before the oldest kept event is expired, whether later events are kept or none", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const { events } = yield* CursorApi
      const { asking, project } = yield* scene
      yield* signAll
      const { head } = yield* everything(asking)
      const from = (position: number) =>
        tagOf(events({ ...asking, after: encodeCursor({ epoch: 1, position }), limit: 10, waitMillis: 0 }))
      yield* owner`delete from lifecycle_messages where project_id = ${project} and position <= 2`
      assert.strictEqual(yield* from(1), "CursorExpired")
      assert.strictEqual(
        yield* tagOf(events({ ...asking, after: undefined, limit: 10, waitMillis: 0 })),
        "CursorExpired",
      )
      assert.strictEqual(yield* from(2), "done")
      yield* owner`delete from lifecycle_messages where project_id = ${project}`
      assert.strictEqual(yield* from(2), "CursorExpired")
      assert.strictEqual(yield* from(head), "done")
    }))

  it.effect("an unreadable cursor, one of another epoch and one beyond the head are refused by their own errors", () =>
    Effect.gen(function* () {
      const { acknowledge, events } = yield* CursorApi
      const { asking, project } = yield* scene
      yield* signAll
      const { head } = yield* everything(asking)
      const cases: ReadonlyArray<readonly [string, string]> = [
        ...["", "A", "AAAA=", "...", "Ä", "not a cursor", "A".repeat(45), encodeCursor({ epoch: 2, position: 0 })]
          .map((cursor) => [cursor, "CursorEpochChanged"] as const),
        [encodeCursor({ epoch: 1, position: head + 1 }), "CursorAhead"],
        [encodeCursor({ epoch: 1, position: Number.MAX_SAFE_INTEGER }), "CursorAhead"],
      ]
      for (const [cursor, expected] of cases) {
        assert.strictEqual(
          yield* tagOf(events({ ...asking, after: cursor, limit: 10, waitMillis: 0 })),
          expected,
          cursor,
        )
        const told = { ...asking, cursor, installed_version: "1", chain_head: yield* chainHead(project, head) }
        assert.strictEqual(yield* tagOf(acknowledge(told)), expected, cursor)
      }
    }))

  it.effect("a snapshot's cursor leads to later events even where the snapshot's own events are not signed yet", () =>
    Effect.gen(function* () {
      const { acknowledge, events, snapshot } = yield* CursorApi
      const { asking, institution, project } = yield* scene
      const pins = yield* Effect.andThen(signAll, pinsFor(project))
      yield* access(institution, project, yield* person())
      const token = yield* snapshot(asking)
      const { chainHead, cursor, position, state } = yield* Effect.promise(() => verifySnapshot(token, project, pins))
      assert.lengthOf(state["access"] as ReadonlyArray<unknown>, 1)
      const answer = yield* events({ ...asking, after: cursor, limit: 10, waitMillis: 0 })
      assert.deepStrictEqual(answer, { items: [], cursor, head: position, more: false })
      const acknowledged = yield* acknowledge({ ...asking, cursor, installed_version: "1", chain_head: chainHead })
      assert.deepStrictEqual(acknowledged, { acknowledged_cursor: cursor, head: position, lag: 0 })
      yield* more(institution, project)
      assert.deepStrictEqual((yield* everything(asking, cursor)).items.map(({ position }) => position), [position + 1])
    }))

  it.effect("acknowledgements only go forward, and count for the installed version and this chain alone", () =>
    Effect.gen(function* () {
      const { acknowledge } = yield* CursorApi
      const { asking, institution, project } = yield* scene
      yield* more(institution, project)
      const { head } = yield* everything(asking)
      const at = Effect.fnUntraced(function* (position: number, installed_version = "1", chain_head?: string) {
        return yield* acknowledge({
          ...asking,
          installed_version,
          cursor: encodeCursor({ epoch: 1, position }),
          chain_head: chain_head ?? (yield* chainHead(project, position)),
        })
      })
      assert.strictEqual(yield* tagOf(at(head, "2")), "InstalledVersionMismatch")
      assert.strictEqual(yield* tagOf(at(head, "1", yield* chainHead(project, head - 1))), "ChainMismatch")
      assert.strictEqual(yield* tagOf(at(0, "1", yield* chainHead(project, 1))), "ChainMismatch")
      assert.strictEqual((yield* at(0)).lag, head)
      const order = [1, head - 1, 2, head, 0, head - 1]
      const acknowledged = yield* Effect.forEach(order, (position) => at(position))
      assert.deepStrictEqual(
        acknowledged.map(({ lag }) => head - lag),
        order.map((_, i) => Math.max(...order.slice(0, i + 1))),
      )
      // After the product moved to another version, only acknowledgements of that version count.
      yield* link(project, "2", 2)
      assert.strictEqual(yield* tagOf(at(head, "1")), "InstalledVersionMismatch")
      assert.strictEqual((yield* at(head, "2")).lag, 0)
    }))
})
