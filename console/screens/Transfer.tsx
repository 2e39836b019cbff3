/** One transfer: how far it is, its clock, its keys, and what its parties may do now. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import { useDraft } from "../Drafts.ts"
import type { Params } from "../Location.ts"
import { announce } from "../parts/Announce.tsx"
import { Badge } from "../parts/Badge.tsx"
import { YesForm } from "../parts/YesForm.tsx"
import { CopyButton } from "../parts/Copy.tsx"
import { DeclineOffer } from "../parts/DeclineOffer.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { CheckField, Form, SelectField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { type Transfer, TransferState } from "../parts/TransferState.tsx"
import { When } from "../parts/When.tsx"
import { type Resource, useResource } from "../Resource.ts"
import { session } from "../Visitor.ts"

const isRecipient = ({ target_email, target_user_id }: Transfer): boolean => {
  const me = session.value?.account
  return me !== undefined && me !== null &&
    (target_user_id === me.id || target_email.toLowerCase() === me.email.toLowerCase())
}

const Accept = ({ close, done, of }: {
  readonly of: Transfer
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const draft = useDraft("accept", { workspace: "", rotate: false })
  const { rotate, workspace } = draft.value.value
  const workspaces = useResource(
    "workspaces",
    (signal) => ask("listWorkspaces", { query: { limit: 100 } }, { signal }),
  )
  const eligibility = useResource("eligibility", (signal) => ask("acceptEligibility", {}, { signal }))
  const own = workspaces.value.value?.items ?? []
  const { can_accept = true, current_domains, domain_limit, message } = eligibility.value.value ?? {}
  const write = async () => {
    const accepted = await action.run(() =>
      ask("acceptTransferById", {
        params: { transfer_id: of.id },
        payload: { target_org_id: workspace === "" ? null : workspace, rotate_dkim: rotate },
      }, { key: draft.key })
    )
    if (!accepted) return
    announce(`${of.domain_name} is accepted: its safety window has begun.`)
    close()
    await done()
  }
  return (
    <Form action={action} close={close} submit={`Accept ${of.domain_name}`} ready={can_accept} write={write}>
      {can_accept ? null : <p class="fault">{message}</p>}
      {domain_limit === undefined || domain_limit === -1
        ? null
        : <p class="note">You have {current_domains} of {domain_limit} domains of your plan.</p>}
      <Failure of={workspaces.failure} retry={workspaces.reload} />
      <SelectField
        label="Your workspace for it"
        value={workspace}
        onChange={(workspace) => draft.set({ workspace })}
        options={[["", "My oldest workspace"], ...own.map(({ id, name }) => [id, name] as const)]}
      />
      <CheckField
        label="Sign its mail by a new DKIM key from then on"
        checked={rotate}
        onChange={(rotate) => draft.set({ rotate })}
      />
      <p class="note">
        The domain is yours after a safety window of 24 hours. Until then its owner may stop the transfer.
      </p>
    </Form>
  )
}

const Actions = ({ done, of }: { readonly of: Transfer; readonly done: () => unknown }): JSX.Element | null => {
  if (of.status !== "pending") return null
  return isRecipient(of)
    ? (
      <>
        <DialogButton name="accept" kind="main" label="Accept…" title={`Accept ${of.domain_name}`}>
          {(close) => <Accept of={of} close={close} done={done} />}
        </DialogButton>
        <DeclineOffer of={of} done={done} />
      </>
    )
    : (
      <DialogButton name="cancel" label="Take the offer back…" title={`Take the offer of ${of.domain_name} back`}>
        {(close) => (
          <YesForm
            close={close}
            done={done}
            explained={`The invitation to ${of.target_email} ends, and the domain stays where it is.`}
            said="The offer is taken back."
            submit="Take it back"
            write={(key) => ask("cancelTransfer", { params: { transfer_id: of.id } }, { key })}
          />
        )}
      </DialogButton>
    )
}

const ends: Partial<Record<Transfer["status"], string>> = {
  declined: "The recipient declined the offer.",
  cancelled: "The offer was taken back.",
  expired: "The time to accept passed without an answer.",
  reversed: "The transfer was stopped within its safety window; the domain stayed with its owner.",
}

/** The past and the coming steps, in order. */
const Steps = ({ of }: { readonly of: Transfer }): JSX.Element => {
  const step = (words: string, at: string | null, next?: string) => (
    <li class={at === null ? "" : "past"}>
      <strong>{words}</strong> {at === null ? <span class="note">{next}</span> : <When at={at} exact />}
    </li>
  )
  return (
    <ol class="steps">
      {step("Offered", of.initiated_at)}
      {of.accepted_at !== null || of.status === "pending"
        ? (
          <li class={of.accepted_at === null ? "" : "past"}>
            <strong>Accepted</strong> {of.accepted_at === null
              ? (
                <span class="note">
                  possible until <When at={of.expires_at} exact />
                </span>
              )
              : <When at={of.accepted_at} exact />}
          </li>
        )
        : null}
      {of.status === "accepted"
        ? (
          <li>
            <strong>Safety window</strong>{" "}
            <span class="note">
              ends <When at={of.cooloff_until} exact />
            </span>
          </li>
        )
        : null}
      {ends[of.status] === undefined
        ? step("Completed", of.completed_at, "the domain changes its owner then")
        : <li class="past">{ends[of.status]}</li>}
    </ol>
  )
}

