/** The state of a delivery in words, and the table that lists deliveries. */
import type { ComponentChildren, JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { Badge, type Tone } from "./Badge.tsx"
import { Table } from "./Table.tsx"
import { When } from "./When.tsx"

export type Delivery = AnswerOf<"listAllDeliveries">["items"][number]

const words: Readonly<Record<Delivery["status"], readonly [tone: Tone, words: string]>> = {
  pending: ["wait", "pending"],
  retrying: ["warn", "retrying"],
  delivered: ["good", "delivered"],
  dead_letter: ["bad", "dead letter"],
  cancelled: ["off", "cancelled"],
}

/** The states with their words, as the options of a filter. */
export const deliveryStates = Object.entries(words).map(([state, [, text]]) => [state, text] as const)

export const DeliveryState = ({ of }: { readonly of: Delivery["status"] }): JSX.Element => {
  const [tone, text] = words[of]
  return <Badge tone={tone}>{text}</Badge>
}

export const DeliveryTable = ({ empty, rows, webhookOf }: {
  readonly rows: ReadonlyArray<Delivery>
  /** Gives the address of a webhook, where the rows are of several ones. */
  readonly webhookOf?: (webhookId: string) => string
  readonly empty: ComponentChildren
}): JSX.Element => (
  <Table
    caption="Deliveries, newest first"
    rows={rows}
    keyOf={({ id }) => id}
    empty={empty}
    columns={[
      { head: "Event", cell: ({ event_type, id }) => <a href={`/console/deliveries/${id}`}>{event_type}</a> },
      ...(webhookOf === undefined ? [] : [{
        head: "Webhook",
        cell: ({ webhook_id }: Delivery) => <a href={`/console/webhooks/${webhook_id}`}>{webhookOf(webhook_id)}</a>,
      }]),
      { head: "State", cell: ({ status }) => <DeliveryState of={status} /> },
      { head: "Answer", cell: ({ response_status }) => response_status ?? "none" },
      { head: "Attempt", number: true, cell: ({ attempt }) => attempt },
      { head: "Next try", cell: ({ next_retry_at }) => <When at={next_retry_at} never="none" /> },
      { head: "Created", cell: ({ created_at }) => <When at={created_at} /> },
    ]}
  />
)
