/** The domains that an account owns or has a part in, and the way to offer one to another account. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { go, here } from "../Location.ts"
import { announce } from "../parts/Announce.tsx"
import { Blockers } from "../parts/Blockers.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Form, TextField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { VerifiedState } from "../parts/VerifiedState.tsx"
import { useResource } from "../Resource.ts"
import { session } from "../Visitor.ts"

type Domain = AnswerOf<"getDomain">

const Offer = ({ close, domain }: { readonly domain: Domain; readonly close: () => void }): JSX.Element => {
  const action = useAction()
  const draft = useDraft(`offer ${domain.id}`, { email: "", note: "" })
  const { email, note } = draft.value.value
  const write = () =>
    action.run(async () => {
      const made = await ask("initiateTransfer", {
        params: { domain_id: domain.id },
        payload: { target_email: email, note: note === "" ? null : note },
      }, { key: draft.key })
      announce(`${domain.name} is offered to ${email}.`)
      go(`/console/transfers/${made.id}`)
    })
  return (
    <Form action={action} close={close} submit="Offer it" ready={email.trim() !== ""} write={write}>
      <p>
        The account with this address is mailed an invitation. Once it accepts, a safety window of 24 hours begins, in
        which the owner may still stop the transfer.
      </p>
      <TextField
        action={action}
        autofocus
        label="Their email address"
        name="target_email"
        type="email"
        value={email}
        onInput={(email) => draft.set({ email })}
      />
      <TextField
        action={action}
        label="Note to them"
        lines={3}
        name="note"
        required={false}
        hint="Optional, at most 1,000 characters."
        value={note}
        onInput={(note) => draft.set({ note })}
      />
      <Blockers of={action.failure.value} />
    </Form>
  )
}

const TransferOf = ({ domain }: { readonly domain: Domain }): JSX.Element => {
  if (domain.transfer !== null) {
    return (
      <a href={`/console/transfers/${domain.transfer.id}`}>
        {domain.transfer.status === "pending" ? "Offered, waits for an answer" : "In its safety window"}
      </a>
    )
  }
  if (!domain.may_transfer) {
    return <span class="note">Its owner, or an administrator of its workspace, may offer it</span>
  }
  if (domain.verified_at === null) return <span class="note">May be offered once it is verified</span>
  return (
    <DialogButton name={`offer ${domain.id}`} label="Offer…" title={`Offer ${domain.name} to another account`}>
      {(close) => <Offer close={close} domain={domain} />}
    </DialogButton>
  )
}

const Domains = (): JSX.Element => {
  const after = here.value.searchParams.get("after") ?? undefined
  const domains = useResource(
    `domains ${after}`,
    (signal) => ask("listDomains", { query: { after_id: after } }, { signal }),
  )
  const workspaces = useResource(
    "workspaces",
    (signal) => ask("listWorkspaces", { query: { limit: 100 } }, { signal }),
  )
  const account = useResource("account", (signal) => ask("getAccount", {}, { signal }))
  const nameOf = (id: string) => workspaces.value.value?.items.find((one) => one.id === id)?.name ?? "another workspace"
  const page = domains.value.value
  const quota = account.value.value?.domains
  return (
    <Page title="Domains" actions={<a class="button" href="/console/transfers">Transfers</a>}>
      {quota === undefined ? null : (
        <p class="note">
          {quota.limit === -1
            ? `${quota.used} in use; your plan has no limit`
            : `${quota.used} of the ${quota.limit} domains of your plan`}
        </p>
      )}
      <Failure of={domains.failure} retry={domains.reload} />
      {page === undefined ? null : (
        <Table
          caption="Domains of your account and of your workspaces"
          rows={page.items}
          keyOf={({ id }) => id}
          empty="There is no domain yet. Domains are set up on the mail platform and appear here by themselves."
          columns={[
            { head: "Domain", cell: ({ name }) => name },
            { head: "State", cell: ({ verified_at }) => <VerifiedState at={verified_at} /> },
            { head: "Workspace", cell: ({ workspace_id }) => nameOf(workspace_id) },
            {
              head: "Owner",
              cell: ({ account_id }) => account_id === session.value?.account?.id ? "you" : "another account",
            },
            { head: "Signs by", cell: ({ dkim_selector }) => <code>{dkim_selector}</code> },
            { head: "Transfer", cell: (domain) => <TransferOf domain={domain} /> },
          ]}
        />
      )}
      {page?.next_after_id == null ? null : (
        <p>
          <a href={`/console/domains?after=${page.next_after_id}`}>More domains</a>
        </p>
      )}
    </Page>
  )
}
export default Domains
