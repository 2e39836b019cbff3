import type { WebhookId } from "../../schemas/BrandedIds.ts"
import type { EventType } from "../../schemas/mail/MailEvent.ts"
import type { JobKind } from "../platform/messaging/Jobs.ts"

export interface CancelArgs {
  readonly webhook_id: WebhookId
  readonly deleted_at: string
}

export interface ReplayArgs {
  readonly webhook_id: WebhookId
  readonly status: "dead_letter" | "delivered"
  /** Bounds of delivery ids: `from` inclusive, `to` exclusive. */
  readonly from: string
  readonly to: string
  /** Events of this type only. */
  readonly event_type?: EventType
  /** Dead letters that died until then, so that what is sent is what was counted; absent in jobs of an earlier version. */
  readonly asked_at?: string
}

/** Bounds of event ids, both exclusive. */
export interface ReplayMissedArgs {
  readonly webhook_id: WebhookId
  readonly from: string
  readonly to: string
  /** Events of this type only. */
  readonly event_type?: EventType
}

export const cancelJob: JobKind<CancelArgs> = { kind: "webhooks.cancel" }
export const replayJob: JobKind<ReplayArgs> = { kind: "webhooks.replay" }
export const replayMissedJob: JobKind<ReplayMissedArgs> = { kind: "webhooks.replay-missed" }

/**
 * The same of one event type. They have names of their own: a program of an earlier version, which takes no notice of the
 * type and would send everything, leaves jobs of a kind that it does not know.
 */
export const replayTypeJob: JobKind<ReplayArgs> = { kind: "webhooks.replay-type" }
export const replayMissedTypeJob: JobKind<ReplayMissedArgs> = { kind: "webhooks.replay-missed-type" }
