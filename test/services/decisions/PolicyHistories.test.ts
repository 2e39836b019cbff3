/**
 * Random histories of requests in one institution, and of requests for new institutions: authors, signers and their
 * roles, memberships, provenance, merges of people and time all vary. A signature counts exactly where a model, which
 * reads the tables and works out provenance by itself, finds the signer independent of everyone before; a review is
 * listed to exactly those who may sign it; and in the end no review was signed by its author, or twice by one person,
 * under any name.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import type { PersonId, PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Links } from "../../../services/links/Links.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, timed } from "../../support/Fixtures.ts"
import { runs } from "../../support/Runs.ts"
import { institution, member, person, project } from "../../support/TestIdentity.ts"
import { tokenFor } from "../../support/TestTokens.ts"
import { asked, noticed } from "../links/LinkSteps.ts"
import {
  askAccess,
  changeMembership,
  codeOf,
  fire,
  fixture,
  organization,
  requestRow,
  services,
  sign,
} from "./RequestFixture.ts"

const histories = runs(12)

/** Numbers of people: 0 and 1 are Sponsors, 1 to 3 administrators, 4 and 5 operators, the rest has no role yet. */
const people = 9

/** Rows with provenance: the table, the column of the person, and the time from which it counts. */
const grounds = [
  ["people", "id", "created_at"],
  ["identities", "person_id", "linked_at"],
  ["institution_memberships", "person_id", "created_at"],
] as const

