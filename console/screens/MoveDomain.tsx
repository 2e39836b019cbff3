/** A platform administrator moves a domain to another account at once, without the handshake and its safety window. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { go, setQuery } from "../Location.ts"
import { announce } from "../parts/Announce.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { CheckField, Form, SelectField, TextField } from "../parts/Form.tsx"
import { emptyPage, NextPage, pageSize } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf, TextFilter } from "../parts/TextFilter.tsx"
import { TransferState } from "../parts/TransferState.tsx"
import { VerifiedState } from "../parts/VerifiedState.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"

type Transfer = AnswerOf<"listAllTransfers">["items"][number]
type Domain = AnswerOf<"getDomain">

const Move = ({ close, domain }: { readonly domain: Domain; readonly close: () => void }): JSX.Element => {
  const action = useAction()
  const draft = useDraft(`move ${domain.id}`, { email: "", rotate: true })
  const { email, rotate } = draft.value.value
  const write = () =>
    action.run(async () => {
      const made = await ask("forceTransfer", {
        params: { domain_id: domain.id },
        payload: { target_email: email, rotate_dkim: rotate },
      }, { key: draft.key })
      announce(`${made.domain_name} belongs to ${made.target_email} now.`)
      go(`/console/transfers/${made.id}`)
    })
  return (
    <Form
      action={action}
      close={close}
      kind="stop"
      submit="Move the domain now"
      ready={email.trim() !== ""}
      write={write}
    >
      <TextField
        action={action}
        autofocus
        label="Email address of its new owner"
        name="target_email"
        type="email"
        value={email}
        onInput={(email) => draft.set({ email })}
      />
      <CheckField
        label="Sign its mail by a new DKIM key"
        checked={rotate}
        onChange={(rotate) => draft.set({ rotate })}
      />
    </Form>
  )
}

const Found = ({ name }: { readonly name: string }): JSX.Element => {
  const domains = useResource(
    `domains named ${name}`,
    (signal) => ask("listDomains", { query: { name } }, { signal }),
  )
  const found = domains.value.value
  return (
    <>
      <Failure of={domains.failure} retry={domains.reload} />
      {found === undefined ? null : (
        <Table
          caption="Domains of this name"
          rows={found.items}
          keyOf={({ id }) => id}
          empty={`No account has a domain ${name}.`}
          columns={[
            { head: "Domain", cell: ({ name }) => name },
            { head: "State", cell: ({ verified_at }) => <VerifiedState at={verified_at} /> },
            {
              head: "Owner",
              cell: ({ account_email, account_id }) => (
                <>
                  {account_email}
                  <div class="note">
                    <code>{account_id}</code>
                  </div>
                </>
              ),
            },
            {
              head: "Transfer",
              cell: ({ transfer }) =>
                transfer === null
                  ? <span class="note">none</span>
                  : transfer.status === "pending"
                  ? "offered, waits for an answer"
                  : "in its safety window",
            },
            {
              head: "Actions",
              cell: (domain) => (
                <DialogButton
                  name={`move ${domain.id}`}
                  kind="stop"
                  label="Move…"
                  title={`Move ${domain.name} to another account`}
                >
                  {(close) => <Move close={close} domain={domain} />}
                </DialogButton>
              ),
            },
          ]}
        />
      )}
    </>
  )
}

const states: Readonly<Record<Transfer["status"], string>> = {
  pending: "waits for an answer",
  accepted: "in its safety window",
  completed: "completed",
  declined: "declined",
  cancelled: "taken back",
  reversed: "stopped",
  expired: "expired",
}

/** The transfers of all accounts, of the domain that is looked for where there is one. */
const AllTransfers = ({ name }: { readonly name: string | undefined }): JSX.Element => {
  const status = filterOf("status") as Transfer["status"] | undefined
  const after_id = filterOf("after")
  const transfers = useResource(
    `all transfers ${name} ${status} ${after_id}`,
    (signal) => ask("listAllTransfers", { query: { name, status, after_id, limit: pageSize } }, { signal }),
  )
  const found = transfers.value.value
  return (
    <section aria-labelledby="transfers">
      <h2 id="transfers">Transfers{name === undefined ? " of all accounts" : ` of ${name}`}</h2>
      <div class="filters">
        <SelectField
          label="State"
          value={status ?? ""}
          options={[["", "Every state"], ...Object.entries(states)]}
          onChange={(status) => setQuery({ status, after: undefined })}
        />
      </div>
      <Failure of={transfers.failure} retry={transfers.reload} />
      {found === undefined ? null : (
        <>
          <Table
            caption="Transfers, most recent first"
            rows={found.items}
            keyOf={({ id }) => id}
            empty={emptyPage("after", "There is no such transfer.")}
            columns={[
              { head: "Domain", cell: ({ domain_name }) => domain_name },
              {
                head: "State",
                cell: ({ forced, status }) => (
                  <>
                    <TransferState of={status} />
                    {forced ? <div class="note">moved by an administrator</div> : null}
                  </>
                ),
              },
              { head: "Owner before", cell: ({ source_email, source_label }) => source_email ?? source_label },
              { head: "To", cell: ({ target_email }) => target_email },
              { head: "Begun", cell: ({ initiated_at }) => <When at={initiated_at} /> },
            ]}
          />
          <NextPage last={found.next_after_id} name="after" words="transfers" />
        </>
      )}
    </section>
  )
}

const MoveDomain = (): JSX.Element => {
  const name = filterOf("name")
  return (
    <Page title="Move a domain">
      <p>
        The domain changes its owner at once: no invitation, no safety window, no limits of a plan. A transfer of it
        that waits or is accepted ends. Both accounts are told, and the audit names you.
      </p>
      <div class="filters">
        <TextFilter label="Name of the domain" name="name" placeholder="shop.example" />
      </div>
      {name === undefined ? null : <Found name={name} />}
      <AllTransfers name={name} />
    </Page>
  )
}
export default MoveDomain
