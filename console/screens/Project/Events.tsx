/** The events that a project's products get, decoded, newest first. */
import type { JSX } from "preact"
import { ask } from "../../contract/Ask.ts"
import type { AnswerOf } from "../../contract/EndpointTypes.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Failure } from "../../parts/Failure.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../../parts/NextPage.tsx"
import { Table } from "../../parts/Table.tsx"
import { filterOf } from "../../parts/TextFilter.tsx"
import { When } from "../../parts/When.tsx"
import { useResource } from "../../Resource.ts"

type Event = AnswerOf<"listProjectEvents">["items"][number]

const Decoded = ({ of }: { readonly of: Event }): JSX.Element => (
  <details>
    <summary>{of.kind.replaceAll("-", " ")}</summary>
    <pre tabIndex={0}>{JSON.stringify({ type: of.event_type, sub_id: of.subject, event: of.details }, null, 2)}</pre>
  </details>
)

const EventTable = ({ of }: { readonly of: ReadonlyArray<Event> }): JSX.Element => (
  <Table
    caption="Events, newest first"
    rows={of}
    keyOf={({ event_id }) => event_id}
    empty={emptyPage("events", "No event was recorded yet.")}
    columns={[
      { head: "Position", cell: ({ epoch, position }) => `${epoch}.${position}` },
      { head: "Event", cell: (one) => <Decoded of={one} /> },
      { head: "Recorded", cell: ({ recorded_at }) => <When at={recorded_at} /> },
      {
        head: "Signed",
        cell: ({ signed_at }) =>
          signed_at === null ? <Badge tone="wait">not yet</Badge> : <Badge tone="good">signed</Badge>,
      },
    ]}
  />
)

export const Events = ({ project_id }: { readonly project_id: string }): JSX.Element => {
  const after_id = filterOf("events")
  const events = useResource(
    `events ${project_id} ${after_id}`,
    (signal) =>
      ask("listProjectEvents", { params: { project_id }, query: { after_id, limit: String(pageSize) } }, { signal }),
  )
  const found = events.value.value?.items
  return (
    <section aria-labelledby="events">
      <h2 id="events">Events</h2>
      <Failure of={events.failure} retry={events.reload} />
      {found === undefined ? null : (
        <>
          <EventTable of={found} />
          <NextPage last={lastOf(found, ({ event_id }) => event_id)} name="events" words="events" />
        </>
      )}
    </section>
  )
}
