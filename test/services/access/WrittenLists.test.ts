/**
 * A kept list of reviews is given again only while it equals a newly made one, through every change that its contents
 * come from. ReviewHistories.test.ts does the same for changes by commands and the feed.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, type Layer } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { Lists } from "../../../services/access/AccessReviews/Seen.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { day, start, timed } from "../../support/Fixtures.ts"
import { access, tell } from "../../support/TestIdentity.ts"
import { approve, asAnew, fixture, on, propose, services } from "./ReviewFixture.ts"

layer(services, { excludeTestServices: true })("A kept list of reviews", (it) => {
  it.effect("is made anew once anything in it changes", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { owner: sql } = yield* Database
      const { review_id: reviewId } = yield* propose(w)
      yield* approve(on(w, w.ada, reviewId))
      const [told] = yield* sql<{ project_id: ProjectId; epoch: number; position: bigint }>`
        select e.project_id, e.epoch, e.position from access_reviews r join lifecycle_events e on e.id = r.approval_event_id
        where r.id = ${reviewId}::uuid`
      const { epoch, position, project_id: project } = told!
      const [stream, key, at] = [randomUUID(), `access/${w.accessId}`, new Date(start)]
      const spare = yield* access(w.fern, w.portal, w.abe)
      const changes: Readonly<
        Record<string, Effect.Effect<unknown, unknown, Layer.Success<typeof services>>>
      > = {
        "the fold differs": sql`insert into lifecycle_drift (project_id, key, expected, observed, first_seen_at)
          values (${project}, ${key}, null, null, ${at})`,
        "and no longer": sql`delete from lifecycle_drift where project_id = ${project} and key = ${key}`,
        "it was given alone": sql`insert into lifecycle_given (project_id, epoch, position, given_at)
          values (${project}, ${epoch}, ${position}::bigint, ${at})`,
        "a push is refused": Effect.andThen(
          sql`insert into lifecycle_streams (id, project_id, service_issuer, service_id, status, status_by, delivery,
              created_at, updated_at, epoch, position)
            values (${stream}::uuid, ${project}, 'i', 's', 'enabled', 'receiver', 'poll', ${at}, ${at}, 1, 0)`,
          sql`insert into lifecycle_attempts (project_id, epoch, position, stream_id, consumer, attempts, last_attempt_at,
              outcome)
            values (${project}, ${epoch}, ${position}::bigint, ${stream}::uuid, 'i s', 1, ${at}, 'refused')`,
        ),
        "once more": sql`update lifecycle_attempts set attempts = 2 where stream_id = ${stream}::uuid`,
        "its stream was disabled": sql`update lifecycle_streams set status = 'disabled' where id = ${stream}::uuid`,
        "the product was installed anew": sql`update projects set installed_version = '3.0.0' where id = ${project}`,
        "it was acknowledged": sql`insert into lifecycle_consumers (project_id, consumer, delivered_epoch,
            delivered_position, delivered_at, acknowledged_epoch, acknowledged_position, acknowledged_at, installed_version)
          values (${project}, 'i s', ${epoch}, ${position}::bigint, ${at}, ${epoch}, ${position}::bigint, ${at}, '2.0.0')`,
        "the holder is somebody else": Effect.andThen(
          sql`update people set merged_into = ${w.abe} where id = ${w.pat}`,
          sql`update institution_memberships set state = 'ended' where person_id = ${w.abe}`,
        ),
        "the sponsor is suspended": sql`update people set status = 'suspended' where id = ${w.sam}`,
        "and is not": sql`update people set status = 'active' where id = ${w.sam}`,
        "the sponsor's membership is over": Effect.andThen(
          sql`update institution_memberships set expires_at = ${new Date(start + day)} where person_id = ${w.sam}`,
          Effect.andThen(asAnew(w.ada, w.fern), TestClock.setTime(start + 2 * day)),
        ),
        "what could be proposed changed": tell("access", { id: spare, version: 9, removed: true }),
        "the Access is gone": tell("access", { id: w.accessId, version: 9, removed: true }),
        "the approval is old": TestClock.setTime(start + 400 * day),
      } as const
      let before = yield* asAnew(w.ada, w.fern)
      for (const [what, change] of Object.entries(changes)) {
        yield* change
        const after = yield* asAnew(w.ada, w.fern)
        assert.notDeepEqual({ ...after, as_of: "" }, { ...before, as_of: "" }, `nothing changed: ${what}`)
        before = after
      }
    })))

  it.effect("is another one for a caller who may propose, and carries the time of its reading", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      for (const _ of ["written", "as it was"]) {
        for (const [who, blocked] of [[w.sam, []], [w.ada, ["role_required"]]] as const) {
          const { as_of, candidates } = yield* asAnew(who, w.fern)
          assert.deepStrictEqual(candidates.map(({ blocked_by }) => blocked_by), [blocked])
          assert.strictEqual(as_of, new Date(yield* Clock.currentTimeMillis).toISOString())
        }
        yield* TestClock.adjust("1 minute")
      }
    })))
})

layer(services, { excludeTestServices: true })("The kept lists", (it) => {
  it.effect("stay within their bytes, keeping the most recently used", () =>
    Effect.sync(() => {
      const lists = new Lists(100)
      const list = (bytes: number) => ({
        seen: "",
        from: 0,
        until: 0,
        head: new Uint8Array(0),
        rest: new Uint8Array(bytes),
      })
      for (const key of ["a", "b", "c", "b", "d"]) lists.set(key, list(40))
      lists.set("a longer one", list(51))
      assert.deepStrictEqual(["a", "b", "c", "d", "a longer one"].filter((key) => lists.get(key) !== undefined), [
        "b",
        "d",
      ])
    }))
})