/** A recipient sees the domain's keys from the acceptance on. */
const hasKeys = (of: Transfer): boolean => of.status === "accepted" || (of.status === "pending" && !isRecipient(of))

const Dkim = ({ of }: { readonly of: Transfer }): JSX.Element => {
  const dkim = useResource(
    `dkim ${of.domain_id}`,
    (signal) => ask("getDomainDkim", { params: { domain_id: of.domain_id } }, { signal }),
  )
  return (
    <section aria-labelledby="dkim">
      <h2 id="dkim">DKIM keys</h2>
      {dkim.value.value === undefined ? <Failure of={dkim.failure} retry={dkim.reload} /> : (
        <Table
          caption="Keys that sign the domain's mail"
          rows={dkim.value.value.keys}
          keyOf={({ selector }) => selector}
          empty="The domain has no key."
          columns={[
            { head: "Selector", cell: ({ selector }) => <code>{selector}</code> },
            {
              head: "State",
              cell: ({ effective_at, status }) =>
                status === "active" ? <Badge tone="good">signs</Badge> : (
                  <>
                    <Badge tone="wait">prepared</Badge> signs from <When at={effective_at} never="the completion" />
                  </>
                ),
            },
            {
              head: "TXT record",
              cell: ({ record_name, record_value }) => (
                <>
                  <code>{record_name}</code> {record_value === null
                    ? <span class="note">published by the platform</span>
                    : <CopyButton text={record_value} label="Copy value" />}
                </>
              ),
            },
          ]}
        />
      )}
    </section>
  )
}

const One = ({ of, resource }: { readonly of: Transfer; readonly resource: Resource<Transfer> }): JSX.Element => (
  <Page
    title={of.domain_name}
    up={["/console/transfers", "Transfers"]}
    actions={<Actions of={of} done={resource.reload} />}
  >
    <p>
      <TransferState of={of.status} />
    </p>
    <Steps of={of} />
    <dl>
      <div>
        <dt>From</dt>
        <dd>{of.source_label}</dd>
      </div>
      <div>
        <dt>To</dt>
        <dd>{of.target_email}{isRecipient(of) ? " (you)" : ""}</dd>
      </div>
      {of.note === null ? null : (
        <div>
          <dt>Note</dt>
          <dd>{of.note}</dd>
        </div>
      )}
      <div>
        <dt>Transfer</dt>
        <dd>
          <code>{of.id}</code> <CopyButton text={of.id} label="Copy id" />
        </dd>
      </div>
    </dl>
    {of.status === "accepted" && !isRecipient(of)
      ? (
        <p class="banner">
          You may still stop it: by the link in the mail about the acceptance, until the safety window ends.
        </p>
      )
      : null}
    {hasKeys(of) ? <Dkim of={of} /> : null}
  </Page>
)

const TransferPage = ({ params }: { readonly params: Params }): JSX.Element => {
  const transfer_id = params["transfer_id"]!
  const transfer = useResource(
    `transfer ${transfer_id}`,
    (signal) => ask("getTransfer", { params: { transfer_id } }, { signal }),
  )
  const one = transfer.value.value
  return one !== undefined
    ? <One of={one} resource={transfer} />
    : (
      <Page title="Transfer" up={["/console/transfers", "Transfers"]}>
        <Failure of={transfer.failure} retry={transfer.reload} />
      </Page>
    )
}
export default TransferPage
