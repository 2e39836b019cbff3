/** The program's queues, and the webhooks with the longest ones. */
import type { JSX } from "preact"
import { useAccountNames } from "../AccountNames.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { AccountLabel } from "../parts/AccountLabel.tsx"
import { AuditLink } from "../parts/AuditLink.tsx"
import { Badge } from "../parts/Badge.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { Failure } from "../parts/Failure.tsx"
import { LiveState } from "../parts/LiveState.tsx"
import { Page } from "../parts/Page.tsx"
import { ReasonDialog } from "../parts/ReasonDialog.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { useOperatorEvents } from "../OperatorEvents.ts"
import { type Resource, useResource } from "../Resource.ts"

type Queue = AnswerOf<"queues">["items"][number]

const names: Readonly<Record<Queue["queue"], string>> = {
  first_tries: "Deliveries, first tries",
  retries: "Deliveries, retries",
  outbox_unordered: "Outbox, unordered",
  outbox_ordered: "Outbox, in order",
  mails: "Mails",
  slack: "Slack messages",
  jobs: "Jobs",
  timers: "Timers",
  provider_jobs: "Jobs at the identity provider",
}

const count = new Intl.NumberFormat("en")

/** Whether the oldest due one is due for so long that a worker does not keep up, in milliseconds. */
const late = 60_000

const State = ({ asOf, of }: { readonly of: Queue; readonly asOf: string }): JSX.Element =>
  of.oldest_due_at !== null && Date.parse(asOf) - Date.parse(of.oldest_due_at) > late
    ? <Badge tone="bad">late</Badge>
    : of.failing > 0
    ? <Badge tone="warn">some fail</Badge>
    : <Badge tone="good">flows</Badge>

/** What the last full minute did. */
const Rate = ({ of: { per_minute, queue } }: { readonly of: Queue }): JSX.Element =>
  queue === "retries"
    ? <span class="note">with first tries</span>
    : per_minute === null
    ? <span class="note">not counted</span>
    : <>{count.format(per_minute)}</>

const pausedBy = {
  owner: "paused by its account",
  operator: "paused by an operator",
  system: "paused, since it failed for days",
} as const

type Held = AnswerOf<"listBacklogs">["items"][number]

/** An operator's actions on a webhook's queue; its account's own pause is the account's. */
const Commands = ({ done, of }: { readonly of: Held; readonly done: () => unknown }): JSX.Element => {
  const params = { webhook_id: of.webhook_id }
  const named = (what: string) => `${what} ${of.webhook_id}`
  const pauses = of.paused_by !== "operator"
  const resumes = of.paused_by === "operator" || of.paused_by === "system"
  return (
    <div class="actions">
      {of.paused ? null : (
        <ReasonDialog
          name={named("kick")}
          label="Try now…"
          title="Try what waits at once"
          submit="Try it now"
          said="What waits is due now."
          write={(reason, key) => ask("kickWebhook", { params, payload: { reason } }, { key })}
          done={done}
        >
          <p>Up to 1,000 deliveries that wait for their next attempt to {of.url} are due now.</p>
        </ReasonDialog>
      )}
      {!pauses ? null : (
        <ReasonDialog
          name={named("pause")}
          label="Pause…"
          title="Pause this account's webhook"
          submit="Pause it"
          kind="stop"
          said="The webhook is paused until an operator resumes it."
          write={(reason, key) => ask("pauseWebhook", { params, payload: { reason } }, { key })}
          done={done}
        >
          <p>
            Nothing is sent to {of.url}{" "}
            until an operator resumes it. Its account is told that an operator paused it, not why, and cannot resume it.
          </p>
        </ReasonDialog>
      )}
      {!resumes ? null : (
        <ReasonDialog
          name={named("resume")}
          label="Resume…"
          title="Resume this account's webhook"
          submit="Resume it"
          said="The operators' pause has ended."
          write={(reason, key) => ask("resumeWebhook", { params, payload: { reason } }, { key })}
          done={done}
        >
          <p>What waits for {of.url} is sent. Where its account had paused it before, it stays paused.</p>
        </ReasonDialog>
      )}
    </div>
  )
}

const Backlogs = ({ backlogs }: { readonly backlogs: Resource<AnswerOf<"listBacklogs">> }): JSX.Element => {
  const found = backlogs.value.value
  const names = useAccountNames((found?.items ?? []).map(({ account_id }) => account_id))
  return (
    <section aria-labelledby="backlogs">
      <h2 id="backlogs">Webhooks with the longest queues</h2>
      <Failure of={backlogs.failure} retry={backlogs.reload} />
      {found === undefined ? null : (
        <Table
          caption="Webhooks by the number of deliveries that wait"
          rows={found.items}
          keyOf={({ webhook_id }) => webhook_id}
          empty="No delivery waits for any webhook."
          columns={[
            {
              head: "Webhook",
              cell: (one) => (
                <>
                  {one.url ?? "deleted"} {one.paused
                    ? <Badge tone="off">{one.paused_by === null ? "paused" : pausedBy[one.paused_by]}</Badge>
                    : null}
                  <br />
                  <code>{one.webhook_id}</code> <AuditLink id={one.webhook_id} />
                  {one.url === null ? null : <Commands done={backlogs.reload} of={one} />}
                </>
              ),
            },
            {
              head: "Account",
              cell: ({ account_id }) => <AccountLabel id={account_id} name={names(account_id)} />,
            },
            { head: "Waiting", number: true, cell: ({ depth }) => count.format(depth) },
            { head: "Of them retries", number: true, cell: ({ retries }) => count.format(retries) },
            { head: "Under way", number: true, cell: ({ leased }) => count.format(leased) },
            { head: "Oldest due", cell: ({ oldest_due_at }) => <When at={oldest_due_at} never="none" /> },
          ]}
        />
      )}
    </section>
  )
}

const QueuesPage = (): JSX.Element => {
  const queues = useResource("queues", (signal) => ask("queues", {}, { signal }))
  const backlogs = useResource("backlogs", (signal) => ask("listBacklogs", { query: { sort: "backlog" } }, { signal }))
  const cut = useOperatorEvents({ queues: queues.put, backlogs: backlogs.put }, queues.reload)
  const found = queues.value.value
  return (
    <Page title="Queues">
      <LiveState cut={cut} />
      <Failure of={queues.failure} retry={queues.reload} />
      {found === undefined ? null : (
        <Table
          caption="Queues of the program"
          rows={found.items}
          keyOf={({ queue }) => queue}
          empty="There is no queue."
          columns={[
            { head: "Queue", cell: ({ queue }) => names[queue] },
            { head: "State", cell: (one) => <State of={one} asOf={found.as_of} /> },
            {
              head: "Waiting",
              number: true,
              cell: ({ capped, depth }) => `${count.format(depth)}${capped ? " or more" : ""}`,
            },
            { head: "Due", number: true, cell: ({ due }) => count.format(due) },
            { head: "Oldest due", cell: ({ oldest_due_at }) => <When at={oldest_due_at} never="none" /> },
            { head: "Done a minute", number: true, cell: (one) => <Rate of={one} /> },
            { head: "Under way", number: true, cell: ({ leased }) => count.format(leased) },
            { head: "Failed before", number: true, cell: ({ failing }) => count.format(failing) },
          ]}
        />
      )}
      <Backlogs backlogs={backlogs} />
      <CopyCommand command="queues" />
    </Page>
  )
}
export default QueuesPage
