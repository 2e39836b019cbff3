/** How much one process sends and holds at once. */

export interface SlotLimits {
  /** Sends on the wire at once, all webhooks together. */
  readonly active: number
  /** Deliveries in memory at once: waiting, on the wire, or with a result that is not settled. */
  readonly claimed: number
  /** Sends on the wire to one `host:port`. */
  readonly perHost: number
  /** Sends on the wire to one `host:port` that does not answer. */
  readonly perSilentHost: number
}

export const defaultLimits: SlotLimits = { active: 512, claimed: 4096, perHost: 64, perSilentHost: 64 }
