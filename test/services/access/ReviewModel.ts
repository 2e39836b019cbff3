/** A model of the reviews in one institution of a few people, and the random steps that it takes. */
import * as fc from "fast-check"
import type { AccessReviewId } from "../../../schemas/BrandedIds.ts"

/** Numbers of people: 0 and 1 begin as Sponsors, 1 to 3 as administrators, 4 without a role. */
export const people = 5

const seatStates = ["active", "suspended", "ended", "expired"] as const
type SeatState = (typeof seatStates)[number]
type Role = "sponsor" | "administrator" | "member"

export type Step =
  | { readonly do: "propose"; readonly who: number; readonly version: number | "the current" }
  | { readonly do: "approve" | "revoke"; readonly who: number; readonly nth: number; readonly seen: Seen }
  | { readonly do: "replay"; readonly nth: number; readonly same: boolean }
  | { readonly do: "change"; readonly state: "active" | "revoked" | "removed"; readonly role: string }
  | { readonly do: "seat"; readonly who: number; readonly role: Role; readonly state: SeatState }
  | ({ readonly do: "vouch"; readonly who: number } & Vouched)
  | { readonly do: "merge"; readonly who: number; readonly into: number }
  | { readonly do: "hold"; readonly held: boolean }
  | { readonly do: "follow"; readonly delivered: number; readonly acknowledged: number }

/** Which evidence a decision names: none, the review's first, its newest. */
type Seen = "nothing" | "the first" | "the newest"

/** The provenance of a person: by whom, how many days ago, and whether a third person approved it. */
interface Vouched {
  readonly by: number
  readonly as: "made" | "approved"
  readonly days: number
  readonly third: boolean
}

// Mostly people with the role, so that many steps are accepted and can be wrong.
const who = fc.nat(people - 1)
const sponsor = fc.constantFrom(0, 1, 0, 1, 0, 1, 2, 3, 4)
const administrator = fc.constantFrom(1, 2, 3, 1, 2, 3, 0, 4)
const decider = fc.nat(3)
const version = fc.constantFrom("the current", "the current", "the current", 1, 2)
const nth = fc.nat(3)
const seen = fc.constantFrom("nothing", "nothing", "the first", "the newest")

export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("propose"), who: sponsor, version }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("approve"), who: administrator, nth, seen }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("revoke"), who, nth, seen }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("replay"), nth: fc.nat(7), same: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("change"),
      state: fc.constantFrom("active", "active", "revoked", "removed"),
      role: fc.constantFrom("user", "editor"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("seat"),
      who,
      role: fc.constantFrom("sponsor", "administrator", "member"),
      state: fc.constantFrom("active", ...seatStates),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("vouch"),
      who: decider,
      by: decider,
      as: fc.constantFrom("made", "approved"),
      days: fc.constantFrom(1, 89, 91),
      third: fc.constantFrom(false, false, true),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("merge"), who, into: decider }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("hold"), held: fc.constantFrom(true, false, false) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("follow"), delivered: nth, acknowledged: nth }) },
) as fc.Arbitrary<Step>

export interface Reviewed {
  readonly id: AccessReviewId
  readonly version: number
  readonly proposer: number
  readonly digests: Array<string>
  state: "proposed" | "approved" | "revoked"
  approver: number | null
  revoker: number | null
}

export interface Model {
  readonly reviews: Array<Reviewed>
  /** By person and role. */
  readonly seats: Map<string, { readonly who: number; readonly role: Role; readonly state: SeatState }>
  readonly canonical: Array<number>
  readonly vouched: Map<number, Vouched>
  readonly access: { version: number; state: "active" | "revoked"; role: string }
  /** Whether the installation is held: it activates nothing. */
  held: boolean
}

export const fresh = (): Model => ({
  reviews: [],
  seats: new Map(),
  canonical: Array.from({ length: people }, (_, n) => n),
  vouched: new Map(),
  access: { version: 1, state: "active", role: "user" },
  held: false,
})

