/**
 * An item of a campaign: pure decisions on its state. An answer is given once, while the campaign is open and the Access
 * still has the version that the item is about; the other states are judged when the item is read.
 */
import type { CampaignAnswer, CampaignItemState } from "../../../schemas/identity/Campaign.ts"

/** What is kept of an item. */
export type Outcome = "open" | "confirmed" | "proposed_for_revocation"

/** What an item depends on; times are milliseconds since 1970. */
export interface Around {
  readonly now: number
  readonly deadline: number
  /** Null where no person closed the campaign. */
  readonly closedAt: number | null
  /** When the version that the item is about was followed by another one; null while it is the newest. */
  readonly supersededAt: number | null
}

type Term = Pick<Around, "closedAt" | "deadline">

/** When the campaign ends, or has ended: at its deadline, or before, where it was closed. */
export const endOf = ({ closedAt, deadline }: Term): number =>
  closedAt === null ? deadline : Math.min(closedAt, deadline)

export const isOver = (around: Term & Pick<Around, "now">): boolean => endOf(around) <= around.now

/** What ended first decides: the version that the item is about, or the campaign. */
export const stateOf = (outcome: Outcome, around: Around): CampaignItemState => {
  if (outcome !== "open") return outcome
  const { now, supersededAt } = around
  if (supersededAt !== null && supersededAt <= Math.min(now, endOf(around))) return "withdrawn"
  return isOver(around) ? "unanswered" : "open"
}

/** The outcome of an answer; null where the item takes none any more. */
export const answered = (outcome: Outcome, answer: CampaignAnswer["answer"], around: Around): Outcome | null => {
  if (stateOf(outcome, around) !== "open") return null
  return answer === "confirm" ? "confirmed" : "proposed_for_revocation"
}
