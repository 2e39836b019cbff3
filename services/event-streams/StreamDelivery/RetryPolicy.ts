/** The retry policy of pushes. */
export interface RetryPolicy {
  /**
   * The lease of a claim: the time until another process gets what a killed process held. Renewed while a POST lasts.
   */
  readonly leaseMillis: number
  /** The delay after the first failure in a row; doubled by each further failure, plus up to a tenth. */
  readonly firstDelayMillis: number
  readonly maxDelayMillis: number
  /** A stream that fails this often in a row is paused. */
  readonly failuresInARow: number
  /** A stream that has taken nothing for so long is paused. */
  readonly silentMillis: number
  /** Tries of the message that tells the receiver that its stream was stopped. */
  readonly partingTries: number
  /** How long a claim is kept after its last message, in case more comes. */
  readonly warmMillis: number
  /** Streams that one process pushes to at once. */
  readonly streamsAtOnce: number
}

export const patience: RetryPolicy = {
  leaseMillis: 6_000,
  firstDelayMillis: 1_000,
  maxDelayMillis: 600_000,
  failuresInARow: 20,
  silentMillis: 3_600_000,
  partingTries: 5,
  warmMillis: 1_000,
  streamsAtOnce: 128,
}

export const delayAfter = ({ firstDelayMillis, maxDelayMillis }: RetryPolicy, failures: number): number =>
  Math.min(maxDelayMillis, firstDelayMillis * 2 ** Math.min(failures - 1, 30)) * (1 + Math.random() / 10)
