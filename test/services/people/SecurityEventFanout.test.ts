import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { SecurityEventFanout } from "../../../services/people/SecurityEventFanout.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { access, identity, institution, owner, person, project } from "../../support/TestIdentity.ts"

const fixture = SecurityEventFanout.layer({ atOnce: 3, chunk: 2 }, 8).pipe(Layer.provideMerge(identity))

layer(fixture, { excludeTestServices: true })("Tellings", (it) => {
  const told = Effect.fnUntraced(function* (personId: PersonId) {
    const { sql } = yield* Database
    const rows = yield* sql<{ id: string; project_id: ProjectId; kind: string }>`
      select id::text, project_id, kind from lifecycle_events
      where person_id = ${personId} and kind in ('credential-change', 'session-revoked') order by project_id, position`
    return rows
  })
  const happenings = [
    { kind: "credential-change", credentialType: "app", changeType: "delete", aaguid: null },
    { kind: "session-revoked", sid: "s1" },
  ] as const

  it.effect("each project of a person is told once: at once where they are few, else by a job", () =>
    Effect.gen(function* () {
      const { tell, worker } = yield* SecurityEventFanout
      const jobs = yield* Jobs
      const fern = yield* institution()
      const me = yield* person()
      const few = yield* Effect.forEach([1, 2, 3], () => project(fern))
      const [first, second, third] = few
      yield* access(fern, first!, me)
      yield* access(fern, second!, me, { state: "revoked" })
      yield* owner(third!, me)
      const ids = yield* run(tell(me, happenings))
      const heard = yield* told(me)
      assert.sameMembers(heard.map(({ id }) => id), [...ids])
      assert.deepStrictEqual(
        heard.map(({ kind, project_id }) => [project_id, kind]),
        few.toSorted().flatMap((id) => happenings.map(({ kind }) => [id, kind])),
      )

      const busy = yield* person()
      const many = yield* Effect.forEach(Array.from({ length: 7 }), () => project(fern))
      for (const id of many) yield* access(fern, id, busy)
      assert.lengthOf(yield* run(tell(busy, happenings)), 4)
      assert.lengthOf(yield* told(busy), 4)
      while (yield* jobs.work([worker])) { /* as the upkeep worker does */ }
      assert.deepStrictEqual(
        (yield* told(busy)).map(({ kind, project_id }) => [project_id, kind]),
        many.toSorted().flatMap((id) => happenings.map(({ kind }) => [id, kind])),
      )
      assert.lengthOf(yield* told(me), 6)
    }))

  it.effect("many events of a person are appended in small transactions, each once per project", () =>
    Effect.gen(function* () {
      const { tell, worker } = yield* SecurityEventFanout
      const jobs = yield* Jobs
      const fern = yield* institution()
      const me = yield* person()
      const heard = yield* Effect.forEach([1, 2, 3], () => project(fern))
      for (const id of heard) yield* access(fern, id, me)
      const sids = Array.from({ length: 19 }, (_, i) => `s${i}`)
      assert.lengthOf(yield* run(tell(me, sids.map((sid) => ({ kind: "session-revoked", sid })))), 8)
      while (yield* jobs.work([worker])) { /* as the upkeep worker does */ }
      const { sql } = yield* Database
      const rows = yield* sql<{ project_id: ProjectId; sid: string; n: number }>`
        select project_id, sub_id -> 'session' ->> 'id' as sid, count(*) over (partition by xmin::text)::int as n
        from lifecycle_events where person_id = ${me} and kind = 'session-revoked'`
      assert.sameMembers(
        rows.map(({ project_id, sid }) => `${project_id} ${sid}`),
        heard.flatMap((id) => sids.map((sid) => `${id} ${sid}`)),
      )
      assert.isAtMost(Math.max(...rows.map(({ n }) => n)), 8)
    }))

  it.effect("a rolled-back command tells no project", () =>
    Effect.gen(function* () {
      const { tell } = yield* SecurityEventFanout
      const fern = yield* institution()
      const me = yield* person()
      yield* access(fern, yield* project(fern), me)
      yield* Effect.exit(run(Effect.andThen(tell(me, happenings), Effect.fail("no"))))
      assert.lengthOf(yield* told(me), 0)
    }))
})
