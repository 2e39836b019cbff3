/** The attempts of a webhook over the last day as small bars, beside the share that succeeded. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { now } from "./When.tsx"

type Hours = AnswerOf<"deliveryHours">["items"][number]["hours"]

const bars = 24
const hourMillis = 3_600_000
const height = 24

const count = new Intl.NumberFormat("en")
// Rounded down: 99.96 % is not all of them.
const share = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1, roundingMode: "floor" })

/** The sums of each hour, the one that has begun last. */
const barsOf = (hours: Hours, at: number) => {
  const last = Math.floor(at / hourMillis)
  const sums = Array.from({ length: bars }, () => ({ good: 0, bad: 0 }))
  for (const { dead_letter, delivered, failed, hour } of hours) {
    const sum = sums[bars - 1 - (last - Math.floor(Date.parse(hour) / hourMillis))]
    if (sum === undefined) continue
    sum.good += delivered
    sum.bad += failed + dead_letter
  }
  return sums
}

export const Sparkline = ({ hours }: { readonly hours: Hours | undefined }): JSX.Element => {
  const sums = barsOf(hours ?? [], now.value)
  const [good, bad] = [sums.reduce((sum, one) => sum + one.good, 0), sums.reduce((sum, one) => sum + one.bad, 0)]
  if (good + bad === 0) return <span class="note">none</span>
  const most = Math.max(...sums.map((one) => one.good + one.bad))
  // One failure among thousands is seen.
  const tall = (n: number) => n === 0 ? 0 : Math.max(2, (n / most) * (height - 2))
  return (
    <span class="sparkline">
      <svg viewBox={`0 0 ${bars * 4} ${height}`} aria-hidden="true">
        {sums.map((one, n) => (
          <g key={n}>
            <rect class="good" x={n * 4} y={height - tall(one.good)} width={3} height={tall(one.good)} />
            <rect class="bad" x={n * 4} y={height - tall(one.good) - tall(one.bad)} width={3} height={tall(one.bad)} />
          </g>
        ))}
      </svg>
      <span title={`${count.format(good)} of ${count.format(good + bad)} attempts succeeded`}>
        {share.format(good / (good + bad))}
        <span class="hidden">of {count.format(good + bad)} attempts succeeded</span>
      </span>
    </span>
  )
}
