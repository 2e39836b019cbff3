/** Counts of the last 24 hours as small bars, beside their sum. */
import type { JSX } from "preact"

const height = 24
const count = new Intl.NumberFormat("en")

export const HourBars = ({ capped, of }: {
  /** The hours, the one that ends now last. */
  readonly of: ReadonlyArray<number>
  /** Whether there may be more. */
  readonly capped: boolean
}): JSX.Element => {
  const most = Math.max(1, ...of)
  // One among thousands is seen.
  const tall = (n: number) => n === 0 ? 0 : Math.max(2, (n / most) * (height - 2))
  return (
    <span class="sparkline">
      <svg viewBox={`0 0 ${of.length * 4} ${height}`} aria-hidden="true">
        {of.map((n, at) => <rect key={at} class="bad" x={at * 4} y={height - tall(n)} width={3} height={tall(n)} />)}
      </svg>
      <span class="note">
        {count.format(of.reduce((sum, n) => sum + n, 0))}
        {capped ? " or more" : ""} in the last 24 hours
      </span>
    </span>
  )
}
