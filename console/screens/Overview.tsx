/** The first page of a mail account: whether its webhooks arrive, and what waits for it. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { AttemptFigures } from "../parts/AttemptFigures.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { Health } from "../parts/WebhookState.tsx"
import { When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { useResource } from "../Resource.ts"
import { session } from "../Visitor.ts"

const count = new Intl.NumberFormat("en")

const Attempts = (): JSX.Element => {
  const stats = useResource("webhook stats", (signal) => ask("webhookStats", { query: {} }, { signal }))
  useRefresh(stats, 30)
  const nothing = (
    <>
      Nothing was sent in the last day. <a href="/console/webhooks">Your webhooks</a> say which events they take.
    </>
  )
  return <AttemptFigures stats={stats} nothing={nothing} />
}

/** The webhooks that do not get what happens: they fail, or they are paused. */
const Troubled = (): JSX.Element | null => {
  const webhooks = useResource(
    "webhooks",
    (signal) => ask("listWebhooks", { query: { include_paused: true } }, { signal }),
  )
  useRefresh(webhooks, 30)
  const troubled = webhooks.value.value?.filter(({ health }) => health === "failing" || health === "paused") ?? []
  return (
    <>
      <Failure of={webhooks.failure} retry={webhooks.reload} />
      {troubled.length === 0 ? null : (
        <section aria-labelledby="troubled">
          <h2 id="troubled">Webhooks that need you</h2>
          <Table
            caption="Webhooks that fail or are paused"
            rows={troubled}
            keyOf={({ id }) => id}
            empty=""
            columns={[
              { head: "Address", cell: ({ id, url }) => <a href={`/console/webhooks/${id}`}>{url}</a> },
              { head: "State", cell: (one) => <Health of={one} /> },
              {
                head: "Last success",
                cell: ({ last_success_at }) => <When at={last_success_at} never="none" minute />,
              },
            ]}
          />
        </section>
      )}
    </>
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
            { head: "Attempts", number: true, cell: ({ attempt }) => count.format(attempt) },
            { head: "Created", cell: ({ created_at }) => <When at={created_at} /> },
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
    <Troubled />
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
