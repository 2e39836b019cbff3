/** Durations of attempts by powers of two: the n-th octave is [2^(n-1), 2^n) ms, and the last one has no end. */

const octaves = 17
const starts = Array.from({ length: octaves }, (_, n) => 2 ** n)

/** The octave (0 to 17) of a column in whole milliseconds, as SQL; 0 is less than a millisecond. */
export const octaveOf = (column: string): string => `width_bucket(${column}, '{${starts.join(",")}}'::integer[])`

/** Attempts of one octave, and how long they took on average, in milliseconds. */
export interface Octave {
  readonly n: number
  readonly ms: number
}

/**
 * The duration in milliseconds within which a share (0 to 1) of the attempts ended, or null where there is none: the
 * average of the octave in which the share ends, which is off by less than a factor of two. Takes octaves, the
 * shortest first.
 */
export const withinOf = (octaves: ReadonlyArray<Octave>, share: number): number | null => {
  let left = octaves.reduce((sum, { n }) => sum + n, 0) * share
  for (const { ms, n } of octaves) {
    left -= n
    if (left <= 0) return Math.round(ms)
  }
  return null
}
