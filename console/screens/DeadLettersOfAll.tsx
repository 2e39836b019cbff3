/** Dead letters of all accounts: what was given up, and sending it again. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useRef } from "preact/hooks"
import { useAccountNames } from "../AccountNames.ts"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf, RequestOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import type { Cut } from "../LiveStream.ts"
import { here } from "../Location.ts"
import { useOperatorEvents } from "../OperatorEvents.ts"
import { AccountLabel } from "../parts/AccountLabel.tsx"
import { announce } from "../parts/Announce.tsx"
import { AuditLink } from "../parts/AuditLink.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { DownloadButton } from "../parts/DownloadButton.tsx"
import { ExportButton, exportSize } from "../parts/ExportButton.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Form, SelectField, TextField } from "../parts/Form.tsx"
import { emptyList, Filters } from "../parts/Filters.tsx"
import { LiveState } from "../parts/LiveState.tsx"
import { Page } from "../parts/Page.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
import { ReplayProgress } from "../parts/ReplayProgress.tsx"
import { Span, spanHours, spanStart } from "../parts/Span.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf, pageAfter, TextFilter } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"

const filters = ["account_id", "webhook_id", "event_type", "within"]

type Letter = AnswerOf<"listDeadLetters">["items"][number]

interface Opened {
  readonly close: () => void
  readonly done: () => unknown
}

const SendAgain = ({ close, done, letter }: Opened & { readonly letter: Letter }): JSX.Element => (
  <ReasonForm
    name={`again ${letter.delivery_id}`}
    close={close}
    done={done}
    submit="Send again"
    said="It is sent again."
    write={(reason, key) =>
      ask("replayDeadLetter", { params: { delivery_id: letter.delivery_id }, payload: { reason } }, { key })}
  >
    <p>
      The event <code>{letter.event_type}</code> is sent to {letter.endpoint_url} once more, with retries as at first.
    </p>
  </ReasonForm>
)

const spans = [["1", "The last hour"], ["24", "24 hours"], ["168", "7 days"], ["720", "30 days"]] as const

type EventType = NonNullable<RequestOf<"replayDeadLetters">["payload"]["event_type"]>

/** What was counted, as both requests take it. */
interface Asked {
  readonly webhook_id: string
  readonly since: string
  readonly until: string
  readonly event_type?: EventType
}

/** Counts a span and then sends it again; the progress is of the number that the replay answers. */
const SendSpan = ({ close, done }: Opened): JSX.Element => {
  const action = useAction()
  const draft = useDraft("span", {
    webhook: filterOf("webhook_id") ?? "",
    type: filterOf("event_type") ?? "",
    hours: String(spanHours() ?? 24),
    reason: "",
  })
  const { hours, reason, type, webhook } = draft.value.value
  const counted = useSignal<{ readonly query: Asked; readonly deliveries: number } | null>(null)
  const sending = useSignal(false)
  const changed = (change: Partial<typeof draft.value.value>) => {
    counted.value = null
    draft.set(change)
  }
  const look = () =>
    action.run(async () => {
      const until = new Date()
      const since = new Date(until.getTime() - Number(hours) * 3_600_000).toISOString()
      const event_type = type.trim() as EventType
      const query = {
        webhook_id: webhook.trim(),
        since,
        until: until.toISOString(),
        ...(type === "" ? {} : { event_type }),
      }
      const { deliveries } = await ask("countDeadLetters", { query })
      counted.value = { query, deliveries }
    })
  const send = async () => {
    const { query } = counted.value!
    const write = async () => {
      const { deliveries } = await ask("replayDeadLetters", { payload: { ...query, reason } }, { key: draft.key })
      // What died since the count is sent, too: the number is the answer's.
      counted.value = { query, deliveries }
    }
    if (!await action.run(write)) return
    announce("They are sent again, in the background.")
    sending.value = true
    await done()
  }
  const found = counted.value
  if (sending.value && found !== null) {
    return (
      <ReplayProgress
        of={found.deliveries}
        left={async (signal) => (await ask("countDeadLetters", { query: found.query }, { signal })).deliveries}
        seconds={2}
        done={done}
        close={close}
      />
    )
  }
  return (
    <Form
      action={action}
      close={close}
      submit={found === null ? "Count" : `Send ${found.deliveries} again`}
      ready={found === null ? webhook.trim() !== "" : found.deliveries > 0 && reason.trim() !== ""}
      write={found === null ? look : send}
    >
      <TextField
        action={action}
        autofocus
        label="Id of the webhook"
        name="webhook_id"
        value={webhook}
        onInput={(webhook) => changed({ webhook })}
      />
      <TextField
        action={action}
        hint="Empty for every type."
        label="Event type"
        name="event_type"
        required={false}
        value={type}
        onInput={(type) => changed({ type })}
      />
      <SelectField label="Within" value={hours} options={spans} onChange={(hours) => changed({ hours })} />
      {found === null ? null : (
        <>
          <p role="status">
            {found.deliveries === 0
              ? "No dead letter of this span can be sent again."
              : `${found.deliveries} dead ${found.deliveries === 1 ? "letter" : "letters"} will be sent again.`}
          </p>
          <TextField
            action={action}
            label="Reason"
            lines={2}
            name="reason"
            hint="It stands in the audit, beside your name."
            value={reason}
            onInput={(reason) => draft.set({ reason })}
          />
        </>
      )}
    </Form>
  )
}

