/** The row of a service grant, and its view for the API. */
import { Effect } from "effect"
import type { InstitutionId, PersonId, ProjectId, ServiceGrantId } from "../../../schemas/BrandedIds.ts"
import { acknowledgementOf, deliveryOf, type DeliveryRow } from "../../lifecycle/DeliveryStatus.ts"
import { EnvironmentMismatch, InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import type { Capability, GrantRead, ServiceGrantState } from "../../../schemas/identity/ServiceGrant.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"

const day = 86_400_000
const longest = 365 * day

export interface GrantRow {
  readonly id: ServiceGrantId
  readonly project_id: ProjectId
  readonly service_id: string
  readonly service_issuer: string
  readonly capabilities: ReadonlyArray<Capability>
  readonly environment: "staging" | "production"
  readonly state: Exclude<ServiceGrantState, "expired">
  readonly revision: number
  readonly reason: string
  readonly proposed_by: PersonId
  readonly proposed_at: Date
  readonly approved_by: PersonId | null
  readonly approved_at: Date | null
  /** The event of the newest decision; null where the grant never had an event. */
  readonly decision_event_id: string | null
  readonly revoked_by: PersonId | null
  readonly revoked_at: Date | null
  readonly expires_at: Date | null
}

/** The project of a grant. */
export interface ProjectRow {
  readonly state: string
  readonly rollout: string | null
  readonly environment: GrantRow["environment"]
  readonly institution_id: InstitutionId
}

/** Refuses to propose a grant for a project that is withdrawn. */
export const mustStand = ({ state }: ProjectRow): Effect.Effect<void, InvalidState> =>
  state === "withdrawn"
    ? Effect.fail(new InvalidState({ state, allowed: ["registered", "launch_proposed", "launched", "held"] }))
    : Effect.void

/** Refuses a grant for another environment than the project's: it would allow the service nothing. */
export const mustFit = (
  { environment }: ProjectRow,
  asked: GrantRow["environment"],
): Effect.Effect<void, EnvironmentMismatch> =>
  environment === asked ? Effect.void : Effect.fail(
    new EnvironmentMismatch({
      project_environment: environment,
      detail: `The grant is for ${asked}, the project is in ${environment}: propose a grant for ${environment}.`,
    }),
  )

/** The state at `now`: a grant expires by time alone, without a write. */
export const stateOf = ({ expires_at, state }: GrantRow, now: number): ServiceGrantState =>
  state !== "revoked" && expires_at !== null && expires_at.getTime() <= now ? "expired" : state

const iso = (at: Date | null) => at?.toISOString() ?? null

/** `known`: whether tokens of the service's issuer are accepted. */
export const viewOf = (
  row: GrantRow & DeliveryRow & {
    readonly installed_version: string | null
    /** Whether the project is gone, or in another environment than the grant's. */
    readonly dead: boolean
    /** Whether the service has an enabled push stream, which needs no token. */
    readonly pushed: boolean
  },
  known: boolean,
  now: number,
): GrantRead => {
  const state = stateOf(row, now)
  return {
    id: row.id,
    project_id: row.project_id,
    service_id: row.service_id,
    service_issuer: row.service_issuer,
    capabilities: row.capabilities,
    environment: row.environment,
    state,
    version: row.revision,
    reason: row.reason,
    proposed_by: row.proposed_by,
    proposed_at: row.proposed_at.toISOString(),
    approved_by: row.approved_by,
    approved_at: iso(row.approved_at),
    revoked_by: row.revoked_by,
    revoked_at: iso(row.revoked_at),
    expires_at: iso(row.expires_at),
    // The event was queued by the deciding transaction itself, whose own row of it is written last.
    delivery: deliveryOf({
      ...row,
      queued_event_id: row.decision_event_id,
      queued_at: row.revoked_at ?? row.approved_at,
    }),
    acknowledgement: acknowledgementOf({ ...row, queued_event_id: row.decision_event_id }, row.installed_version),
    // The grant is checked at each delivery, so an approved grant is effective wherever deliveries are possible.
    effective: state === "approved" && !row.dead && (known || row.pushed) ? "effective" : "not_effective",
  }
}

const expiresAt = ["body", "expires_at"]

/** The requested end of a grant; 422 where it is not in the future, or more than 365 days ahead. */
export const expiryOf = (
  text: string | null | undefined,
  now: number,
): Effect.Effect<Date | null, HTTPValidationError> => {
  if (text == null) return Effect.succeed(null)
  const at = Date.parse(text.toUpperCase())
  if (!(at > now)) {
    return Effect.fail(HTTPValidationError.at(expiresAt, "datetime_future", "Input should be in the future"))
  }
  return at > now + longest
    ? Effect.fail(HTTPValidationError.at(expiresAt, "value_error", "Value error, at most 365 days from now"))
    : Effect.succeed(new Date(at))
}

/** `id`, or the UUID right after `last` where `id` is not greater: the clocks of two processes differ a little. */
export const after = (id: string, last: string | undefined): string => {
  if (last === undefined || id > last) return id
  const hex = (BigInt(`0x${last.replaceAll("-", "")}`) + 1n).toString(16).padStart(32, "0")
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-")
}
