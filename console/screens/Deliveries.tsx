/** Deliveries over all webhooks, by filters that stand in the address. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { here, setQuery } from "../Location.ts"
import { deliveryStates, DeliveryTable } from "../parts/DeliveryState.tsx"
import { emptyList, Filters } from "../parts/Filters.tsx"
import { Failure } from "../parts/Failure.tsx"
import { SelectField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { Span, spanStart } from "../parts/Span.tsx"
import { filterOf, pageAfter, TextFilter } from "../parts/TextFilter.tsx"
import { useRefresh } from "../Refresh.ts"
import { type Resource, useResource } from "../Resource.ts"

type Webhooks = AnswerOf<"listWebhooks">

const filters = ["status", "event_type", "webhook_id", "response_status", "email_id", "event_id", "within"]

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
    </Filters>
  )
}

const Deliveries = (): JSX.Element => {
  const webhooks = useResource(
    "webhooks",
    (signal) => ask("listWebhooks", { query: { include_paused: true } }, { signal }),
  )
  const after_id = filterOf("after")
  const deliveries = useResource(
    `deliveries ${here.value.search}`,
    (signal) =>
      ask("listAllDeliveries", {
        query: {
          status: filterOf("status"),
          event_type: filterOf("event_type"),
          webhook_id: filterOf("webhook_id"),
          response_status: filterOf("response_status"),
          email_id: filterOf("email_id"),
          event_id: filterOf("event_id"),
          since: spanStart(),
          after_id,
        },
      }, { signal }),
  )
  // The first page follows what happens.
  useRefresh(deliveries, after_id === undefined ? 5 : 3_600)
  const found = deliveries.value.value
  return (
    <Page title="Deliveries">
      <DeliveryFilters webhooks={webhooks} />
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
    </Page>
  )
}
export default Deliveries
