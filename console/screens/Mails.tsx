/** Mails that have not been sent: what the server said, another attempt, and the end of one. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { AuditLink } from "../parts/AuditLink.tsx"
import { here } from "../Location.ts"
import { ReasonDialog } from "../parts/ReasonDialog.tsx"
import { StatePage } from "../parts/StatePage.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"

type Mail = AnswerOf<"listOutgoingMails">["items"][number]

const Decide = ({ done, of }: { readonly of: Mail; readonly done: () => unknown }): JSX.Element =>
  of.sending ? <span class="note">it is being sent</span> : (
    <div class="actions">
      <ReasonDialog
        name={`retry ${of.id}`}
        label="Try again…"
        title="Try to send a mail again"
        done={done}
        submit="Try again"
        said="It is sent again."
        write={(reason, key) => ask("retryOutgoingMail", { params: { mail_id: of.id }, payload: { reason } }, { key })}
      >
        <p>
          {of.state === "unknown"
            ? "An attempt ended without an answer, so the mail may arrive a second time."
            : "The mail is due at once, and is tried as often as a new one."}
        </p>
      </ReasonDialog>
      <ReasonDialog
        name={`forget ${of.id}`}
        label="Forget…"
        title="Give a mail up"
        done={done}
        submit="Forget"
        kind="stop"
        said="The mail is given up."
        write={(reason, key) => ask("forgetOutgoingMail", { params: { mail_id: of.id }, payload: { reason } }, { key })}
      >
        <p>The mail is never sent, and is in no list and no finding any more.</p>
      </ReasonDialog>
    </div>
  )

const states = [["failed", "Failed"], ["unknown", "Outcome unknown"], ["pending", "Waiting"]] as const

const none: Readonly<Record<string, string>> = {
  failed: "No mail has failed.",
  unknown: "The outcome of every mail is known.",
  pending: "No mail waits.",
}

const Mails = (): JSX.Element => {
  const state = filterOf("state") ?? "failed"
  const mails = useResource(
    `mails ${here.value.search}`,
    (signal) => ask("listOutgoingMails", { query: { state, after_id: filterOf("after") } }, { signal }),
  )
  return (
    <StatePage command="mails" title="Mails" list={mails} state={state} states={states} older="Older mails">
      {({ items }) => (
        <Table
          caption="Mails that have not been sent, newest first"
          rows={items}
          keyOf={({ id }) => id}
          empty={none[state] ?? "There is no such mail."}
          columns={[
            {
              head: "To",
              cell: ({ id, kind, recipient }) => (
                <>
                  {recipient}
                  <br />
                  <span class="note">{kind}</span> <AuditLink id={id} />
                </>
              ),
            },
            { head: "Last answer", cell: ({ last_error }) => last_error ?? <span class="note">none</span> },
            { head: "Attempts", number: true, cell: ({ attempts }) => attempts },
            { head: "Next attempt", cell: ({ next_attempt_at }) => <When at={next_attempt_at} never="none" /> },
            { head: "Created", cell: ({ created_at }) => <When at={created_at} /> },
            { head: "Decide", cell: (one) => <Decide of={one} done={mails.reload} /> },
          ]}
        />
      )}
    </StatePage>
  )
}
export default Mails
