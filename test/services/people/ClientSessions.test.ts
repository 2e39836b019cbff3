/** The end of all sessions of a client, as events of each of its people. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { EventLog } from "../../../services/lifecycle/EventLog.ts"
import { clientSessions, toldAtOnce } from "../../../services/people/ClientSessions.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { access, identity, institution, person, project } from "../../support/TestIdentity.ts"

layer(identity, { excludeTestServices: true, timeout: "2 minutes" })("ClientSessions", (it) => {
  it.effect("every person gets one event, over as many small transactions as needed", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const jobs = yield* Jobs
      const { append } = yield* EventLog
      const { end, worker } = yield* clientSessions
      const fern = yield* institution()
      const portal = yield* project(fern)
      const pat = yield* person()
      yield* access(fern, portal, pat)
      const many = 2 * toldAtOnce + 1
      for (const [table, id] of [["people", pat], ["access", null]] as const) {
        yield* sql`
          insert into ${sql(table)} select r.* from ${sql(table)} t, generate_series(2, ${many}::int) i,
            jsonb_populate_record(t, jsonb_build_object('id', ${portal} || '-' || i, 'subject', 'subject ' || i,
              'person_id', ${portal} || '-' || i, 'email', null)) r
          where ${id === null ? sql`t.project_id = ${portal}` : sql`t.id = ${id}`}`
      }
      const told = Effect.map(
        sql<{ who: string }>`
          select person_id as who from lifecycle_events
          where project_id = ${portal} and kind = 'session-revoked'
            and payload -> 'reason_admin' ->> 'en' = 'PROJECT_WITHDRAWN'`,
        (rows) => rows.map(({ who }) => who),
      )
      const ending = {
        projectId: portal,
        institutionId: fern,
        clientId: null,
        reason: "PROJECT_WITHDRAWN",
        initiatedBy: "admin",
      } as const
      yield* run(Effect.flatMap(end(ending), (events) => append(...events)))
      assert.lengthOf(yield* told, toldAtOnce)
      yield* jobs.work([worker])
      assert.lengthOf(yield* told, 2 * toldAtOnce)
      yield* Effect.repeat(jobs.work([worker]), { while: (more) => more })
      const all = yield* told
      assert.lengthOf(all, many)
      assert.lengthOf([...new Set(all)], many)
      assert.isEmpty(yield* sql`select from jobs where state <> 'effective'`)
    }))
})
