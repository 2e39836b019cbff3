/** Independence of a review's approver from its Sponsor, as the service and as the database check it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { day, start, tagOf, timed } from "../../support/Fixtures.ts"
import { access, member, person } from "../../support/TestIdentity.ts"
import { approve, fixture, on, propose, services } from "./ReviewFixture.ts"

layer(services, { excludeTestServices: true })("Four eyes on reviews", (it) => {
  it.effect("the database refuses an approval by the proposer, an alias or a dependent person", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { review_id } = yield* propose(w)
      const alias = yield* person()
      const { owner } = yield* Database
      yield* owner`update people set merged_into = ${w.sam} where id = ${alias}`
      yield* owner`update institution_memberships set made_by = ${alias}, created_at = ${new Date(start)}
        where person_id = ${w.abe}`
      const written = (who: string, count = 2, digest = "sha256:another") =>
        Effect.exit(owner`
          update access_reviews set state = 'approved', approved_by = ${who}, approved_at = ${new Date(start)},
            evidence_count = ${count}, evidence_digest = ${digest} where id = ${review_id}::uuid`)
      for (const who of [w.sam, alias, w.abe]) assert.isTrue(Exit.isFailure(yield* written(who)), who)
      assert.isTrue(Exit.isFailure(yield* written(w.ada, 1)), "without evidence")
      const moved = owner`update access_reviews set evidence_digest = 'sha256:another' where id = ${review_id}::uuid`
      assert.isTrue(Exit.isFailure(yield* Effect.exit(moved)))
      assert.isTrue(Exit.isSuccess(yield* written(w.ada)))
    })))

  it.effect("the approver is another person than the Sponsor, and independent of that person", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      yield* member(w.fern, w.sam, "administrator")
      const { review_id } = yield* propose(w)
      assert.strictEqual(yield* tagOf(approve(on(w, w.sam, review_id))), "FourEyesRequired")
      const { sql } = yield* Database
      yield* sql`update institution_memberships set made_by = ${w.sam}, created_at = ${new Date(start - day)}
        where person_id = ${w.ada}`
      assert.strictEqual(yield* tagOf(approve(on(w, w.ada, review_id))), "FourEyesRequired")
      const { fourEyes } = yield* Roles
      const until = new Date(start + 89 * day).toISOString()
      const { detail } = yield* fourEyes(w.ada, w.sam)
      assert.include(detail, `Beside person ${w.sam} the caller does not count until ${until}:`)
      assert.include((yield* fourEyes(w.sam, w.sam)).detail, "another person has to do this")
      yield* sql`update institution_memberships set approved_by = array[${w.abe}::text] where person_id = ${w.ada}`
      assert.strictEqual(yield* tagOf(approve(on(w, w.ada, review_id))), "done")
      const theirs = yield* propose({ ...w, accessId: yield* access(w.fern, w.portal, w.ada) })
      assert.strictEqual(yield* tagOf(approve(on(w, w.ada, theirs.review_id))), "done", "the beneficiary may approve")
    })))

  it.effect("two persons are independent unless one alone made or approved the other within 90 days", () =>
    timed(Effect.gen(function* () {
      const { abe, ada, sam } = yield* fixture
      const alias = yield* person()
      const { sql } = yield* Database
      const { independent } = yield* Roles
      yield* sql`update people set merged_into = ${sam} where id = ${alias}`
      const counts = Effect.zipWith(independent(ada, sam), independent(alias, ada), (a, b) => [a, b])
      const rows = [["people", "id", "created_at"], ["institution_memberships", "person_id", "created_at"]]
      for (const [table, key, at] of [...rows, ["identities", "person_id", "linked_at"]]) {
        const write = (whose: string, madeBy: PersonId | null, approvedBy: ReadonlyArray<PersonId>, millis: number) =>
          sql`update ${sql(table!)} set made_by = ${madeBy}, approved_by = ${[...approvedBy]}::text[],
            ${sql(at!)} = ${new Date(millis)} where ${sql(key!)} = ${whose}`
        const edge = start - 90 * day
        for (const [whose, by] of [[ada, sam], [sam, ada], [ada, alias]] as const) {
          for (const [madeBy, approvedBy] of [[by, []], [null, [by]], [abe, [by]], [by, [by]]] as const) {
            yield* write(whose, madeBy, approvedBy, edge + 1)
            assert.deepStrictEqual(yield* counts, [false, false], `${table} ${madeBy} ${approvedBy}`)
            yield* write(whose, madeBy, approvedBy, edge)
            assert.deepStrictEqual(yield* counts, [true, true])
            yield* write(whose, madeBy, [...approvedBy, abe], start)
            assert.deepStrictEqual(yield* counts, [true, true])
          }
          yield* write(whose, null, [], start)
        }
      }
      assert.isFalse(yield* independent(alias, sam))
    })))
})
