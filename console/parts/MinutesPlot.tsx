/** Attempts over the last day as bars: what arrived, and on top of it what did not. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"

export type Minutes = AnswerOf<"webhookStats">["items"]

const bars = 96
const barMillis = 900_000
const [width, height] = [bars * 10, 160]

interface Bar {
  readonly delivered: number
  readonly failed: number
}

/** The sums of each quarter of an hour, the last one ends at `until`. */
const barsOf = (items: Minutes, until: number): ReadonlyArray<Bar> => {
  const sums = Array.from({ length: bars }, () => ({ delivered: 0, failed: 0 }))
  for (const { dead_letter, delivered, failed, minute } of items) {
    const at = bars - 1 - Math.floor((until - Date.parse(minute)) / barMillis)
    const sum = sums[Math.max(0, Math.min(bars - 1, at))]!
    sum.delivered += delivered
    sum.failed += failed + dead_letter
  }
  return sums
}

const count = new Intl.NumberFormat("en")

export const MinutesPlot = ({ items, until }: {
  readonly items: Minutes
  /** Milliseconds since the epoch. */
  readonly until: number
}): JSX.Element => {
  const sums = barsOf(items, until)
  const most = Math.max(1, ...sums.map(({ delivered, failed }) => delivered + failed))
  const tall = (n: number) => n === 0 ? 0 : Math.max(2, (n / most) * height)
  return (
    <figure class="plot">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Attempts in each quarter of an hour of the last day, ${count.format(most)} at most`}
      >
        {sums.map(({ delivered, failed }, n) => {
          const [good, bad] = [tall(delivered), tall(failed)]
          const from = Math.max(0, height - good - bad)
          return (
            <g key={n}>
              <rect class="good" x={n * 10 + 1} y={height - good} width={8} height={good} />
              <rect class="bad" x={n * 10 + 1} y={from} width={8} height={bad} />
            </g>
          )
        })}
      </svg>
      <figcaption>
        <span>24 hours ago</span>
        <span>now</span>
        <span>
          <i class="key good" aria-hidden="true">■</i> arrived <i class="key bad" aria-hidden="true">■</i>{" "}
          failed, at most {count.format(most)} in a quarter of an hour
        </span>
      </figcaption>
    </figure>
  )
}
