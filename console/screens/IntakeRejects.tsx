/** Messages that could not be taken in: what was wrong with each, waiting once more, and the end of one. */
import type { JSX } from "preact"
import { useAccountNames } from "../AccountNames.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { here } from "../Location.ts"
import { AccountLabel } from "../parts/AccountLabel.tsx"
import { AuditLink } from "../parts/AuditLink.tsx"
import { ReasonDialog } from "../parts/ReasonDialog.tsx"
import { StatePage } from "../parts/StatePage.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"

type Reject = AnswerOf<"listIntakeRejects">["items"][number]

const Message = ({ of }: { readonly of: Reject }): JSX.Element => (
  <details>
    <summary>{of.bytes} bytes</summary>
    <pre tabIndex={0}>{of.raw}</pre>
  </details>
)

const Decide = ({ done, of }: { readonly of: Reject; readonly done: () => unknown }): JSX.Element => (
  <div class="actions">
    {!of.retryable ? null : (
      <ReasonDialog
        name={`retry ${of.id}`}
        label="Wait again…"
        title="Wait for the account once more"
        done={done}
        submit="Wait again"
        said="It waits for its account for seven days more."
        write={(reason, key) =>
          ask("retryIntakeReject", { params: { reject_id: of.id }, payload: { reason } }, { key })}
      >
        <p>
          The message is taken in as soon as the account <code>{of.account_id}</code> is known.
        </p>
      </ReasonDialog>
    )}
    <ReasonDialog
      name={`discard ${of.id}`}
      label="Discard…"
      title="Discard a message"
      done={done}
      submit="Discard"
      kind="stop"
      said="The message is discarded."
      write={(reason, key) =>
        ask("discardIntakeReject", { params: { reject_id: of.id }, payload: { reason } }, { key })}
    >
      <p>The message is in no list and no finding any more. This cannot be taken back.</p>
    </ReasonDialog>
  </div>
)

const states = [["rejected", "Rejected"], ["waiting", "Waiting for their account"]] as const

const IntakeRejects = (): JSX.Element => {
  const state = filterOf("state") ?? "rejected"
  const rejects = useResource(
    `intake rejects ${here.value.search}`,
    (signal) => ask("listIntakeRejects", { query: { state, after_id: filterOf("after") } }, { signal }),
  )
  const names = useAccountNames((rejects.value.value?.items ?? []).map(({ account_id }) => account_id))
  return (
    <StatePage
      command="rejects"
      title="Rejected messages"
      list={rejects}
      state={state}
      states={states}
      older="Older messages"
    >
      {({ items }) => (
        <Table
          caption="Messages that could not be taken in, newest first"
          rows={items}
          keyOf={({ id }) => id}
          empty={state === "waiting" ? "No message waits for its account." : "Every message was taken in."}
          columns={[
            {
              head: "Message",
              cell: ({ id, stream, stream_seq, subject }) => (
                <>
                  <code>{subject}</code>
                  <div class="note">{stream}, sequence {stream_seq}</div>
                  <AuditLink id={id} />
                </>
              ),
            },
            {
              head: "Why",
              cell: ({ detail, reason }) => (
                <>
                  {reason}
                  {detail === null ? null : <p class="note">{detail}</p>}
                </>
              ),
            },
            {
              head: "Account",
              cell: ({ account_id }) =>
                account_id === null
                  ? <span class="note">none</span>
                  : <AccountLabel id={account_id} name={names(account_id)} />,
            },
            {
              head: "Arrived",
              cell: ({ received_at, waits_until }) => (
                <>
                  <When at={received_at} />
                  {waits_until === null ? null : (
                    <p class="note">
                      waits, ends <When at={waits_until} />
                    </p>
                  )}
                </>
              ),
            },
            { head: "Content", cell: (one) => <Message of={one} /> },
            { head: "Decide", cell: (one) => <Decide of={one} done={rejects.reload} /> },
          ]}
        />
      )}
    </StatePage>
  )
}
export default IntakeRejects
