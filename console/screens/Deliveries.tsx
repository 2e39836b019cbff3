/** Deliveries over all webhooks, by filters that stand in the address. */
import type { JSX } from "preact"
import { useRef } from "preact/hooks"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useLiveStream } from "../LiveStream.ts"
import { embedded, here, setQuery } from "../Location.ts"
import { deliveryStates, DeliveryTable } from "../parts/DeliveryState.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { emptyList, Filters } from "../parts/Filters.tsx"
import { ExportButton, exportSize } from "../parts/ExportButton.tsx"
import { Failure } from "../parts/Failure.tsx"
import { CheckField, SelectField } from "../parts/Form.tsx"
import { LiveState } from "../parts/LiveState.tsx"
import { Page } from "../parts/Page.tsx"
import { ReplayForm } from "../parts/ReplayForm.tsx"
import { Span, spanHours, spanStart } from "../parts/Span.tsx"
import { filterOf, pageAfter, TextFilter } from "../parts/TextFilter.tsx"
import { UntilFilter, untilOf } from "../parts/UntilFilter.tsx"
import { useRefresh } from "../Refresh.ts"
import { type Resource, useResource } from "../Resource.ts"

type Webhooks = AnswerOf<"listWebhooks">

const filters = ["status", "event_type", "webhook_id", "response_status", "email_id", "event_id", "within", "until"]

const isFiltered = (): boolean => filters.some((name) => filterOf(name) !== undefined)

const choose = (name: string) => (chosen: string) => setQuery({ [name]: chosen, after: undefined })

const DeliveryFilters = ({ webhooks }: { readonly webhooks: Resource<Webhooks> }): JSX.Element => {
  const types = useResource("event types", (signal) => ask("listEventTypes", {}, { signal }))
  return (
    <Filters names={filters}>
      <SelectField
        label="State"
        value={filterOf("status") ?? ""}
        onChange={choose("status")}
        options={[["", "Any"], ...deliveryStates]}
      />
      <SelectField
        label="Event type"
        value={filterOf("event_type") ?? ""}
        onChange={choose("event_type")}
        options={[
          ["", "Any"],
          ...(types.value.value?.items ?? []).map(({ event_type }) => [event_type, event_type] as const),
        ]}
      />
      <SelectField
        label="Webhook"
        value={filterOf("webhook_id") ?? ""}
        onChange={choose("webhook_id")}
        options={[["", "Any"], ...(webhooks.value.value ?? []).map(({ id, url }) => [id, url] as const)]}
      />
      <TextFilter label="Answer" name="response_status" placeholder="404, 5xx, none" />
      <TextFilter label="Email id" name="email_id" />
      <TextFilter label="Event id" name="event_id" />
      <Span />
      <UntilFilter />
    </Filters>
  )
}

type List = AnswerOf<"listAllDeliveries">

/** Asks again after each change, one request after the other: none is given up for the next change. */
const useChanges = (reload: () => Promise<void>): () => Promise<void> => {
  const state = useRef({ changed: false, asking: false })
  return async () => {
    const now = state.current
    now.changed = true
    if (now.asking) return
    now.asking = true
    while (now.changed) {
      now.changed = false
      await reload()
    }
    now.asking = false
  }
}

/** The switch of the live tail. A page that is not live stays as it is, so that its rows can be read. */
const LiveTail = ({ list }: { readonly list: Resource<List> }): JSX.Element => {
  const on = filterOf("live") !== "off"
  const changed = useChanges(list.reload)
  const cut = useLiveStream({
    path: "/v1/webhook-deliveries/stream",
    subjects: ["newest", "changed"],
    // An event without deliveries says that the stream is not cut.
    hear: (_, data) => (data as Pick<List, "items">).items.length > 0 && void changed(),
    refused: list.reload,
    on,
  })
  // The stream tells of the newest deliveries: what a filter finds behind them is asked for.
  useRefresh(list, !on ? 3_600 : isFiltered() ? 5 : 60)
  return (
    <div class="live">
      <CheckField label="Live" checked={on} onChange={(on) => setQuery({ live: on ? undefined : "off" })} />
      {on
        ? <LiveState cut={cut} />
        : <p class="note" role="status">This page stays as it is until it is loaded again.</p>}
    </div>
  )
}

