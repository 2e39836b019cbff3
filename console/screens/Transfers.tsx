/** The transfers that wait for an account, and those that it began. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { DeclineOffer } from "../parts/DeclineOffer.tsx"
import { Failure } from "../parts/Failure.tsx"
import { emptyPage, NextPage, pageSize } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { type Column, Table } from "../parts/Table.tsx"
import { type Transfer, TransferState } from "../parts/TransferState.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"

/** The next moment at which the transfer changes by itself, or the one at which it ended. */
const Clock = ({ of }: { readonly of: Transfer }): JSX.Element => {
  switch (of.status) {
    case "pending":
      return (
        <>
          expires <When at={of.expires_at} />
        </>
      )
    case "accepted":
      return (
        <>
          takes effect <When at={of.cooloff_until} />
        </>
      )
    case "completed":
      return <When at={of.completed_at} />
    default:
      return (
        <span class="note">
          offered <When at={of.initiated_at} />
        </span>
      )
  }
}

const domain: Column<Transfer> = {
  head: "Domain",
  cell: ({ domain_name, id }) => <a href={`/console/transfers/${id}`}>{domain_name}</a>,
}
const state: Column<Transfer> = { head: "State", cell: ({ status }) => <TransferState of={status} /> }
const clock: Column<Transfer> = { head: "Clock", cell: (one) => <Clock of={one} /> }

/** The transfers to the visitor that have ended. */
const useReceived = () => {
  const after_id = filterOf("received")
  return useResource(
    `transfers received ${after_id}`,
    (signal) => ask("listReceivedTransfers", { query: { after_id, limit: pageSize } }, { signal }),
  )
}

const Received = ({ received }: { readonly received: ReturnType<typeof useReceived> }): JSX.Element => {
  const found = received.value.value
  return (
    <section aria-labelledby="received">
      <h2 id="received">To you, before</h2>
      <Failure of={received.failure} retry={received.reload} />
      {found === undefined ? null : (
        <>
          <Table
            caption="Transfers of domains to you that have ended"
            rows={found.items}
            keyOf={({ id }) => id}
            empty={emptyPage("received", "No transfer to you has ended yet.")}
            columns={[domain, { head: "From", cell: ({ source_label }) => source_label }, state, clock]}
          />
          <NextPage last={found.next_after_id} name="received" words="transfers" />
        </>
      )}
    </section>
  )
}

const Transfers = (): JSX.Element => {
  const incoming = useResource("transfers incoming", (signal) => ask("listIncomingTransfers", {}, { signal }))
  const outgoing = useResource("transfers outgoing", (signal) => ask("listOutgoingTransfers", {}, { signal }))
  const received = useReceived()
  // What was declined has ended.
  const declined = () => Promise.all([incoming.reload(), received.reload()])
  return (
    <Page title="Transfers" actions={<a class="button" href="/console/domains">Offer a domain</a>}>
      <section aria-labelledby="incoming">
        <h2 id="incoming">To you</h2>
        <Failure of={incoming.failure} retry={incoming.reload} />
        {incoming.value.value === undefined ? null : (
          <Table
            caption="Transfers of domains to you"
            rows={incoming.value.value}
            keyOf={({ id }) => id}
            empty="No domain is on its way to you."
            columns={[
              domain,
              { head: "From", cell: ({ source_label }) => source_label },
              state,
              clock,
              {
                head: "Yours to do",
                cell: (one) =>
                  one.status === "pending"
                    ? <DeclineOffer done={declined} of={one} />
                    : <span class="note">nothing</span>,
              },
            ]}
          />
        )}
      </section>
      <Received received={received} />
      <section aria-labelledby="outgoing">
        <h2 id="outgoing">From you</h2>
        <Failure of={outgoing.failure} retry={outgoing.reload} />
        {outgoing.value.value === undefined ? null : (
          <Table
            caption="Transfers of domains that you began"
            rows={outgoing.value.value}
            keyOf={({ id }) => id}
            empty={
              <>
                You have offered no domain yet. A verified one is offered on the page{" "}
                <a href="/console/domains">Domains</a>.
              </>
            }
            columns={[domain, { head: "To", cell: ({ target_email }) => target_email }, state, clock]}
          />
        )}
      </section>
    </Page>
  )
}
export default Transfers
