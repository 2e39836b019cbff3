/** The authenticators of a person who has lost them are removed by a second pair of eyes, which is never the person's. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { requestTemplates, resetKind } from "../../../services/requests/RequestMail.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { newSecret } from "../../../services/people/Authenticators/Totp.ts"
import { Authenticators } from "../../../services/people/Authenticators.ts"
import { reason } from "../../support/Fixtures.ts"
import { institution, member, person } from "../../support/TestIdentity.ts"
import { codeOf, decided, decline, type Fixture, fixture, requestRow, services, sign } from "./RequestFixture.ts"

const asked = (institutionId: InstitutionId, personId: PersonId, person_id: PersonId) =>
  Effect.flatMap(Requests, (requests) => decided(requests.reset({ institutionId, personId, person_id, reason })))

/** The ids of the reviews that wait for the person. */
const waitingFor = (personId: PersonId) =>
  Effect.map(
    Effect.flatMap(
      PolicyDecisions,
      (policies) => policies.list({ personId, state: "open", afterId: null, limit: 100 }),
    ),
    ({ items }) => items.map(({ review_id }) => review_id),
  )

/** A member of Fern who has an app and recovery codes. */
const equipped = Effect.fnUntraced(function* ({ fern }: Fixture, operator = false) {
  const lost = yield* person({ operator })
  yield* member(fern, lost, "member")
  const authenticators = yield* Authenticators
  yield* authenticators.addTotp(lost, "Phone", newSecret(), 1)
  yield* authenticators.replaceCodes(lost, "Codes")
  return lost
})

const owned = (id: PersonId) => Effect.flatMap(Authenticators, (authenticators) => authenticators.of(id))
const rolesOf = (
  { policy_review }: { readonly policy_review: { readonly required_roles: ReadonlyArray<string> } | null },
) => policy_review!.required_roles

