/** The audit record of a decision on a service grant, and its event for products. */
import { Effect } from "effect"
import type { InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import type { GrantRow } from "./GrantRows.ts"

/** Records a decision in the audit; the person is null for the program itself. */
export const recording = Effect.map(
  Audit,
  (audit) => (action: string, grant: Pick<GrantRow, "id" | "project_id">, personId: PersonId | null) =>
    audit.append({
      action: `service-grant.${action}`,
      actor: personId === null ? "system" : `person:${personId}`,
      subject: `service-grant:${grant.id}`,
      outcome: "done",
      decision: true,
      details: { project: grant.project_id },
    }),
)

/** Appends the event of a decision; returns its id. */
export const eventAppender = Effect.map(
  EventLog,
  (eventLog) =>
  (
    kind: "service-grant-approved" | "service-grant-revoked",
    grant: GrantRow,
    institutionId: InstitutionId,
    personId: PersonId | null,
  ) =>
    Effect.map(
      eventLog.append({
        kind,
        projectId: grant.project_id,
        institutionId,
        payload: {
          grant: {
            grant_id: grant.id,
            service_id: grant.service_id,
            service_issuer: grant.service_issuer,
            capabilities: grant.capabilities,
            environment: grant.environment,
            expires_at: grant.expires_at?.toISOString() ?? null,
          },
        },
        initiatedBy: personId === null ? "system" : "admin",
      }),
      ([eventId]) => eventId!,
    ),
)