export const isGone = (m: Model, n: number) => m.canonical[n] !== n

const held = (m: Model, n: number) =>
  [...m.seats.values()].filter((seat) => seat.who === n && seat.state !== "ended").map(({ role, state }) => ({
    role,
    effective: state === "active" && !isGone(m, n),
  }))

/** The refusal of `n` in this role; null where `n` may act. */
const refusal = (m: Model, n: number, role: "sponsor" | "administrator"): string | null => {
  const seats = held(m, n)
  if (seats.length === 0) return "NotFound"
  const mine = seats.filter((seat) => seat.role === role)
  if (mine.some(({ effective }) => effective)) return null
  if (mine.length > 0) return role === "sponsor" ? "NotCurrentSponsor" : "AdministratorNotEffective"
  return seats.some(({ effective }) => effective) ? "RoleRequired" : "MembershipNotActive"
}

/** Whether two are independent: different canonical persons, without recent provenance between them by one alone. */
const independent = (m: Model, one: number, other: number) => {
  const of = (n: number) => m.canonical[n]
  return of(one) !== of(other) &&
    ![...m.vouched].some(([n, { by, days, third }]) =>
      days < 90 && !third && [of(n), of(by)].includes(of(one)!) && [of(n), of(by)].includes(of(other)!)
    )
}

const versionFault = ({ access }: Model, version: number) =>
  access.state !== "active" ? "AccessNotActive" : version !== access.version ? "AccessVersionSuperseded" : null

export const proposing = (m: Model, n: number, version: number): string => {
  const open = m.reviews.some((review) => review.version === version && review.state !== "revoked")
  return refusal(m, n, "sponsor") ?? versionFault(m, version) ?? (open ? "ReviewExists" : "done")
}

const unseen = (review: Reviewed, seen: Seen) =>
  seen === "the first" && review.digests.length > 1 ? "PreconditionFailed" : null

export const approving = (m: Model, n: number, review: Reviewed, seen: Seen): string =>
  refusal(m, n, "administrator") ??
    (independent(m, n, review.proposer) ? null : "FourEyesRequired") ?? (m.held ? "Held" : null) ??
    unseen(review, seen) ??
    (review.state === "proposed" ? null : "InvalidState") ?? versionFault(m, review.version) ?? "done"

export const revoking = (m: Model, n: number, review: Reviewed, seen: Seen): string => {
  const own = n === review.proposer && review.state === "proposed" && refusal(m, n, "sponsor") === null
  return (own ? null : refusal(m, n, "administrator")) ?? unseen(review, seen) ??
    (review.state === "revoked" ? "InvalidState" : "done")
}

/** Whether the two decided one thing together, under any of their names: such people cannot be merged. */
export const together = (m: Model, one: number, other: number) =>
  m.reviews.some(({ approver, proposer }) =>
    approver !== null && new Set([m.canonical[approver], m.canonical[proposer], one, other]).size === 2 &&
    m.canonical[approver] !== m.canonical[proposer]
  )

/** Whether a person has a role or took part in a decision: such a person cannot be merged away. */
export const entangled = (m: Model, n: number) => {
  const mine = (one: number | null) => one !== null && m.canonical[one] === n
  return [...m.seats.values()].some((seat) => mine(seat.who)) ||
    m.reviews.some(({ approver, proposer, revoker }) => mine(approver) || mine(proposer) || mine(revoker))
}

export const reasonsOf = (m: Model, review: Reviewed): ReadonlyArray<string> => [
  ...(m.access.state === "active" ? [] : ["access_not_active"]),
  ...(m.access.version === review.version ? [] : ["access_version_superseded"]),
  ...(refusal(m, review.proposer, "sponsor") === null ? [] : ["sponsor_not_current"]),
  ...(review.state === "revoked" ? ["review_revoked"] : []),
]
