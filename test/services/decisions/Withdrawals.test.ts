/** An author withdraws requests of every kind. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { RequestId } from "../../../schemas/BrandedIds.ts"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { reason } from "../../support/Fixtures.ts"
import { owner, person, project } from "../../support/TestIdentity.ts"
import { asked } from "../links/LinkSteps.ts"
import {
  askAccess,
  auditOf,
  changeMembership,
  codeOf,
  decided,
  enroll,
  fixture,
  organization,
  projectRow,
  propose,
  services,
  sign,
  website,
} from "./RequestFixture.ts"

const withdrawal = (requestId: string, personId: PersonId) =>
  Effect.flatMap(
    PolicyDecisions,
    (policies) => decided(policies.withdraw({ requestId: RequestId.make(requestId), personId, reason })),
  )

/** The state of a request's newest review, and how many timers and notices the request has. */
const leftOf = Effect.fnUntraced(function* (requestId: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ review: string; timers: number; notices: number }>`
    select (select state from policy_reviews where request_id = ${requestId}::uuid order by id desc limit 1) as review,
      (select count(*)::int from timers where aggregate_id = ${requestId}) as timers,
      (select count(*)::int from person_notices where subject_id = ${requestId}::uuid) as notices`
  return row!
})

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Withdrawals", (it) => {
  it.effect("each kind ends in a state that the kind has, with its review, its timers and a record of the author", () =>
    Effect.gen(function* () {
      const w = yield* fixture
      const [portal, own, one, other, ned] = yield* Effect.all([
        project(w.fern),
        project(w.fern, { state: "registered" }),
        person(),
        person(),
        person(),
      ])
      yield* owner(own, w.pat)
      const registered = yield* website(w, w.pat)
      const made = {
        organization: [(yield* organization(w.pat)).request_id, w.pat, "declined"],
        access: [(yield* askAccess(w.fern, portal, w.pat)).request_id, w.pat, "declined"],
        membership: [(yield* changeMembership(w, w.ada, ned, "member", "active")).request_id, w.ada, "declined"],
        enrollment: [(yield* enroll(w.fern, w.sam, "new@fern.example")).enrollment_id, w.sam, "revoked"],
        link: [(yield* asked(one, other)).link_request_id, one, "declined"],
        launch: [(yield* propose(own, w.pat)).launch_id, w.pat, "superseded"],
        website: [
          (yield* (yield* Requests).mine(w.sam)).items.find(({ kind }) => kind === "website")!.id,
          w.sam,
          "superseded",
        ],
      } as const
      for (const kind of Object.keys(made) as ReadonlyArray<keyof typeof made>) {
        const [id, author, state] = made[kind]
        assert.strictEqual(yield* codeOf(withdrawal(id, w.oz)), "not_found", kind)
        const view = yield* withdrawal(id, author)
        assert.deepInclude(view, { id, kind, state, withdrawn: true, version: 2 })
        assert.deepStrictEqual(
          (yield* (yield* Requests).mine(author)).items.find((mine) => mine.id === id),
          view,
          kind,
        )
        assert.deepStrictEqual(yield* leftOf(id), { review: "superseded", timers: 0, notices: 0 }, kind)
        assert.deepStrictEqual((yield* auditOf(RequestId.make(id))).at(-1), {
          action: `${kind}-request.withdrawn`,
          actor: `person:${author}`,
        })
        assert.strictEqual(yield* codeOf(withdrawal(id, author)), "invalid_state", kind)
      }
      assert.strictEqual((yield* projectRow(registered.project_id)).state, "withdrawn")
      assert.strictEqual((yield* projectRow(own)).state, "registered")
      // The same may be asked for again.
      yield* askAccess(w.fern, portal, w.pat)
      yield* propose(own, w.pat)
    }))

  it.effect("what is decided is not withdrawn; an approved link is, until it takes effect", () =>
    Effect.gen(function* () {
      const w = yield* fixture
      const [one, other] = [yield* person(), yield* person()]
      const founding = yield* organization(w.pat)
      yield* sign(founding, "operator", w.oz)
      assert.strictEqual(yield* codeOf(withdrawal(founding.request_id, w.pat)), "invalid_state")
      const link = yield* asked(one, other)
      yield* sign(link, "operator", w.oz)
      assert.strictEqual(yield* codeOf(withdrawal(link.link_request_id, other)), "not_found")
      assert.strictEqual((yield* withdrawal(link.link_request_id, one)).state, "declined")
      assert.strictEqual(yield* codeOf(withdrawal("unknown", one)), "not_found")
    }))
})
