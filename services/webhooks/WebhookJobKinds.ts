import type { WebhookId } from "../../schemas/BrandedIds.ts"
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
}

/** Bounds of event ids, both exclusive. */
export interface ReplayMissedArgs {
  readonly webhook_id: WebhookId
  readonly from: string
  readonly to: string
}

export const cancelJob: JobKind<CancelArgs> = { kind: "webhooks.cancel" }
export const replayJob: JobKind<ReplayArgs> = { kind: "webhooks.replay" }
export const replayMissedJob: JobKind<ReplayMissedArgs> = { kind: "webhooks.replay-missed" }