/** In a frame the session's token is a bearer, which the browser's own reader of streams cannot send. */
const Refreshed = ({ list }: { readonly list: Resource<List> }): null => {
  useRefresh(list, 5)
  return null
}

/** The filters as the API has them. */
const query = () => ({
  status: filterOf("status"),
  event_type: filterOf("event_type"),
  webhook_id: filterOf("webhook_id"),
  response_status: filterOf("response_status"),
  email_id: filterOf("email_id"),
  event_id: filterOf("event_id"),
  since: spanStart(),
  until: untilOf(),
})

/** The list from its beginning, by the filters of now. */
const exported = () => {
  const filter = query()
  return (after_id: string | undefined, signal: AbortSignal) =>
    ask("listAllDeliveries", { query: { ...filter, limit: exportSize, after_id } }, { signal })
}

/** Whether a replay can be of all that is filtered by: it knows a webhook, a type, a span, and what died or arrived. */
const canReplay = () =>
  [undefined, "dead_letter", "delivered"].includes(filterOf("status")) &&
  (["response_status", "email_id", "event_id"] as const).every((name) => filterOf(name) === undefined)

const noReplay = "Many are sent again by type and time alone, what died or what arrived: not by these filters."

/** Sends again what the filters name, of one webhook. */
const SendAgain = ({ done, webhooks }: {
  readonly webhooks: Webhooks
  readonly done: () => unknown
}): JSX.Element => (
  <>
    {canReplay() ? null : <span class="note">{noReplay}</span>}
    <DialogButton
      name="replay"
      label="Send many again…"
      title="Send deliveries again"
      refused={canReplay() ? null : noReplay}
    >
      {(close) => (
        <ReplayForm
          of={{
            webhooks,
            webhook_id: filterOf("webhook_id"),
            event_type: filterOf("event_type"),
            kind: filterOf("status") === "delivered" ? "delivered" : "dead_letter",
            // A list of all time begins as far back as a replay is offered.
            hours: String(spanHours() ?? 720),
            until: untilOf(),
          }}
          close={close}
          done={done}
        />
      )}
    </DialogButton>
  </>
)

const Deliveries = (): JSX.Element => {
  const webhooks = useResource(
    "webhooks",
    (signal) => ask("listWebhooks", { query: { include_paused: true } }, { signal }),
  )
  const after_id = filterOf("after")
  const deliveries = useResource(
    `deliveries ${here.value.search}`,
    (signal) => ask("listAllDeliveries", { query: { ...query(), after_id } }, { signal }),
  )
  const found = deliveries.value.value
  const known = webhooks.value.value ?? []
  return (
    <Page
      title="Deliveries"
      actions={known.length === 0 ? undefined : <SendAgain done={deliveries.reload} webhooks={known} />}
    >
      <DeliveryFilters webhooks={webhooks} />
      {
        // The first page follows what happens.
        after_id !== undefined ? null : embedded ? <Refreshed list={deliveries} /> : <LiveTail list={deliveries} />
      }
      <Failure of={deliveries.failure} retry={deliveries.reload} />
      {found === undefined ? null : (
        <DeliveryTable
          done={deliveries.reload}
          rows={found.items}
          webhookOf={(id) => webhooks.value.value?.find((one) => one.id === id)?.url ?? id}
          empty={found.next_after_id === null
            ? emptyList(
              filters,
              <>
                Nothing was sent yet. A test can be sent from <a href="/console/webhooks">a webhook's page</a>.
              </>,
            )
            : "None of the deliveries that were looked at fits."}
        />
      )}
      {found?.next_after_id == null ? null : (
        <p>
          <a href={pageAfter(found.next_after_id)}>Older deliveries</a>
        </p>
      )}
      <div class="actions">
        <ExportButton begin={exported} label="Download all as CSV" name="deliveries" />
      </div>
    </Page>
  )
}
export default Deliveries
