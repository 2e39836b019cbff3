/** The audit records of what a person does to a project. */
import { Effect } from "effect"
import type { InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { Audit } from "../../platform/observability/Audit.ts"

export const projectRecords = Effect.map(
  Audit,
  (audit) =>
  (
    action: string,
    personId: PersonId,
    { id, institution_id }: { readonly id: ProjectId; readonly institution_id: InstitutionId },
    more: Readonly<Record<string, string | number | boolean>> = {},
  ) =>
    audit.append({
      action,
      actor: `person:${personId}`,
      subject: `project:${id}`,
      outcome: "done",
      decision: true,
      details: { institution: institution_id, ...more },
    }),
)
