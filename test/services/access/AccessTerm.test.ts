/** Laws of the end of an Access, against a model that keeps every decision and asks all of them. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { endedBy, isOver, lengthened, shortened, type Term, timersOf } from "../../../services/access/AccessTerm.ts"

const end = fc.option(fc.integer({ min: 1, max: 40 }), { nil: null })
const step = fc.oneof(
  fc.record({ kind: fc.constant("shorten" as const), at: fc.integer({ min: 0, max: 40 }) }),
  fc.record({ kind: fc.constant("review" as const), at: end }),
  fc.record({ kind: fc.constant("revoke" as const), at: fc.constant(0) }),
  fc.record({ kind: fc.constant("wait" as const), at: fc.integer({ min: 1, max: 5 }) }),
)

/** The end after these ends were set one after the other, an end that is null being the farthest of all. */
const far = Number.MAX_SAFE_INTEGER
const numberOf = (one: number | null) => one ?? far

describe("the end of an Access", () => {
  it("comes later by a review alone, is never passed by an active Access, and always has its timer", () => {
    fc.assert(fc.property(end, fc.array(step, { maxLength: 30 }), (first, steps) => {
      let now = 0
      let term: Term = { active: true, endsAt: first }
      // The model: the earliest end since the latest review that made it later.
      let model = numberOf(first)
      for (const { at, kind } of steps) {
        if (kind === "wait") now += at!
        // The timer, which fires at any time and whose fate is the state's alone.
        if (isOver(term, now)) term = { ...term, active: false }
        assert.strictEqual(term.active, model > now)
        if (kind === "shorten") {
          const next = shortened(term, at, now)
          const allowed = term.active && at > now && at < model
          assert.strictEqual(typeof next === "object", allowed, `${at} of ${model} at ${now}`)
          if (typeof next === "object") [term, model] = [next, at]
        }
        if (kind === "revoke") {
          term = endedBy(term, now)
          if (term.active) model = now
          assert.strictEqual(isOver(term, now), term.active)
        }
        if (kind === "review" && term.active && model > now) {
          term = lengthened(term, at)
          model = Math.max(model, numberOf(at))
        }
        if (term.active) assert.strictEqual(numberOf(term.endsAt), model)
        const due = timersOf(term).map(({ dueAt }) => dueAt)
        assert.deepStrictEqual(due, term.active && model !== far ? [model] : [])
      }
    }))
  })

  it("is refused for the nearest reason", () => {
    const open: Term = { active: true, endsAt: 10 }
    assert.strictEqual(shortened({ ...open, active: false }, 5, 1), "not_active")
    assert.strictEqual(shortened(open, 1, 1), "not_future")
    assert.strictEqual(shortened(open, 10, 1), "not_earlier")
    assert.deepStrictEqual(shortened({ active: true, endsAt: null }, 10, 1), open)
    assert.deepStrictEqual(lengthened({ ...open, active: false }, 20), { ...open, active: false })
  })
})
