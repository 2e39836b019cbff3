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
import { AuditLink } from "../parts/AuditLink.tsx"
import { type Counted, CountedReplay, spanOf, WithinField } from "../parts/CountedReplay.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { DownloadButton } from "../parts/DownloadButton.tsx"
import { ExportButton, exportSize } from "../parts/ExportButton.tsx"
import { Failure } from "../parts/Failure.tsx"
import { TextField } from "../parts/Form.tsx"
import { emptyList, Filters } from "../parts/Filters.tsx"
import { LiveState } from "../parts/LiveState.tsx"
import { Page } from "../parts/Page.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
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

type EventType = NonNullable<RequestOf<"replayDeadLetters">["payload"]["event_type"]>

/** The choices as both requests take them. */
interface Asked {
  readonly webhook_id: string
  readonly since: string
  readonly until: string
  readonly event_type?: EventType
}

const SendSpan = ({ close, done }: Opened): JSX.Element => {
  const action = useAction()
  const draft = useDraft("span", {
    webhook: filterOf("webhook_id") ?? "",
    type: filterOf("event_type") ?? "",
    hours: String(spanHours() ?? 24),
    reason: "",
  })
  const { hours, reason, type, webhook } = draft.value.value
  const counted = useSignal<Counted<Asked> | null>(null)
  const changed = (change: Partial<typeof draft.value.value>) => {
    counted.value = null
    draft.set(change)
  }
  return (
    <CountedReplay
      action={action}
      counted={counted}
      ready={webhook.trim() !== ""}
      chosen={() => draft.value.value}
      query={() => ({
        webhook_id: webhook.trim(),
        ...spanOf(hours),
        ...(type === "" ? {} : { event_type: type.trim() as EventType }),
      })}
      count={(query, options) => ask("countDeadLetters", { query }, options)}
      send={async (query) => {
        const { asked_at, deliveries } = await ask("replayDeadLetters", { payload: { ...query, reason } }, {
          key: draft.key,
        })
        return { n: deliveries, asked_at }
      }}
      seconds={2}
      found={(n) =>
        n === 0
          ? "No dead letter of this span can be sent again."
          : `${n} dead ${n === 1 ? "letter" : "letters"} will be sent again.`}
      reason={{
        given: reason.trim() !== "",
        field: (
          <TextField
            action={action}
            label="Reason"
            lines={2}
            name="reason"
            hint="It stands in the audit, beside your name."
            value={reason}
            onInput={(reason) => draft.set({ reason })}
          />
        ),
      }}
      close={close}
      done={done}
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
      <WithinField label="Within" value={hours} onChange={(hours) => changed({ hours })} />
    </CountedReplay>
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
