/** The state of a delivery in words, and the table that lists deliveries. */
import type { ComponentChildren, JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { announce } from "./Announce.tsx"
import { Badge, type Tone } from "./Badge.tsx"
import { Failure } from "./Failure.tsx"
import { Do } from "./Form.tsx"
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

/** Sends one that has ended again. */
const Again = ({ done, of: { id, status } }: {
  readonly of: Delivery
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const again = async () => {
    if (!await action.run((key) => ask("replayDelivery", { params: { delivery_id: id } }, { key }))) return
    announce("It is sent again.")
    await done()
  }
  if (status === "pending" || status === "retrying") return <span class="note">is on its way</span>
  return (
    <div class="actions">
      <Do action={action} onDo={again}>Send again</Do>
      <Failure of={action.failure} />
    </div>
  )
}

export const DeliveryTable = ({ done, empty, rows, webhookOf }: {
  /** Requests the page's data again, once a delivery is sent again. */
  readonly done: () => unknown
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
      { head: "Actions", cell: (one) => <Again done={done} of={one} /> },
    ]}
  />
)
