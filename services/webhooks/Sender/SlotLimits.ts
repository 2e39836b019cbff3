/** The limits of one process. */

export interface SlotLimits {
  /** Active sends of all webhooks together. */
  readonly active: number
  /** Deliveries in memory: waiting, on the wire, or with a result that is not settled yet. */
  readonly claimed: number
  /** Active sends to one `host:port`. */
  readonly perHost: number
  /** Active sends to one `host:port` that does not answer. */
  readonly perSilentHost: number
}

export const defaultLimits: SlotLimits = { active: 512, claimed: 4096, perHost: 64, perSilentHost: 64 }
