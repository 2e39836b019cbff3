/**
 * Random histories of reviews in one institution of five people: who proposes, approves and revokes, which Access changes
 * meanwhile, whose role comes and goes, who turns out to be whom, how much time passes. Whatever happened, afterwards:
 * nobody approved what they proposed, by any name; the Access is what the feed says; the evidence is whole; and each
 * answer is the one that a model gives.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import * as fc from "fast-check"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { genesis } from "../../../services/platform/Canonical.ts"
import { Database } from "../../../services/platform/Database.ts"
import { transact } from "../../../services/platform/Transact.ts"
import { access, identity, institution, member, person, project, tell } from "../../support/TestIdentity.ts"

const services = AccessReviews.layer.pipe(Layer.provide(Roles.layer), Layer.provideMerge(identity))
const reason = "whatever happens"
const people = 5
const runs = 60

type Step =
  | { readonly do: "propose"; readonly who: number; readonly version: number }
  | { readonly do: "approve" | "revoke"; readonly who: number; readonly nth: number }
  | { readonly do: "change"; readonly state: "active" | "revoked"; readonly role: string }
  | { readonly do: "seat"; readonly who: number; readonly state: "active" | "suspended" }
  | { readonly do: "merge"; readonly who: number; readonly into: number }

const who = fc.nat(people - 1)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("propose"), who, version: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom("approve", "revoke"), who, nth: fc.nat(3) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("change"),
      state: fc.constantFrom("active", "revoked"),
      role: fc.constantFrom("user", "editor"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("seat"), who, state: fc.constantFrom("active", "suspended") }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("merge"), who, into: who }) },
) as fc.Arbitrary<Step>

/** What we believe. Person 0 and 1 are Sponsors, 1 to 3 administrators, 4 is neither. */
interface Model {
  readonly reviews: Array<{ id: string; version: number; state: string; proposer: number; approver: number | null }>
  readonly suspended: Set<number>
  readonly canonical: Array<number>
  version: number
  feed: number
  state: "active" | "revoked"
  role: string
}

const sponsors = new Set([0, 1])
const administrators = new Set([1, 2, 3])

const tagOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, {
    onFailure: (error) => ({ tag: error instanceof Error ? error.name : String(error), value: null }),
    onSuccess: (value) => ({ tag: "done", value }),
  })

