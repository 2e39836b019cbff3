import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { InstitutionId, type PersonId } from "../../../schemas/BrandedIds.ts"
import { Enrollments } from "../../../services/decisions/Enrollments.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { day, timed } from "../../support/Fixtures.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { institution, member, person } from "../../support/TestIdentity.ts"
import {
  acceptInvitation,
  codeOf,
  enroll,
  fixture,
  revokeInvitation,
  services,
  sign,
  tokenOf,
} from "./RequestFixture.ts"

const listed = Effect.fnUntraced(
  function* (institutionId: InstitutionId, personId: PersonId, page: { limit?: number; afterId?: string } = {}) {
    const { list } = yield* Enrollments
    return (yield* list({ institutionId, personId, limit: page.limit ?? 100, afterId: page.afterId ?? null })).items
  },
)

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("an institution's invitations", (it) => {
  it.effect("are listed newest first, each with its present state, its mail and its review, the recipient masked", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const ned = yield* person({ email: "ned@new.example" })
      const accepted = yield* enroll(w.fern, w.sam, "ned@new.example")
      yield* sign(accepted, "administrator", w.ada)
      yield* acceptInvitation(ned, yield* tokenOf(accepted.enrollment_id))
      const revoked = yield* enroll(w.fern, w.ada, "rae@new.example")
      yield* revokeInvitation(w.fern, revoked.enrollment_id, w.sam)
      const invited = yield* enroll(w.fern, w.sam, "ida@new.example")
      yield* sign(invited, "administrator", w.ada)
      const held = yield* enroll(w.fern, w.sam, "the lady from accounting")
      yield* enroll(yield* mossOf(w.sam), w.sam, "moss@new.example")

      const items = yield* listed(w.fern, w.abe)
      assert.deepStrictEqual(
        items.map(({ enrollment_id, recipient, state }) => [enrollment_id, recipient, state]),
        [
          [held.enrollment_id, "t***", "held"],
          [invited.enrollment_id, "i***@new.example", "invited"],
          [revoked.enrollment_id, "r***@new.example", "revoked"],
          [accepted.enrollment_id, "n***@new.example", "accepted"],
        ],
      )
      assert.deepStrictEqual(items.map(({ delivery }) => delivery.state), ["failed", "queued", "none", "queued"])
      assert.deepStrictEqual(items.map(({ author_person_id }) => author_person_id), [w.sam, w.sam, w.ada, w.sam])
      assert.deepStrictEqual(items.map(({ decided_at }) => decided_at === null), [true, false, false, false])
      assert.deepStrictEqual(items[0]!.policy_review, held.policy_review)
      assert.strictEqual(items[0]!.version, 1)
      for (const limit of [1, 3, 4]) {
        const ids: Array<string> = []
        for (let n = 0; n < 4; n += limit) {
          const page = yield* listed(w.fern, w.oz, { limit, ...(n === 0 ? {} : { afterId: ids.at(-1)! }) })
          ids.push(...page.map(({ enrollment_id }) => enrollment_id))
        }
        assert.deepStrictEqual(ids, items.map(({ enrollment_id }) => enrollment_id))
      }
      yield* TestClock.adjust(15 * day)
      const states = (yield* listed(w.fern, w.sam)).map(({ state }) => state)
      assert.deepStrictEqual(states, ["expired", "expired", "revoked", "accepted"])
    })))

  it.effect("are for a Sponsor, an effective administrator and an operator", () =>
    Effect.gen(function* () {
      const w = yield* fixture
      yield* enroll(w.fern, w.sam, "ned@new.example")
      assert.strictEqual(yield* codeOf(listed(w.fern, w.pat)), "not_found")
      yield* member(w.fern, w.pat, "member")
      assert.strictEqual(yield* codeOf(listed(w.fern, w.pat)), "role_required")
      const elsewhere = yield* person()
      yield* member(yield* institution(), elsewhere, "sponsor")
      for (const id of [w.fern, InstitutionId.make(randomUUID())]) {
        assert.strictEqual(yield* codeOf(listed(id, elsewhere)), "not_found")
      }
      for (const reader of [w.sam, w.ada, w.oz]) {
        assert.lengthOf(yield* listed(w.fern, reader), 1)
      }
    }))

  it.effect("are found by index among the requests of others and of other kinds", () =>
    Effect.gen(function* () {
      const w = yield* fixture
      const made = yield* enroll(w.fern, w.sam, "ned@new.example")
      const { owner, reads } = yield* Database
      yield* owner.unsafe(`
        insert into requests (id, kind, state, author, institution_id, fields, reason, created_at)
        select gen_random_uuid(), case when n % 2 = 0 then 'enrollment' else 'membership' end,
          case when n % 2 = 0 then 'revoked' else 'declined' end, 'x',
          case when n % 2 = 0 then 'x' || n else '${w.fern}' end, '{}', 'because', now()
        from generate_series(1, 20000) n`)
      yield* owner`vacuum analyze requests, policy_reviews`
      const [rows, items] = yield* rowsRead(reads, listed(w.fern, w.sam))
      assert.deepStrictEqual(items.map(({ enrollment_id }) => enrollment_id), [made.enrollment_id])
      for (const [table, n] of rows) assert.isAtMost(n, 20, table)
    }))
})

/** Another institution with the same sponsor. */
const mossOf = Effect.fnUntraced(function* (sponsor: PersonId) {
  const id = yield* institution({ name: "Moss" })
  yield* member(id, sponsor, "sponsor")
  return id
})
