/** The attempts of the last day in figures and bars: of one webhook, or of all of an account's. */
import type { ComponentChildren, JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import type { Resource } from "../Resource.ts"
import { Failure } from "./Failure.tsx"
import { type Minutes, MinutesPlot } from "./MinutesPlot.tsx"
import { now } from "./When.tsx"

const count = new Intl.NumberFormat("en")
const share = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 })
const hour = 3_600_000

const summary = (items: Minutes, at: number) => {
  let [delivered, failed, dead, recent, slowest] = [0, 0, 0, 0, 0]
  for (const one of items) {
    const all = one.delivered + one.failed + one.dead_letter
    delivered += one.delivered
    failed += one.failed
    dead += one.dead_letter
    slowest = Math.max(slowest, one.ms_max)
    if (Date.parse(one.minute) > at - hour) recent += all
  }
  const all = delivered + failed + dead
  return { all, dead, recent, slowest, succeeded: delivered / all }
}

const Fact = ({ children, name }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

export const AttemptFigures = ({ nothing, stats }: {
  readonly stats: Resource<AnswerOf<"webhookStats">>
  /** Shown where no attempt was made. */
  readonly nothing: ComponentChildren
}): JSX.Element => {
  const found = stats.value.value
  const { all, dead, recent, slowest, succeeded } = summary(found?.items ?? [], now.value)
  return (
    <section aria-labelledby="attempts">
      <h2 id="attempts">Deliveries of the last day</h2>
      <Failure of={stats.failure} retry={stats.reload} />
      {found === undefined ? null : all === 0 ? <div class="empty">{nothing}</div> : (
        <>
          <dl class="figures">
            <Fact name="Succeeded">{share.format(succeeded)}</Fact>
            <Fact name="Attempts">{count.format(all)}</Fact>
            <Fact name="Failed for good">{count.format(dead)}</Fact>
            <Fact name="In the last hour">{count.format(recent)}</Fact>
            <Fact name="Median">{count.format(found.ms_p50 ?? 0)} ms</Fact>
            <Fact name="99th percentile">{count.format(found.ms_p99 ?? 0)} ms</Fact>
            <Fact name="Slowest">{count.format(slowest)} ms</Fact>
          </dl>
          <MinutesPlot items={found.items} until={now.value} />
        </>
      )}
    </section>
  )
}
