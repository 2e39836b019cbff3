/** Refusals about a project; each detail names the object and its state, and says what to do. */
import type { PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import { EnvironmentHeld, OwnerNotActive } from "../../schemas/problems/IdentityProblems.ts"

/** `rollout` of a project that is not null. */
export const environmentHeld = (projectId: ProjectId, rollout: string) =>
  new EnvironmentHeld({
    detail: `The rollout of project ${projectId} ${rollout === "fail" ? "failed" : "is on hold"}: nothing new takes ` +
      "effect there until an operator releases it.",
  })

/** One detail for all cases, so that it does not tell whether such a person exists. */
export const ownerNotActive = (personId: PersonId) =>
  new OwnerNotActive({
    detail:
      `No active person has the id ${personId}: they may be unknown, suspended, disabled, or merged into another ` +
      "person. Name an active one.",
  })
