/**
 * The candidates of the list of reviews agree with the proposal itself: for every caller with any memberships, and
 * every Access version with any review history. `blocked_by` is empty exactly where the proposal is accepted; otherwise
 * it holds the code of the refusal.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { runOnce, type UnitOfWork } from "../../../services/platform/database/UnitOfWork.ts"
import { day, reason, start, timed } from "../../support/Fixtures.ts"
import { runs } from "../../support/Runs.ts"
import { access, institution, member, person, project, tell } from "../../support/TestIdentity.ts"
import { approve, on, propose, revoke, said, services } from "./ReviewFixture.ts"

const roles = ["sponsor", "administrator", "member"] as const
const seats = ["none", "active", "invited", "suspended", "ended", "early", "over", "unaccepted"] as const
type Seat = (typeof seats)[number]

/** The state of a review of an Access version, and how many days ago its last decision was. */
const reviews = ["none", "proposed", "approved", "revoked"] as const
const ages = [0, 7 - 1 / 24, 7, 8, 365 - 1 / 24, 365] as const
const accesses = ["active", "revoked", "removed", "changed", "moved"] as const

const caller = fc.record({
  seats: fc.record({
    sponsor: fc.constantFrom<Seat>("active", ...seats),
    administrator: fc.constantFrom<Seat>("none", "active", ...seats),
    member: fc.constantFrom<Seat>("none", ...seats),
  }),
  status: fc.constantFrom("active", "active", "active", "suspended"),
})
const object = fc.record({
  review: fc.constantFrom(...reviews),
  age: fc.constantFrom(...ages),
  access: fc.constantFrom("active", "active", "active", ...accesses),
})
const situation = fc.record({
  callers: fc.array(caller, { minLength: 3, maxLength: 5 }),
  objects: fc.array(object, { minLength: 3, maxLength: 5 }),
  institution: fc.constantFrom("active", "active", "active", "suspended"),
})
type Situation = typeof situation extends fc.Arbitrary<infer S> ? S : never

const at = (millis: number) => new Date(millis).toISOString()

/** The feed's fields for a membership at `now`. */
const seatOf = (seat: Seat, now: number) => ({
  state: seat === "invited" || seat === "suspended" || seat === "ended" ? seat : "active",
  ...(seat === "unaccepted" || seat === "invited" ? { accepted_at: null } : {}),
  ...(seat === "early" ? { effective_from: at(now + 1) } : {}),
  ...(seat === "over" ? { expires_at: at(now) } : {}),
} as const)

const rolledBack = <A, E extends { readonly code: string }, R>(command: Effect.Effect<A, E, R>) =>
  Effect.flatMap(
    Database,
    ({ sql }) =>
      sql.withTransaction(Effect.andThen(runOnce(command), Effect.fail({ code: "done" }))).pipe(
        Effect.flip,
        Effect.map((error) => "code" in error ? error.code : String(error)),
      ),
  )

const check = Effect.fnUntraced(function* (given: Situation) {
  const [fern, moss] = [yield* institution(), yield* institution()]
  const [sam, ada, pat] = [yield* person(), yield* person(), yield* person()]
  yield* member(fern, sam, "sponsor")
  yield* member(fern, ada, "administrator")
  const portal = yield* project(fern)
  const now = start + 400 * day

  const objects = yield* Effect.forEach(given.objects, ({ access: became, age, review }) =>
    Effect.gen(function* () {
      const accessId = yield* access(fern, portal, pat)
      const w = { fern, sam, ada, abe: ada, pat, portal, accessId }
      yield* TestClock.setTime(now - age * day)
      if (review !== "none") {
        const { review_id } = yield* propose(w)
        if (review === "approved") yield* approve(on(w, ada, review_id))
        if (review === "revoked") yield* revoke(on(w, ada, review_id))
      }
      const line = { id: accessId, version: 2, institution_id: fern, project_id: portal, person_id: pat, role: "user" }
      if (became === "removed") yield* tell("access", { id: accessId, version: 2, removed: true })
      if (became === "revoked") yield* tell("access", { ...line, state: "revoked" })
      if (became === "changed") yield* tell("access", { ...line, state: "active", role: "editor" })
      if (became === "moved") yield* tell("access", { ...line, state: "active", institution_id: moss })
      return accessId
    }))
  yield* TestClock.setTime(now)

  const callers = yield* Effect.forEach(given.callers, ({ seats, status }) =>
    Effect.gen(function* () {
      const id = yield* person({ status } as { readonly status: "active" | "suspended" })
      for (const role of roles) {
        if (seats[role] !== "none") yield* member(fern, id, role, seatOf(seats[role], now))
      }
      return id
    }))
  const { sql } = yield* Database
  yield* sql`update institutions set status = ${given.institution} where id = ${fern}`

  const service = yield* AccessReviews
  for (const [n, personId] of callers.entries()) {
    const listed = yield* service.list(personId, fern).pipe(
      Effect.map((list) => said(list).candidates),
      Effect.catchTag("SqlError", Effect.die),
      Effect.orElseSucceed(() => null),
    )
    for (const [i, accessId] of objects.entries()) {
      for (const version of [1, 2]) {
        const asked = { access_id: accessId, access_version: version, reason, personId, institutionId: fern }
        const outcome = yield* rolledBack(
          service.propose(asked) as Effect.Effect<unknown, { readonly code: string }, UnitOfWork>,
        )
        const what = JSON.stringify([given.callers[n], given.objects[i], version])
        const shown = listed?.find((one) => one.access_id === accessId && one.access_version === version)
        if (shown === undefined) {
          assert.notStrictEqual(outcome, "done", `taken, but not listed: ${what}`)
          continue
        }
        assert.deepStrictEqual(shown.blocked_by, outcome === "done" ? [] : [outcome], what)
        assert.strictEqual(shown.proposable, outcome === "done", what)
      }
    }
  }
})

layer(services, { excludeTestServices: true })("The candidates of reviews", (it) => {
  it.effect(
    "blocked_by of a candidate is the proposal's own refusal, for every caller and Access version",
    () =>
      timed(Effect.gen(function* () {
        const run = Effect.runPromiseWith(yield* Effect.context<Layer.Success<typeof services>>())
        const property = fc.asyncProperty(situation, (given) => run(check(given)))
        yield* Effect.promise(() => fc.assert(property, { numRuns: runs(40), endOnFailure: true }))
      })),
    300_000,
  )
})
