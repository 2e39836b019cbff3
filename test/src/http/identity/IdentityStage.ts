/** An institution and people of every role and of none; all from the feed, so all are independent of each other. */
import { Effect } from "effect"
import type { InstitutionId, PersonId, ProjectId } from "../../../../schemas/BrandedIds.ts"
import { day } from "../../../support/Fixtures.ts"
import { institution, member, owner, person, project } from "../../../support/TestIdentity.ts"

const at = (millis: number) => new Date(Date.now() + millis).toISOString()

export const everybody = [
  "sponsor",
  "sponsor2",
  "administrator",
  "administrator2",
  "member",
  "early",
  "suspended",
  "operator",
  "owner",
  "owner2",
  "elsewhere",
  "stranger",
  "auditor",
] as const
export type Who = (typeof everybody)[number]

export interface IdentityStage {
  readonly institution: InstitutionId
  readonly project: ProjectId
  readonly people: Readonly<Record<Who, PersonId>>
}

/** Fern with its project; the operator and the auditor belong to no institution, `elsewhere` administrates another one. */
export const stage = Effect.gen(function* () {
  const [fern, other] = [yield* institution(), yield* institution({ name: "Moss" })]
  const people = {} as Record<Who, PersonId>
  for (const who of everybody) {
    people[who] = yield* person({ operator: who === "operator", auditor: who === "auditor" })
  }
  yield* member(fern, people.sponsor, "sponsor")
  yield* member(fern, people.sponsor2, "sponsor")
  yield* member(fern, people.administrator, "administrator")
  yield* member(fern, people.administrator2, "administrator")
  yield* member(fern, people.member, "member")
  yield* member(fern, people.early, "administrator", { effective_from: at(30 * day) })
  yield* member(fern, people.suspended, "administrator", { state: "suspended" })
  yield* member(other, people.elsewhere, "administrator")
  yield* member(other, people.elsewhere, "sponsor")
  const portal = yield* project(fern)
  yield* owner(portal, people.owner)
  yield* owner(portal, people.owner2)
  return { institution: fern, project: portal, people } satisfies IdentityStage
})
