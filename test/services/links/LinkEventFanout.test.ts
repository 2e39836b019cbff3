import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { linkEventFanout } from "../../../services/links/Links/LinkEventFanout.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { access, identity, institution, issuer, person, project } from "../../support/TestIdentity.ts"
import { linksTold } from "./LinkSteps.ts"

layer(identity, { excludeTestServices: true })("Events of links", (it) => {
  it.effect("a few projects are told at once and the rest in batches, each by the subject that it knows", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const jobs = yield* Jobs
      const { about, tell, worker } = yield* linkEventFanout({ atOnce: 3, chunk: 2 })
      const fern = yield* institution()
      const [one, other] = [yield* person(), yield* person()]
      const projects = yield* Effect.forEach(Array.from({ length: 7 }), () => project(fern))
      for (const [i, id] of projects.entries()) yield* access(fern, id, i % 2 === 0 ? one : other)
      const eventId = yield* run(Effect.gen(function* () {
        const pair = yield* about({ author: one, fields: { issuer, subject: other }, person_id: other })
        yield* sql`update people set merged_into = ${one} where id = ${other}`
        return yield* tell(pair)
      }))
      assert.lengthOf(yield* linksTold(projects), 2)
      assert.lengthOf(yield* sql`select from lifecycle_events where id = ${eventId}::uuid`, 1)
      while (yield* jobs.work([worker])) { /* as the upkeep worker does */ }
      const heard = projects.map((id, i) => i % 2 === 0 ? [id, one, other] : [id, other, one])
      assert.sameDeepMembers(yield* linksTold(projects), heard)
    }))
})
