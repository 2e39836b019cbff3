import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { AccessEnds } from "../../../services/access/AccessEnds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { RequestTimers } from "../../../src/workers/RequestTimers.ts"
import { askAccess, fixture, requestRow, services } from "../../services/decisions/RequestFixture.ts"
import { reason } from "../../support/Fixtures.ts"
import { access, institution, person, project } from "../../support/TestIdentity.ts"

const worker = Layer.provideMerge(RequestTimers.layer, services)

layer(worker, { excludeTestServices: true, timeout: "2 minutes" })("RequestTimers", (it) => {
  it.effect("due timers record the request's end, each by itself", () =>
    Effect.gen(function* () {
      const fern = yield* institution()
      const [portal, shop] = [yield* project(fern), yield* project(fern)]
      const pat = yield* person()
      const [due, open] = [yield* askAccess(fern, portal, pat), yield* askAccess(fern, shop, pat)]
      const { owner, sql } = yield* Database
      const past = new Date(Date.now() - 60_000)
      // A timer of a deleted request, and one whose request is not due yet.
      yield* owner`update requests set expires_at = ${past} where id = ${due.request_id}::uuid`
      yield* sql`
        insert into timers (aggregate_id, kind, due_at, not_before)
        values ('0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11', 'request-expire', ${past}, ${past})`
      yield* sql`
        update timers set due_at = ${past}, not_before = ${past}
        where aggregate_id in (${due.request_id}, ${open.request_id})`
      const left = sql<{ aggregate_id: string }>`select aggregate_id from timers order by 1`
      const [only] = yield* left.pipe(
        Effect.repeat({ until: ({ length }) => length === 1, schedule: Schedule.spaced("50 millis") }),
      )
      assert.strictEqual(only!.aggregate_id, open.request_id)
      assert.strictEqual((yield* requestRow(due.request_id)).state, "expired")
      assert.strictEqual((yield* requestRow(open.request_id)).state, "submitted")
    }))

  it.effect("an Access that an administrator lets end in a moment is revoked by itself", () =>
    Effect.gen(function* () {
      const { fern, ada } = yield* fixture
      const accessId = yield* access(fern, yield* project(fern), yield* person())
      const { shorten } = yield* AccessEnds
      const asked = { accessId, institutionId: fern, personId: ada, expected_version: 1, reason }
      yield* run(shorten({ ...asked, ends_at: new Date(Date.now() + 1_000).toISOString() }))
      const { sql } = yield* Database
      const revoked = sql`select from access where id = ${accessId} and state = 'revoked' and access_version = 2`
      yield* revoked.pipe(
        Effect.repeat({ until: ({ length }) => length === 1, schedule: Schedule.spaced("50 millis") }),
      )
      assert.lengthOf(yield* sql`select from timers where aggregate_id = ${`access:${accessId}`}`, 0)
      const ended =
        yield* sql`select from audit_records where action = 'access.ended' and subject = ${`access:${accessId}`}`
      assert.lengthOf(ended, 1)
    }))
})