const who = fc.nat(people - 1)
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("ask" as const), who }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("change" as const),
      who: fc.nat(3),
      about: who,
      role: fc.constantFrom("sponsor" as const, "administrator" as const, "member" as const),
      state: fc.constantFrom("active" as const, "active" as const, "ended" as const),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("sign" as const),
      who,
      role: fc.constantFrom("sponsor", "administrator", "operator"),
      nth: fc.nat(9),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("link" as const), who, into: who }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("found" as const), who }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("made" as const),
      who,
      what: fc.constantFrom(...grounds),
      by: fc.option(who),
      approved: fc.uniqueArray(who, { maxLength: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const), days: fc.integer({ min: 1, max: 100 }) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

interface Made {
  readonly person_id: PersonId
  readonly made_by: PersonId | null
  readonly approved_by: ReadonlyArray<PersonId>
  readonly at: Date
}

/** Whether two persons are independent, worked out from the rows. */
const countsBeside = Effect.fnUntraced(function* (one: string, other: string) {
  const { sql } = yield* Database
  const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
  const canonical = new Map(
    (yield* sql<{ id: string; merged_into: string | null }>`select id, merged_into from people`)
      .map(({ id, merged_into }) => [id, merged_into ?? id]),
  )
  const is = (id: string) => canonical.get(id) ?? id
  if (is(one) === is(other)) return false
  const made = [
    ...yield* sql<Made>`select id as person_id, made_by, approved_by, created_at as at from people`,
    ...yield* sql<Made>`select person_id, made_by, approved_by, linked_at as at from identities`,
    ...yield* sql<Made>`select person_id, made_by, approved_by, created_at as at from institution_memberships`,
    ...yield* sql<Made>`select person_id, made_by, approved_by, created_at as at from project_owners`,
  ]
  const both = new Set([is(one), is(other)])
  return !made.some(({ approved_by, at, made_by, person_id }) => {
    if (at.getTime() <= now - 90 * day || !both.has(is(person_id))) return false
    const hands = [...approved_by, ...(made_by === null ? [] : [made_by])]
    const byTheOther = hands.some((hand) => both.has(is(hand)) && is(hand) !== is(person_id))
    return byTheOther && !approved_by.some((hand) => !both.has(is(hand)))
  })
})

const history = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const { sql } = yield* Database
  const policies = yield* PolicyDecisions
  const requests = yield* Requests
  const links = yield* Links
  const fern = yield* institution()
  const ids: Array<PersonId> = []
  for (let i = 0; i < people; i++) ids.push(yield* person({ operator: i === 4 || i === 5 }))
  for (const [i, role] of [[0, "sponsor"], [1, "sponsor"], [1, "administrator"], [2, "administrator"]] as const) {
    yield* member(fern, ids[i]!, role)
  }
  yield* member(fern, ids[3]!, "administrator")
  const portal = yield* project(fern)
  const reviews: Array<PolicyReviewId> = []
  const opened = ({ policy_review }: { readonly policy_review: { readonly review_id: PolicyReviewId } | null }) => {
    reviews.push(policy_review!.review_id)
  }

  // A merged person signs in as the person that it was merged into.
  const as = Effect.fnUntraced(function* (i: number) {
    const [row] = yield* sql<{ id: PersonId }>`select canonical_person(${ids[i]!}) as id`
    return row!.id
  })

  const signs = Effect.fnUntraced(function* (reviewId: PolicyReviewId, personId: PersonId, role: string) {
    const [review] = yield* sql<{ author: PersonId; state: string }>`
      select author, state from policy_reviews where id = ${reviewId}::uuid`
    const signed = yield* sql<{ person_id: PersonId }>`
      select person_id from policy_approvals where review_id = ${reviewId}::uuid`
    let another = true
    for (const other of [review!.author, ...signed.map(({ person_id }) => person_id)]) {
      another = another && (yield* countsBeside(personId, other))
    }
    const page = { personId, state: "open", afterId: null, limit: 10_000 }
    const isListed = (personId: PersonId) =>
      Effect.map(
        policies.list({ ...page, personId }),
        ({ items }) => items.some(({ review_id }) => review_id === reviewId),
      )
    const listed = yield* isListed(personId)
    if (listed) {
      // Who may sign is told as the lists of those people say it: of this person, and of another one.
      const { signers } = yield* policies.one(personId, reviewId)
      const able = new Set(signers!.people.filter(({ refusal }) => refusal === null).map(({ person_id }) => person_id))
      assert.isTrue(able.has(personId), "may sign, but is not told among the signers")
      const other = yield* as((ids.indexOf(personId) + 1) % people)
      if (yield* isListed(other)) assert.isTrue(able.has(other) || signers!.operators > 0, "another may sign, not told")
      else assert.isFalse(able.has(other), "told to be able to sign, but is not")
    }
    const code = yield* codeOf(sign(reviewId, role, personId))
    if (code === "done") assert.isTrue(another, "signed by a person who does not count")
    if (code === "four_eyes_required") assert.isFalse(another, "refused though it was another person")
    if (code === "done") assert.isTrue(listed, "signed, but not listed")
    if (code === "four_eyes_required") assert.isFalse(listed, "listed, but needs another person")
    return { code, listed }
  })

  const trySign = Effect.fnUntraced(function* (reviewId: PolicyReviewId, personId: PersonId, role: string) {
    const { code, listed } = yield* signs(reviewId, personId, role)
    if (!listed || code === "done") return
    // What is listed can be signed in one role or another.
    const codes: Array<string> = []
    for (const other of ["sponsor", "administrator", "operator"]) {
      codes.push((yield* signs(reviewId, personId, other)).code)
      if (codes.at(-1) === "done") return
    }
    assert.fail(`listed, but refused: ${codes.join(", ")}`)
  })

  const join = Effect.fnUntraced(function* (from: PersonId, into: PersonId) {
    const request = yield* Effect.gen(function* () {
      const { proof_id } = yield* run(links.prove({ personId: into, token: yield* tokenFor(from) }))
      return yield* run(links.request({ personId: into, proof_id, reason }))
    }).pipe(Effect.orElseSucceed(() => null))
    if (request === null) return
    yield* noticed(request.link_request_id)
    yield* signs(request.policy_review!.review_id, ids[4]!, "operator")
    yield* TestClock.adjust(day)
    yield* fire
  })

  for (const one of steps) {
    switch (one.do) {
      case "ask":
        yield* askAccess(fern, portal, yield* as(one.who)).pipe(Effect.map(opened), Effect.ignore)
        break
      case "change": {
        const { role, state } = one
        yield* run(
          requests.membership({
            institutionId: fern,
            personId: yield* as(one.who),
            person_id: ids[one.about]!,
            role,
            state,
            reason,
          }),
        ).pipe(Effect.map(opened), Effect.ignore)
        break
      }
      case "sign":
        if (reviews.length > 0) {
          yield* trySign(reviews.at(-1 - one.nth % reviews.length)!, yield* as(one.who), one.role)
        }
        break
      case "found":
        yield* organization(yield* as(one.who)).pipe(Effect.map(opened), Effect.ignore)
        break
      case "made": {
        const [table, key, at] = one.what
        const now = new Date(yield* Clock.currentTimeMillis)
        const approvedBy = one.approved.map((i) => ids[i]!)
        yield* sql`
          update ${sql(table)} set made_by = ${one.by === null ? null : ids[one.by]!},
            approved_by = ${approvedBy}::text[], ${sql(at)} = ${now}
          where ${sql(key)} = ${ids[one.who]!}`
        break
      }
      case "link":
        yield* join(yield* as(one.who), yield* as(one.into))
        break
      case "wait":
        yield* TestClock.adjust(one.days * day)
        yield* fire
    }
  }

  const twice = yield* sql`
    with hands as (
      select id as review_id, author as person_id from policy_reviews
      union all select review_id, person_id from policy_approvals
    )
    select review_id from hands h join people p on p.id = h.person_id
    group by review_id, coalesce(p.merged_into, p.id) having count(*) > 1`
  assert.deepStrictEqual(twice, [])
  const incomplete = yield* sql`
    select v.id from policy_reviews v where v.state = 'applied' and exists (
      select from unnest(v.required_roles) r(role)
      where not exists (select from policy_approvals a where a.review_id = v.id and a.role = r.role))`
  assert.deepStrictEqual(incomplete, [])
})

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Policy reviews in random histories", (it) => {
  it.effect("are signed by independent persons", () =>
    Effect.gen(function* () {
      const promised = Effect.runPromiseWith(yield* Effect.context<Layer.Success<typeof services>>())
      const property = fc.asyncProperty(
        fc.array(step, { minLength: 10, maxLength: 30 }),
        (steps) => promised(timed(history(steps))),
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: histories, endOnFailure: true }))
    }), 300_000)

  it.effect("belong to the merged author: not listed to the approver of that merge, and open only once", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { fern, ola, oz } = w
      const [author, other, portal] = [yield* person(), yield* person(), yield* project(fern)]
      const mo = yield* organization(other)
      const [was, meant] = [
        yield* askAccess(fern, portal, other),
        yield* changeMembership(w, w.sam, other, "member", "active"),
      ]
      const link = yield* asked(author, other)
      yield* sign(link, "operator", oz)
      yield* TestClock.adjust(day)
      yield* fire
      const policies = yield* PolicyDecisions
      const id = mo.policy_review!.review_id
      const isListed = (personId: PersonId) =>
        Effect.map(
          policies.list({ personId, state: "open", afterId: null, limit: 10_000 }),
          ({ items }) => items.some(({ review_id }) => review_id === id),
        )
      assert.strictEqual(yield* codeOf(sign(mo, "operator", oz)), "four_eyes_required")
      assert.deepStrictEqual([yield* isListed(oz), yield* isListed(ola), yield* isListed(author)], [false, true, false])
      const again = Effect.all([
        codeOf(askAccess(fern, portal, author)),
        codeOf(changeMembership(w, w.sam, author, "member", "active")),
      ])
      assert.deepStrictEqual(yield* again, ["request_exists", "request_exists"])
      // An expired request blocks no new one, under any of its author's names.
      yield* TestClock.adjust(14 * day)
      assert.deepStrictEqual(yield* again, ["done", "done"])
      for (const { request_id } of [was, meant]) assert.strictEqual((yield* requestRow(request_id)).state, "expired")
    })))
})
