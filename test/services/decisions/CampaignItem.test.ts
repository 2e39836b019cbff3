/** Laws of an item of a campaign, against a model that keeps everything that happened and asks all of it. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  answered,
  type Around,
  endOf,
  isOver,
  type Outcome,
  stateOf,
} from "../../../services/decisions/Campaigns/CampaignItem.ts"

const step = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("confirm" as const, "propose_revocation" as const) },
  { weight: 1, arbitrary: fc.constantFrom("close" as const, "supersede" as const) },
  { weight: 4, arbitrary: fc.constant("wait" as const) },
)

type Step = "close" | "confirm" | "propose_revocation" | "supersede" | "wait"

/** The model: every step with its time, the first of which decides. */
const judged = (
  happened: ReadonlyArray<{ readonly at: number; readonly step: Step }>,
  deadline: number,
  now: number,
) => {
  for (const { at, step } of happened) {
    if (at >= deadline) break
    if (step === "confirm") return "confirmed"
    if (step === "propose_revocation") return "proposed_for_revocation"
    if (step === "supersede") return "withdrawn"
    if (step === "close") return "unanswered"
  }
  // At the deadline itself nothing is answered any more; a version that ended at that moment was withdrawn.
  if (happened.some(({ at, step }) => at === deadline && step === "supersede")) return "withdrawn"
  return now >= deadline ? "unanswered" : "open"
}

describe("an item of a campaign", () => {
  it("takes one answer while the campaign is open and the version stands, and keeps what ended it first", () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 8 }), fc.array(step, { maxLength: 20 }), (deadline, steps) => {
      let outcome: Outcome = "open"
      let around: Around = { now: 0, deadline, closedAt: null, supersededAt: null }
      const happened: Array<{ at: number; step: Step }> = []
      for (const one of steps) {
        const before = stateOf(outcome, around)
        if (one === "wait") around = { ...around, now: around.now + 1 }
        else if (one === "close") {
          // A campaign is closed once, and not after its end.
          if (!isOver(around)) {
            happened.push({ at: around.now, step: one })
            around = { ...around, closedAt: around.now }
          }
        } else if (one === "supersede") {
          if (around.supersededAt === null) {
            happened.push({ at: around.now, step: one })
            around = { ...around, supersededAt: around.now }
          }
        } else {
          const next = answered(outcome, one, around)
          assert.strictEqual(next !== null, before === "open")
          if (next !== null) {
            happened.push({ at: around.now, step: one })
            outcome = next
          }
        }
        const state = stateOf(outcome, around)
        assert.strictEqual(state, expected(happened, around))
        // Only an open item changes, and none opens again; of two ends in one moment the version's counts.
        const together = around.supersededAt === endOf(around)
        if (before !== "open" && !together) assert.strictEqual(state, before)
        assert.isAtMost(endOf(around), deadline)
      }
    }))
  })
})

/** The model's word; a version that ends in the moment in which the campaign was closed counts as ended first. */
const expected = (happened: ReadonlyArray<{ readonly at: number; readonly step: Step }>, { deadline, now }: Around) => {
  const first = judged(happened, deadline, now)
  if (first !== "unanswered") return first
  const closed = happened.find(({ step }) => step === "close")
  const ended = happened.find(({ step }) => step === "supersede")
  return closed !== undefined && ended !== undefined && ended.at === closed.at ? "withdrawn" : first
}
