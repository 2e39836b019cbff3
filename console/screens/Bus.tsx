/** The broker's streams and how far their consumers are. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { Badge } from "../parts/Badge.tsx"
import { BusTail } from "../parts/BusTail.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { useResource } from "../Resource.ts"

type Stream = NonNullable<AnswerOf<"busStreams">["items"]>[number]

const count = new Intl.NumberFormat("en")
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 })
const units = ["B", "kB", "MB", "GB", "TB"]

/** `0 B`, `1.4 MB`. */
const sizeOf = (bytes: number): string => {
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return `${tenths.format(bytes / 1_000 ** power)} ${units[power]}`
}

type Consumer = NonNullable<Stream["consumers"]>[number]

/** How long the oldest message that a consumer has not acknowledged has waited for it. */
const Behind = ({ asOf, of }: { readonly of: Consumer; readonly asOf: string }): JSX.Element =>
  of.behind_since === null
    ? <span class="note">{of.pending + of.ack_pending === 0 ? "nothing" : "not known"}</span>
    : <>{count.format(Math.max(0, Math.round((Date.parse(asOf) - Date.parse(of.behind_since)) / 1_000)))} s</>

const Consumers = (
  { asOf, of: { consumers, stream } }: { readonly of: Stream; readonly asOf: string },
): JSX.Element | null =>
  consumers === null || consumers.length === 0 ? null : (
    <section aria-labelledby={`of-${stream}`}>
      <h2 id={`of-${stream}`}>Consumers of {stream}</h2>
      <Table
        caption={`Consumers of the stream ${stream}`}
        rows={consumers}
        keyOf={({ name }) => name}
        empty="The stream has no consumer."
        columns={[
          { head: "Consumer", cell: ({ name }) => <code>{name}</code> },
          {
            head: "State",
            cell: ({ pending }) =>
              pending === 0 ? <Badge tone="good">up to date</Badge> : <Badge tone="wait">behind</Badge>,
          },
          { head: "Behind by", number: true, cell: (one) => <Behind asOf={asOf} of={one} /> },
          { head: "To come", number: true, cell: ({ pending }) => count.format(pending) },
          { head: "Not acknowledged", number: true, cell: ({ ack_pending }) => count.format(ack_pending) },
          { head: "Sent again", number: true, cell: ({ redelivered }) => count.format(redelivered) },
        ]}
      />
    </section>
  )

const Bus = (): JSX.Element => {
  const bus = useResource("bus", (signal) => ask("busStreams", {}, { signal }))
  useRefresh(bus, 5)
  const found = bus.value.value
  return (
    <Page title="Bus">
      <Failure of={bus.failure} retry={bus.reload} />
      {found === undefined ? null : found.items === null
        ? (
          <p class="banner bad">
            The broker does not answer. The program goes on, and messages wait in the outbox until it does.
          </p>
        )
        : (
          <>
            <Table
              caption="Streams of the broker"
              rows={found.items}
              keyOf={({ stream }) => stream}
              empty="The broker has no stream of this program."
              columns={[
                { head: "Stream", cell: ({ stream }) => stream },
                { head: "Messages", number: true, cell: ({ messages }) => count.format(messages) },
                { head: "Size", number: true, cell: ({ bytes }) => sizeOf(bytes) },
                {
                  head: "Sequence numbers",
                  cell: ({ first_seq, last_seq, messages }) =>
                    messages > 0
                      ? `${count.format(first_seq)} to ${count.format(last_seq)}`
                      : last_seq === 0
                      ? <span class="note">none yet</span>
                      : <span class="note">up to {count.format(last_seq)}, none kept</span>,
                },
                { head: "Oldest", cell: ({ first_at }) => <When at={first_at} never="none" /> },
                { head: "Newest", cell: ({ last_at }) => <When at={last_at} never="none" /> },
              ]}
            />
            {found.items.map((one) => <Consumers key={one.stream} asOf={found.as_of} of={one} />)}
          </>
        )}
      <CopyCommand command="bus" />
      <BusTail />
    </Page>
  )
}
export default Bus