layer(Authenticators.layer.pipe(Layer.provideMerge(services)), { excludeTestServices: true, timeout: "2 minutes" })(
  "authenticator resets",
  (it) => {
    it.effect("another administrator signs; everything is removed, told to products' jobs, the bus and the person", () =>
      Effect.gen(function* () {
        const w = yield* fixture
        const { sql } = yield* Database
        const lost = yield* equipped(w)
        const request = yield* asked(w.fern, w.ada, lost)
        assert.deepStrictEqual(rolesOf(request), ["administrator"])
        assert.deepInclude(request, { person_id: lost, state: "submitted" })
        assert.strictEqual((yield* owned(lost)).length, 2)
        assert.strictEqual(yield* codeOf(sign(request, "administrator", w.ada)), "four_eyes_required")
        assert.strictEqual(yield* codeOf(asked(w.fern, w.sam, lost)), "request_exists")

        yield* sign(request, "administrator", w.abe)
        assert.deepStrictEqual(yield* owned(lost), [])
        assert.strictEqual((yield* requestRow(request.request_id)).state, "approved")
        const mails = yield* sql<{ id: string; kind: string; recipient: string; subjectId: string }>`
          select id::text as id, kind, recipient, subject_id as "subjectId" from mails where recipient = ${`${lost}@example.com`}`
        assert.deepStrictEqual(mails.map(({ kind }) => kind), [resetKind])
        const template = (yield* requestTemplates(new URL("https://portal.example"))).find(({ kind }) =>
          kind === resetKind
        )
        const rendered = yield* template!.render({ ...mails[0]!, args: {} } as never)
        assert.include(rendered!.text, "If you lost nothing")
        assert.notInclude(rendered!.text, reason)
        const told = yield* sql`select from outbox where payload::text like ${`%"person_id":"${lost}"%`}`
        assert.isAtLeast(told.length, 2)
        const [audit] = yield* sql<{ n: number; removed: number }>`
          select count(*)::int as n, max((details->>'removed')::int) as removed from audit_records
          where action = 'authenticators.reset' and subject = ${`person:${lost}`}`
        assert.deepStrictEqual(audit, { n: 1, removed: 2 })
        // The next loss is another request.
        assert.strictEqual(yield* codeOf(asked(w.fern, w.sam, lost)), "done")
      }))

    it.effect("nobody asks for or signs the removal of the own authenticators; a stranger's are not there", () =>
      Effect.gen(function* () {
        const w = yield* fixture
        assert.strictEqual(yield* codeOf(asked(w.fern, w.ada, w.ada)), "four_eyes_required")
        const request = yield* asked(w.fern, w.sam, w.abe)
        assert.deepStrictEqual(yield* waitingFor(w.abe), [])
        assert.deepStrictEqual(yield* waitingFor(w.ada), [request.policy_review!.review_id])
        assert.strictEqual(yield* codeOf(sign(request, "administrator", w.abe)), "four_eyes_required")
        assert.strictEqual(yield* codeOf(decline(request, "administrator", w.abe)), "four_eyes_required")
        assert.strictEqual(yield* codeOf(sign(request, "administrator", w.ada)), "done")
        assert.strictEqual(yield* codeOf(asked(w.fern, w.ada, w.pat)), "not_found")
        const lost = yield* equipped(w)
        assert.strictEqual(yield* codeOf(asked(w.fern, lost, w.abe)), "role_required")
        assert.strictEqual(yield* codeOf(asked(w.fern, w.pat, lost)), "not_found")
      }))

    it.effect("an operator stands in where the only other administrator is the member", () =>
      Effect.gen(function* () {
        const w = yield* fixture
        const request = yield* asked(w.fern, w.ada, w.abe)
        assert.deepStrictEqual(yield* waitingFor(w.oz), [request.policy_review!.review_id])
        assert.strictEqual(yield* codeOf(sign(request, "administrator", w.oz)), "done")
        const other = yield* asked(w.fern, w.sam, w.abe)
        assert.deepStrictEqual(yield* waitingFor(w.oz), [])
        assert.strictEqual(yield* codeOf(sign(other, "administrator", w.oz)), "role_required")
      }))

    it.effect("an operator signs as well for an operator, and for a member of another institution", () =>
      Effect.gen(function* () {
        const w = yield* fixture
        const operator = yield* equipped(w, true)
        const both = yield* asked(w.fern, w.ada, operator)
        assert.deepStrictEqual(rolesOf(both), ["administrator", "operator"])
        const elsewhere = yield* equipped(w)
        yield* member(yield* institution(), elsewhere, "member")
        const request = yield* asked(w.fern, w.ada, elsewhere)
        assert.deepStrictEqual(rolesOf(request), ["administrator", "operator"])
        yield* sign(request, "administrator", w.abe)
        assert.strictEqual((yield* owned(elsewhere)).length, 2)
        yield* sign(request, "operator", w.oz)
        assert.strictEqual((yield* owned(elsewhere)).length, 0)
        yield* sign(both, "administrator", w.abe)
        assert.strictEqual(yield* codeOf(sign(both, "operator", operator)), "four_eyes_required")
      }))

    it.effect("a declined request removes nothing; of two last signatures at once one removes", () =>
      Effect.gen(function* () {
        const w = yield* fixture
        const { sql } = yield* Database
        const lost = yield* equipped(w)
        yield* decline(yield* asked(w.fern, w.ada, lost), "administrator", w.abe)
        assert.strictEqual((yield* owned(lost)).length, 2)
        const request = yield* asked(w.fern, w.sam, lost)
        const signed = yield* Effect.all(
          [w.ada, w.abe].map((by) => codeOf(sign(request, "administrator", by))),
          { concurrency: 2 },
        )
        assert.deepStrictEqual(signed.sort(), ["done", "invalid_state"])
        assert.strictEqual((yield* owned(lost)).length, 0)
        const mails = yield* sql`select from mails where recipient = ${`${lost}@example.com`}`
        assert.strictEqual(mails.length, 1)
      }))
  },
)
