/** Access at a past moment equals what a fold of all changes up to that moment says, for random histories. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import type { AccessReviewId, InstitutionId } from "../../../schemas/BrandedIds.ts"
import { Institutions } from "../../../services/access/Institutions.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { day, timed } from "../../support/Fixtures.ts"
import { runs } from "../../support/Runs.ts"
import { institution, member, person, project, tell } from "../../support/TestIdentity.ts"
import { approve, fixture, on, propose, revoke, services } from "./ReviewFixture.ts"

const hour = 3_600_000

type Step =
  & { readonly later: number }
  & (
    | { readonly do: "change"; readonly state: "active" | "revoked"; readonly role: string; readonly moves: boolean }
    | { readonly do: "propose" | "approve" | "revoke" }
  )

const step: fc.Arbitrary<Step> = fc.tuple(
  fc.oneof(
    fc.record({
      do: fc.constant("change" as const),
      state: fc.constantFrom("active" as const, "active" as const, "revoked" as const),
      role: fc.constantFrom("user", "editor"),
      moves: fc.boolean(),
    }),
    fc.record({ do: fc.constantFrom("propose" as const, "propose" as const, "approve" as const, "revoke" as const) }),
  ),
  fc.constantFrom(hour, day, 6 * day, 8 * day, 200 * day),
).map(([change, later]) => ({ ...change, later }))

interface Version {
  readonly at: number
  readonly state: string
  readonly role: string
  readonly institutionId: InstitutionId
}

interface Review {
  readonly id: AccessReviewId
  readonly version: number
  readonly proposedAt: number
  approvedAt?: number
  revokedAt?: number
}

/** The state and the end of a review at a moment; null before its proposal, and once it is revoked or expired. */
const reviewAt = ({ approvedAt, id, proposedAt, revokedAt }: Review, at: number) => {
  const approved = approvedAt !== undefined && approvedAt <= at
  const end = approved ? approvedAt + 365 * day : proposedAt + 7 * day
  if (proposedAt > at || end <= at || (revokedAt ?? Infinity) <= at) return null
  return { review_id: id, state: approved ? "approved" : "proposed" }
}

const history = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const w = yield* fixture
  const moss = yield* institution()
  const oz = yield* person({ operator: true })
  yield* member(moss, oz, "administrator")
  const there = yield* project(moss)
  const versions: Array<Version> = [
    { at: yield* Clock.currentTimeMillis, state: "active", role: "user", institutionId: w.fern },
  ]
  const reviews: Array<Review> = []
  let fed = 1
  for (const one of steps) {
    yield* TestClock.adjust(one.later)
    const at = yield* Clock.currentTimeMillis
    const last = versions.at(-1)!
    const open = reviews.findLast((review) => reviewAt(review, at) !== null)
    if (one.do === "change") {
      const other = last.institutionId === w.fern ? moss : w.fern
      const next = { at, state: one.state, role: one.role, institutionId: one.moves ? other : last.institutionId }
      yield* tell("access", {
        id: w.accessId,
        version: ++fed,
        institution_id: next.institutionId,
        project_id: next.institutionId === w.fern ? w.portal : there,
        person_id: w.pat,
        role: one.role,
        state: one.state,
      })
      const moved = next.institutionId !== last.institutionId
      if (moved && last.state === "active") versions.push({ ...last, at, state: "revoked" })
      if (moved || next.state !== last.state || next.role !== last.role) versions.push(next)
    } else if (one.do === "propose") {
      const version = versions.length
      const possible = last.institutionId === w.fern && last.state === "active"
      if (!possible || (open !== undefined && open.version === version)) continue
      const { review_id } = yield* propose(w, { access_version: version })
      reviews.push({ id: review_id, version, proposedAt: at })
    } else if (open !== undefined) {
      const decision = on(w, w.ada, open.id)
      if (one.do === "revoke") {
        yield* revoke(decision)
        open.revokedAt = at
      } else if (open.approvedAt === undefined) {
        const done = yield* Effect.exit(approve(decision))
        // A review of a version that is not the current one is refused.
        if (done._tag === "Success") open.approvedAt = at
      }
    }
  }
  return { w, moss, oz, versions, reviews }
})