/**
 * Asks for the page again when the dead letters change, and at the first event: a delivery may have been given up between
 * the page's first answer and that event. Gives when the stream was cut.
 */
const useChanges = (reload: () => unknown): Cut => {
  const seen = useRef<string | null>(null)
  const onChange = (standing: unknown) => {
    const now = JSON.stringify(standing)
    if (seen.current !== now) void reload()
    seen.current = now
  }
  return useOperatorEvents({ "dead-letters": onChange }, reload)
}

/** The filters as the API has them. */
const query = () => ({
  account_id: filterOf("account_id"),
  webhook_id: filterOf("webhook_id"),
  event_type: filterOf("event_type"),
  since: spanStart(),
})

/** The list from its beginning, by the filters of now. */
const exported = () => {
  const filter = query()
  return (after_id: string | undefined, signal: AbortSignal) =>
    ask("listDeadLetters", { query: { ...filter, limit: String(exportSize), after_id } }, { signal })
}

const DeadLettersOfAll = (): JSX.Element => {
  const letters = useResource(
    `dead letters of all ${here.value.search}`,
    (signal) => ask("listDeadLetters", { query: { ...query(), after_id: filterOf("after") } }, { signal }),
  )
  const cut = useChanges(letters.reload)
  const found = letters.value.value
  const names = useAccountNames((found?.items ?? []).map(({ account_id }) => account_id))
  return (
    <Page
      title="Dead letters"
      actions={
        <>
          <DownloadButton items={found?.items ?? []} label="Download these" name="dead-letters" />
          <DialogButton name="span" label="Send many again…" title="Send the dead letters of a webhook again">
            {(close) => <SendSpan close={close} done={letters.reload} />}
          </DialogButton>
        </>
      }
    >
      <Filters names={filters}>
        <TextFilter label="Account" name="account_id" />
        <TextFilter label="Webhook" name="webhook_id" />
        <TextFilter label="Event type" name="event_type" placeholder="email.bounced" />
        <Span />
      </Filters>
      <LiveState cut={cut} />
      <Failure of={letters.failure} retry={letters.reload} />
      {found === undefined ? null : (
        <Table
          caption="Dead letters of all accounts, newest first"
          rows={found.items}
          keyOf={({ delivery_id }) => delivery_id}
          empty={emptyList(filters, "No delivery was given up.")}
          columns={[
            {
              head: "Delivery",
              cell: ({ delivery_id }) => (
                <>
                  <code>{delivery_id}</code> <AuditLink id={delivery_id} />
                </>
              ),
            },
            { head: "Event", cell: ({ event_type }) => event_type },
            {
              head: "Webhook",
              cell: ({ endpoint_url, webhook_id }) => (
                <a href={`/console/operations/dead-letters?webhook_id=${webhook_id}`}>{endpoint_url ?? webhook_id}</a>
              ),
            },
            {
              head: "Account",
              cell: ({ account_id }) => (
                <a href={`/console/operations/dead-letters?account_id=${account_id}`}>
                  <AccountLabel id={account_id} name={names(account_id)} />
                </a>
              ),
            },
            { head: "Last answer", cell: ({ error, response_status }) => response_status ?? error ?? "none" },
            { head: "Given up", cell: ({ died_at }) => <When at={died_at} /> },
            {
              head: "Again",
              cell: (letter) =>
                letter.webhook_deleted ? <span class="note">its webhook is deleted</span> : (
                  <DialogButton
                    name={`again ${letter.delivery_id}`}
                    label="Send again…"
                    title="Send a dead letter again"
                  >
                    {(close) => <SendAgain close={close} done={letters.reload} letter={letter} />}
                  </DialogButton>
                ),
            },
          ]}
        />
      )}
      {found?.next_after_id == null ? null : (
        <p>
          <a href={pageAfter(found.next_after_id)}>Older dead letters</a>
        </p>
      )}
      <div class="actions">
        <ExportButton begin={exported} label="Download all as CSV" name="all-dead-letters" />
      </div>
      <CopyCommand
        command="dead-letters list"
        options={{
          account: filterOf("account_id"),
          webhook: filterOf("webhook_id"),
          event: filterOf("event_type"),
          since: filterOf("within"),
        }}
      />
    </Page>
  )
}
export default DeadLettersOfAll
