import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { PersonEventFanout } from "../../../services/people/PersonEventFanout.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { access, identityTelling, institution, person, project } from "../../support/TestIdentity.ts"

const news = Effect.fnUntraced(function* (projects: ReadonlyArray<string>) {
  const { sql } = yield* Database
  const rows = yield* sql<{ project_id: ProjectId; kind: string }>`
    select project_id, kind from lifecycle_events where kind like 'account-%' order by project_id, position`
  return projects.map((project) => rows.filter((row) => row.project_id === project).map(({ kind }) => kind))
})

const scene = Effect.gen(function* () {
  const fern = yield* institution()
  const pat = yield* person()
  const projects = yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7], () => project(fern))
  yield* Effect.forEach(projects, (project) => access(fern, project, pat))
  return { pat, projects }
})

const workOff = Effect.gen(function* () {
  const { worker } = yield* PersonEventFanout
  const jobs = yield* Jobs
  while (yield* jobs.work([worker]));
})

layer(identityTelling({ atOnce: 3, chunk: 2 }))("PersonNews", (it) => {
  it.effect("a person's event reaches a few projects at once and the rest by a job, each once", () =>
    Effect.gen(function* () {
      const { pat, projects } = yield* scene
      yield* person({ id: pat, version: 2, status: "disabled" })
      assert.lengthOf((yield* news(projects)).flat(), 2)
      yield* workOff
      assert.deepStrictEqual(yield* news(projects), projects.map(() => ["account-disabled"]))
    }))

  it.effect("a merged person is told enabled, by either subject, only once both are", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const fern = yield* institution()
      const [one, other] = [yield* person(), yield* person()]
      const portal = yield* project(fern)
      yield* access(fern, portal, other)
      yield* sql`update people set merged_into = ${one} where id = ${other}`
      yield* sql`update identities set person_id = ${one} where person_id = ${other}`
      const last = Effect.map(news([portal]), ([kinds]) => kinds!.at(-1))
      let version = 2
      const becomes = (id: string, status: "active" | "suspended" | "disabled") =>
        Effect.andThen(person({ id, version: version++, status }), last)
      assert.strictEqual(yield* becomes(one, "disabled"), "account-disabled")
      assert.strictEqual(yield* becomes(other, "suspended"), "account-disabled")
      assert.strictEqual(yield* becomes(other, "active"), "account-disabled")
      // New Access by one subject is useless as well while the person is barred by the other.
      const later = yield* project(fern)
      yield* access(fern, later, other)
      assert.deepStrictEqual(yield* news([later]), [["account-disabled"]])
      assert.strictEqual(yield* becomes(one, "active"), "account-enabled")
      yield* becomes(other, "suspended")
      yield* becomes(one, "suspended")
      assert.strictEqual(yield* becomes(one, "active"), "account-disabled")
      assert.strictEqual(yield* becomes(other, "active"), "account-enabled")
    }))

  it.effect("an event overtaken before its job ran is no project's last one", () =>
    Effect.gen(function* () {
      const { pat, projects } = yield* scene
      yield* person({ id: pat, version: 2, status: "disabled" })
      yield* person({ id: pat, version: 3 })
      yield* workOff
      const told = yield* news(projects)
      assert.deepStrictEqual(told.map((kinds) => kinds.at(-1)), projects.map(() => "account-enabled"))
    }))
})
