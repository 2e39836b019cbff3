/** A transfer's state, its timers and its API view. Times are milliseconds since the epoch. */
import type { AccountId, DomainId, TransferId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import type { DomainTransfer, TransferStatus } from "../../../schemas/mail/Transfer.ts"

export interface TransferState {
  readonly id: TransferId
  readonly domainId: DomainId
  readonly domainName: string
  /** The account that owned the domain at the initiation. */
  readonly sourceUserId: AccountId
  readonly sourceOrgId: WorkspaceId
  readonly sourceLabel: string
  readonly initiatedBy: AccountId
  readonly targetUserId: AccountId
  readonly targetEmail: string
  /** The workspace that the recipient chose; null until accepted. */
  readonly targetOrgId: WorkspaceId | null
  readonly status: TransferStatus
  readonly note: string | null
  readonly rotateDkim: boolean
  /** Forced by a platform administrator: no acceptance, no safety window, no tokens. */
  readonly forced: boolean
  readonly initiatedAt: number
  readonly expiresAt: number
  readonly acceptedAt: number | null
  readonly cooloffUntil: number | null
  readonly completedAt: number | null
  /** Whether the invitation's token was used. */
  readonly acceptUsed: boolean
  /** Whether the stop mail's token was used. */
  readonly stopUsed: boolean
}

export type TimerKind = "transfer.expire" | "transfer.complete"

/** The timers of a state: exactly one while it is live, then none. */
export const timersOf = (state: TransferState): ReadonlyArray<{ readonly kind: TimerKind; readonly dueAt: number }> => {
  if (state.status === "pending") return [{ kind: "transfer.expire", dueAt: state.expiresAt }]
  if (state.status !== "accepted" || state.cooloffUntil === null) return []
  return [{ kind: "transfer.complete", dueAt: state.cooloffUntil }]
}

/** Whether a transition of this state is due by the clock. */
export const isDue = (state: TransferState, now: number): boolean => timersOf(state).some(({ dueAt }) => dueAt <= now)

const time = (millis: number) => new Date(millis).toISOString()
const timeOrNull = (millis: number | null) => millis === null ? null : time(millis)

/**
 * The API view: a pending transfer past its time is shown as expired, an accepted one as accepted until the domain
 * moves.
 */
export const viewOf = (state: TransferState, now: number): DomainTransfer => ({
  id: state.id,
  domain_id: state.domainId,
  domain_name: state.domainName,
  source_user_id: state.sourceUserId,
  source_org_id: state.sourceOrgId,
  source_label: state.sourceLabel,
  target_email: state.targetEmail,
  target_user_id: state.targetUserId,
  target_org_id: state.targetOrgId,
  status: state.status === "pending" && state.expiresAt <= now ? "expired" : state.status,
  note: state.note,
  cooloff_until: timeOrNull(state.cooloffUntil),
  initiated_at: time(state.initiatedAt),
  accepted_at: timeOrNull(state.acceptedAt),
  completed_at: timeOrNull(state.completedAt),
  expires_at: time(state.expiresAt),
})
