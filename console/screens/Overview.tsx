/** The first page of a mail account: whether its webhooks arrive, and what waits for it. */
import type { ComponentChildren, JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { Failure } from "../parts/Failure.tsx"
import { type Minutes, MinutesPlot } from "../parts/MinutesPlot.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { now, When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { useResource } from "../Resource.ts"
import { session } from "../Visitor.ts"

const count = new Intl.NumberFormat("en")
const share = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 })
const rate = new Intl.NumberFormat("en", { maximumFractionDigits: 1 })
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

const Attempts = (): JSX.Element => {
  const stats = useResource("webhook stats", (signal) => ask("webhookStats", { query: {} }, { signal }))
  useRefresh(stats, 30)
  const found = stats.value.value
  const { all, dead, recent, slowest, succeeded } = summary(found?.items ?? [], now.value)
  return (
    <section aria-labelledby="attempts">
      <h2 id="attempts">Deliveries of the last day</h2>
      <Failure of={stats.failure} retry={stats.reload} />
      {found === undefined ? null : all === 0
        ? (
          <div class="empty">
            Nothing was sent in the last day. <a href="/console/webhooks">Your webhooks</a> say which events they take.
          </div>
        )
        : (
          <>
            <dl class="figures">
              <Fact name="Succeeded">{share.format(succeeded)}</Fact>
              <Fact name="Attempts">{count.format(all)}</Fact>
              <Fact name="A minute, of late">{rate.format(recent / 60)}</Fact>
              <Fact name="Half took at most">{count.format(found.ms_p50 ?? 0)} ms</Fact>
              <Fact name="99 of 100 at most">{count.format(found.ms_p99 ?? 0)} ms</Fact>
              <Fact name="Slowest">{count.format(slowest)} ms</Fact>
              <Fact name="Failed for good">{count.format(dead)}</Fact>
            </dl>
            <MinutesPlot items={found.items} until={now.value} />
          </>
        )}
    </section>
  )
}

const DeadLetters = (): JSX.Element => {
  const query = { status: "dead_letter", limit: 5 } as const
  const letters = useResource("newest dead letters", (signal) => ask("listAllDeliveries", { query }, { signal }))
  useRefresh(letters, 30)
  return (
    <section aria-labelledby="letters">
      <h2 id="letters">Newest that failed for good</h2>
      <Failure of={letters.failure} retry={letters.reload} />
      {letters.value.value === undefined ? null : (
        <Table
          caption="The newest dead letters"
          rows={letters.value.value.items}
          keyOf={({ id }) => id}
          empty="No delivery failed for good."
          columns={[
            { head: "Event", cell: ({ event_type, id }) => <a href={`/console/deliveries/${id}`}>{event_type}</a> },
            { head: "Answer", cell: ({ response_status }) => response_status ?? "none" },
            { head: "Attempts", cell: ({ attempt }) => count.format(attempt) },
            { head: "Event came", cell: ({ created_at }) => <When at={created_at} /> },
          ]}
        />
      )}
    </section>
  )
}

const Unread = (): JSX.Element => {
  const query = { unread: true, limit: 1 } as const
  const unread = useResource("unread", (signal) => ask("listNotifications", { query }, { signal }))
  const n = unread.value.value?.unread
  return (
    <p>
      <Failure of={unread.failure} retry={unread.reload} />
      {n === undefined ? null : (
        <a href="/console/notifications">
          {n === 0 ? "No unread notification" : `${count.format(n)} unread notification${n === 1 ? "" : "s"}`}
        </a>
      )}
    </p>
  )
}

const Incoming = (): JSX.Element => {
  const incoming = useResource("transfers incoming", (signal) => ask("listIncomingTransfers", {}, { signal }))
  const n = incoming.value.value?.filter(({ status }) => status === "pending").length
  return (
    <p>
      <Failure of={incoming.failure} retry={incoming.reload} />
      {n === undefined ? null : (
        <a href="/console/transfers">
          {n === 0
            ? "No domain is offered to you"
            : `${count.format(n)} domain${n === 1 ? " is" : "s are"} offered to you`}
        </a>
      )}
    </p>
  )
}

const Overview = (): JSX.Element => (
  <Page title="Overview">
    <Attempts />
    <DeadLetters />
    <section aria-labelledby="waiting">
      <h2 id="waiting">Waits for you</h2>
      <Unread />
      {session.value?.features.transfers ? <Incoming /> : null}
    </section>
  </Page>
)
export default Overview
