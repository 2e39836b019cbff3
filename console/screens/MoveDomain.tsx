/** A platform administrator moves a domain to another account at once, without the handshake and its safety window. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { go } from "../Location.ts"
import { announce } from "../parts/Announce.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { CheckField, Form, TextField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf, TextFilter } from "../parts/TextFilter.tsx"
import { VerifiedState } from "../parts/VerifiedState.tsx"
import { useResource } from "../Resource.ts"

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
      })
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
            { head: "Owner", cell: ({ account_id }) => <code>{account_id}</code> },
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
    </Page>
  )
}
export default MoveDomain