const history = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const reviews = yield* AccessReviews
  const { sql } = yield* Database
  const fern = yield* institution()
  const ids = yield* Effect.forEach(Array.from({ length: people }), () => person())
  const portal = yield* project(fern)
  const pat = yield* person()
  const seats = new Map<string, string>()
  const seat = (n: number, role: "sponsor" | "administrator", state: "active" | "suspended", version: number) =>
    Effect.map(
      member(fern, ids[n]!, role, { id: `${fern}-${n}-${role}`, version, state }),
      (id) => seats.set(`${n}-${role}`, id),
    )
  for (const n of sponsors) yield* seat(n, "sponsor", "active", 1)
  for (const n of administrators) yield* seat(n, "administrator", "active", 1)
  const accessId = yield* access(fern, portal, pat)
  const m: Model = {
    ...{ reviews: [], suspended: new Set(), canonical: ids.map((_, i) => i) },
    ...{ version: 1, feed: 1, state: "active", role: "user" },
  }
  const holds = (n: number, role: ReadonlySet<number>) => role.has(n) && !m.suspended.has(n)
  const gone = (n: number) => m.canonical[n] !== n

  const propose = Effect.fnUntraced(function* (n: number, version: number) {
    const { tag, value } = yield* tagOf(transact(reviews.propose({
      ...{ access_id: accessId, access_version: version, reason, personId: ids[n]!, institutionId: fern },
    })))
    if (!holds(n, sponsors) || gone(n)) return assert.notStrictEqual(tag, "done")
    const open = m.reviews.some((review) => review.version === version && review.state !== "revoked")
    const expected = m.state !== "active"
      ? "AccessNotActive"
      : version !== m.version
      ? "AccessVersionSuperseded"
      : open
      ? "ReviewExists"
      : "done"
    assert.strictEqual(tag, expected)
    if (value !== null) m.reviews.push({ id: value.review_id, version, state: "proposed", proposer: n, approver: null })
  })

  const approve = Effect.fnUntraced(function* (n: number, review: Model["reviews"][number]) {
    const { tag } = yield* tagOf(transact(reviews.approve({
      ...{ personId: ids[n]!, institutionId: fern, reviewId: review.id, reason, stepUp: Effect.void },
    })))
    if (!holds(n, administrators) || gone(n)) return assert.notStrictEqual(tag, "done")
    const expected = n === m.canonical[review.proposer]
      ? "FourEyesRequired"
      : review.state !== "proposed"
      ? "InvalidState"
      : m.state !== "active"
      ? "AccessNotActive"
      : review.version !== m.version
      ? "AccessVersionSuperseded"
      : "done"
    assert.strictEqual(tag, expected)
    if (tag === "done") Object.assign(review, { state: "approved", approver: n })
  })

  const revoke = Effect.fnUntraced(function* (n: number, review: Model["reviews"][number]) {
    const { tag } = yield* tagOf(transact(reviews.revoke({
      ...{ personId: ids[n]!, institutionId: fern, reviewId: review.id, reason },
    })))
    const mine = n === review.proposer && review.state === "proposed" && holds(n, sponsors)
    if (gone(n) || !(mine || holds(n, administrators))) return assert.notStrictEqual(tag, "done")
    assert.strictEqual(tag, review.state === "revoked" ? "InvalidState" : "done")
    review.state = "revoked"
  })

  const change = Effect.fnUntraced(function* (state: "active" | "revoked", role: string) {
    const line = { institution_id: fern, project_id: portal, person_id: pat, state, role }
    yield* tell("access", { id: accessId, version: ++m.feed, ...line })
    if (state !== m.state || role !== m.role) m.version++
    Object.assign(m, { state, role })
  })

  /** Past what `Links` lets through: the tables themselves must refuse two who decided together. */
  const merge = Effect.fnUntraced(function* (n: number, into: number) {
    if (n === into || gone(n) || gone(into)) return
    const together = m.reviews.some(({ approver, proposer }) =>
      approver !== null && new Set([m.canonical[approver], m.canonical[proposer]]).size === 2 &&
      [m.canonical[approver], m.canonical[proposer]].every((one) => one === n || one === into)
    )
    const merged = yield* Effect.exit(sql`update people set merged_into = ${ids[into]!} where id = ${ids[n]!}`)
    if (together) return assert.isTrue(Exit.isFailure(merged))
    assert.isTrue(Exit.isSuccess(merged))
    m.canonical.forEach((canonical, i) => {
      if (canonical === n) m.canonical[i] = into
    })
  })

  const take = (step: Step) => {
    const review = "nth" in step ? m.reviews[step.nth % Math.max(1, m.reviews.length)] : undefined
    switch (step.do) {
      case "propose":
        return propose(step.who, step.version)
      case "approve":
        return review === undefined ? Effect.void : approve(step.who, review)
      case "revoke":
        return review === undefined ? Effect.void : revoke(step.who, review)
      case "change":
        return change(step.state, step.role)
      case "merge":
        return merge(step.who, step.into)
      case "seat": {
        const roles = (["sponsor", "administrator"] as const).filter((role) => seats.has(`${step.who}-${role}`))
        if (roles.length === 0 || m.suspended.has(step.who) === (step.state === "suspended")) return Effect.void
        if (step.state === "suspended") m.suspended.add(step.who)
        else m.suspended.delete(step.who)
        const version = ++m.feed
        return Effect.forEach(roles, (role) => seat(step.who, role, step.state, version), { discard: true })
      }
    }
  }
  for (const one of steps) yield* take(one)

  const [standing] = yield* sql<{ state: string; role: string; access_version: number }>`
    select state, role, access_version from access where id = ${accessId}`
  assert.deepStrictEqual(standing, { state: m.state, role: m.role, access_version: m.version })
  const rows = yield* sql<{ id: string; state: string; evidence_digest: string; same: boolean }>`
    select r.id::text as id, r.state, r.evidence_digest,
      coalesce(p.merged_into, p.id) is not distinct from coalesce(a.merged_into, a.id) as same
    from access_reviews r join people p on p.id = r.proposed_by left join people a on a.id = r.approved_by
    where r.institution_id = ${fern} order by r.id`
  assert.sameMembers(rows.map(({ id, state }) => `${id} ${state}`), m.reviews.map(({ id, state }) => `${id} ${state}`))
  assert.isFalse(rows.some(({ same }) => same))
  for (const row of rows) {
    const entries = yield* sql<{ digest: string; prev_digest: string }>`
      select digest, prev_digest from access_review_evidence where review_id = ${row.id}::uuid order by nth`
    const ends = entries.reduce((prev, entry) => entry.prev_digest === prev ? entry.digest : "broken", genesis)
    assert.strictEqual(ends, row.evidence_digest)
  }
})

layer(services, { excludeTestServices: true })("Reviews, whatever happens", (it) => {
  it.effect("keep four eyes, whole evidence and the Access", () =>
    Effect.gen(function* () {
      const run = Effect.runPromiseWith(yield* Effect.context<Layer.Success<typeof services>>())
      const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), (steps) => run(history(steps)))
      yield* Effect.promise(() => fc.assert(property, { numRuns: runs, endOnFailure: true }))
    }), 120_000)
})
