/** How long and how often a push is tried. */
export interface Patience {
  /** How long what a killed process held is nobody's. While a POST lasts it is renewed, however long that takes. */
  readonly leaseMillis: number
  /** After the first failure in a row; doubled by each, and up to a tenth more. */
  readonly firstDelayMillis: number
  readonly maxDelayMillis: number
  /** A stream that fails this often in a row, or has taken nothing for so long, is paused. */
  readonly failuresInARow: number
  readonly silentMillis: number
  /** How often it is tried to tell a stream that it was stopped. */
  readonly partingTries: number
  /** How long a claim is kept for more to come. */
  readonly warmMillis: number
  /** Streams that one process pushes to at once. */
  readonly streamsAtOnce: number
}

export const patience: Patience = {
  leaseMillis: 6_000,
  firstDelayMillis: 1_000,
  maxDelayMillis: 600_000,
  failuresInARow: 20,
  silentMillis: 3_600_000,
  partingTries: 5,
  warmMillis: 1_000,
  streamsAtOnce: 128,
}

export const delayAfter = ({ firstDelayMillis, maxDelayMillis }: Patience, failures: number): number =>
  Math.min(maxDelayMillis, firstDelayMillis * 2 ** Math.min(failures - 1, 30)) * (1 + Math.random() / 10)