layer(Layer.provideMerge(Institutions.layer, services), { excludeTestServices: true, timeout: "2 minutes" })(
  "PastAccess",
  (it) => {
    it.effect("equals a fold of the changes up to that moment", () =>
      Effect.gen(function* () {
        const run = Effect.runPromiseWith(yield* Effect.context<Layer.Success<typeof services> | Institutions>())
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), (steps) =>
              run(timed(Effect.gen(function* () {
                const { access } = yield* Institutions
                const { moss, oz, reviews, versions, w } = yield* history(steps)
                yield* TestClock.adjust(400 * day)
                const moments = [
                  ...versions.map(({ at }) => at),
                  ...reviews.flatMap((
                    { approvedAt = 0, proposedAt, revokedAt = 0 },
                  ) => [proposedAt, proposedAt + 7 * day, approvedAt, approvedAt + 365 * day, revokedAt]),
                ].filter((at) => at > versions[0]!.at - day)
                for (const at of moments.flatMap((at) => [at - 1, at])) {
                  const nth = versions.findLastIndex((version) => version.at <= at)
                  const version = versions[nth]
                  for (const institutionId of [w.fern, moss]) {
                    const { items } = yield* access(oz, institutionId, { limit: 10, afterId: null, at })
                    const found = items.map(({ access_version, granted_at, review, role }) => [
                      access_version,
                      Date.parse(granted_at),
                      role,
                      review,
                    ])
                    if (version?.state !== "active" || version.institutionId !== institutionId) {
                      assert.deepStrictEqual(found, [])
                      continue
                    }
                    const of = reviews.filter((review) => review.version === nth + 1)
                    const review = of.map((one) => reviewAt(one, at)).find((one) => one !== null) ?? null
                    assert.deepStrictEqual<unknown>(found, [[nth + 1, version.at, version.role, review]])
                  }
                }
              })))),
            { numRuns: runs(25) },
          )
        )
      }), { timeout: 120_000 })

    it.effect("an explanation equals a fold of all that happened", () =>
      Effect.gen(function* () {
        const run = Effect.runPromiseWith(yield* Effect.context<Layer.Success<typeof services> | Institutions>())
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), (steps) =>
              run(timed(Effect.gen(function* () {
                const { explain } = yield* Institutions
                const { moss, oz, reviews, versions, w } = yield* history(steps)
                const last = versions.at(-1)!
                for (const institutionId of [w.fern, moss]) {
                  const own = versions.flatMap((version, n) =>
                    version.institutionId === institutionId ? [{ ...version, access_version: n + 1 }] : []
                  )
                  const said = yield* Effect.option(explain(oz, institutionId, w.accessId))
                  if (own.length === 0) {
                    assert.isTrue(Option.isNone(said))
                    continue
                  }
                  const { effective, reviews: told, versions: found } = Option.getOrThrow(said)
                  assert.deepStrictEqual<unknown>(
                    found.map(({ access_version, created_at, role, state }) => [
                      access_version,
                      Date.parse(created_at),
                      role,
                      state,
                    ]).sort(([one], [other]) => Number(one) - Number(other)),
                    own.map(({ access_version, at, role, state }) => [access_version, at, role, state]),
                  )
                  const moved = last.institutionId !== institutionId
                  assert.deepStrictEqual<unknown>(effective.blocked_by, [
                    ...(!moved && last.state !== "active" ? ["access_revoked"] : []),
                    ...(moved ? ["moved_to_another_institution"] : []),
                  ])
                  const time = (at: number | undefined) => at === undefined ? null : new Date(at).toISOString()
                  assert.sameDeepMembers<unknown>(
                    told.map(({ access_version, approved_at, proposed_at, review_id, revoked_at }) => [
                      review_id,
                      access_version,
                      proposed_at,
                      approved_at,
                      revoked_at,
                    ]),
                    institutionId !== w.fern
                      ? []
                      : reviews.map(({ approvedAt, id, proposedAt, revokedAt, version }) => [
                        id,
                        version,
                        time(proposedAt),
                        time(approvedAt),
                        time(revokedAt),
                      ]),
                  )
                }
              })))),
            { numRuns: 25 },
          )
        )
      }), { timeout: 120_000 })

    it.effect("is refused for a moment that has not come", () =>
      timed(Effect.gen(function* () {
        const { access } = yield* Institutions
        const w = yield* fixture
        const at = (yield* Clock.currentTimeMillis) + 1
        const refused = yield* Effect.flip(access(w.ada, w.fern, { limit: 10, afterId: null, at }))
        assert.instanceOf(refused, HTTPValidationError)
        assert.lengthOf((yield* access(w.ada, w.fern, { limit: 10, afterId: null, at: at - 1 })).items, 1)
      })))
  },
)
