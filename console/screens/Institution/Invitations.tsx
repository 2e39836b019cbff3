/** The invitations of an institution: asked for, mailed, accepted, taken back. */
import type { JSX } from "preact"
import { useAction } from "../../Action.ts"
import { ask } from "../../contract/Ask.ts"
import type { AnswerOf } from "../../contract/EndpointTypes.ts"
import { useDraft } from "../../Drafts.ts"
import { useNames } from "../../Names.ts"
import { Badge, type Tone } from "../../parts/Badge.tsx"
import { DialogButton } from "../../parts/Dialog.tsx"
import { Failure } from "../../parts/Failure.tsx"
import { TextField } from "../../parts/Form.tsx"
import { InvitationMail } from "../../parts/InvitationMail.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../../parts/NextPage.tsx"
import { ReasonForm } from "../../parts/ReasonForm.tsx"
import { Table } from "../../parts/Table.tsx"
import { filterOf } from "../../parts/TextFilter.tsx"
import { When } from "../../parts/When.tsx"
import { useResource } from "../../Resource.ts"
import type { Shown } from "./Members.tsx"

type Invitation = AnswerOf<"listEnrollments">["items"][number]

interface Opened {
  readonly close: () => void
  readonly done: () => unknown
}

const states: Readonly<Record<Invitation["state"], readonly [tone: Tone, words: string]>> = {
  held: ["wait", "waits for its review"],
  invited: ["wait", "invited"],
  accepted: ["good", "accepted"],
  expired: ["off", "expired"],
  revoked: ["off", "revoked"],
}

const Invite = ({ close, done, institution }: Opened & { readonly institution: string }): JSX.Element => {
  const action = useAction()
  const draft = useDraft("invite whom", { recipient: "" })
  const { recipient } = draft.value.value
  return (
    <ReasonForm
      action={action}
      name="invite"
      close={close}
      done={done}
      ready={recipient.trim().length >= 3}
      submit="Ask for the invitation"
      said="The invitation is asked for. It is mailed once it was reviewed."
      write={(reason, key) =>
        ask("createEnrollment", {
          params: { institution_id: institution },
          payload: { recipient: recipient.trim(), reason },
        }, { key })}
    >
      <TextField
        action={action}
        autofocus
        label="Their email address"
        name="recipient"
        type="email"
        value={recipient}
        onInput={(recipient) => draft.set({ recipient })}
      />
      <p class="note">Another person reviews the invitation. Then a link is mailed, which counts for seven days.</p>
    </ReasonForm>
  )
}

const Withdraw = ({ close, done, of }: Opened & { readonly of: Invitation }): JSX.Element => {
  const { enrollment_id, institution_id } = of
  return (
    <ReasonForm
      name={`withdraw ${enrollment_id}`}
      close={close}
      done={done}
      kind="stop"
      submit="Withdraw the invitation"
      said="The invitation is withdrawn: its link opens nothing any more."
      write={(reason, key) =>
        ask("revokeEnrollment", { params: { institution_id, enrollment_id }, payload: { reason } }, { key })}
    >
      <p>The invitation of {of.recipient} ends, and so does the link that was mailed.</p>
    </ReasonForm>
  )
}

const Renew = ({ close, done, of }: Opened & { readonly of: Invitation }): JSX.Element => {
  const { enrollment_id, institution_id } = of
  return (
    <ReasonForm
      name={`renew ${enrollment_id}`}
      close={close}
      done={done}
      submit="Ask for it again"
      said="The invitation is asked for again. It is mailed once it was reviewed."
      write={(reason, key) =>
        ask("renewEnrollment", { params: { institution_id, enrollment_id }, payload: { reason } }, { key })}
    >
      <p>
        {of.recipient}{" "}
        is invited again, at the same address. Another person reviews it, as the first one; a new link is mailed, which
        counts for seven days.
      </p>
    </ReasonForm>
  )
}

/** The visitor's actions on an invitation. */
const Act = ({ done, of }: { readonly of: Invitation; readonly done: () => unknown }): JSX.Element => {
  const { delivery, enrollment_id, recipient, state } = of
  const [open, failed] = [state === "held" || state === "invited", delivery.state === "failed"]
  if (state === "accepted") return <span class="note">has ended</span>
  // Without a mail the recipient is no address.
  if (!open && failed && delivery.message_id === null) return <span class="note">no address: invite anew</span>
  return (
    <div class="actions">
      {!open ? null : (
        <DialogButton
          name={`withdraw ${enrollment_id}`}
          label="Withdraw…"
          title={`Withdraw the invitation of ${recipient}`}
        >
          {(close) => <Withdraw close={close} done={done} of={of} />}
        </DialogButton>
      )}
      {open && !(state === "invited" && failed)
        ? null
        : (
          <DialogButton name={`renew ${enrollment_id}`} label="Invite again…" title={`Invite ${recipient} again`}>
            {(close) => <Renew close={close} done={done} of={of} />}
          </DialogButton>
        )}
    </div>
  )
}

const InvitationTable = ({ decides, done, of }: {
  readonly decides: boolean
  readonly done: () => unknown
  readonly of: ReadonlyArray<Invitation>
}): JSX.Element => {
  const names = useNames(of.map(({ author_person_id }) => author_person_id))
  return (
    <Table
      caption="Invitations, newest first"
      rows={of}
      keyOf={({ enrollment_id }) => enrollment_id}
      empty={emptyPage(
        "invitations",
        decides ? "There is no invitation yet. Invite a person by the button above." : "There is no invitation yet.",
      )}
      columns={[
        { head: "Recipient", cell: ({ recipient }) => recipient },
        { head: "State", cell: ({ state }) => <Badge tone={states[state][0]}>{states[state][1]}</Badge> },
        {
          head: "Mail",
          cell: ({ delivery: { state } }) => <InvitationMail of={state} />,
        },
        {
          head: "Asked for",
          cell: ({ author_person_id, created_at, reason }) => (
            <>
              {reason}
              <div class="note">
                by {names(author_person_id)} <When at={created_at} />
              </div>
            </>
          ),
        },
        { head: "Expires", cell: ({ expires_at }) => <When at={expires_at} /> },
        ...(decides
          ? [{
            head: "Yours to do",
            cell: (one: Invitation) => <Act done={done} of={one} />,
          }]
          : []),
      ]}
    />
  )
}

export const Invitations = ({ decides, institution }: Shown): JSX.Element => {
  const after_id = filterOf("invitations")
  const invitations = useResource(
    `invitations ${institution} ${after_id}`,
    (signal) =>
      ask("listEnrollments", {
        params: { institution_id: institution },
        query: { after_id, limit: String(pageSize) },
      }, { signal }),
  )
  const found = invitations.value.value?.items
  return (
    <section aria-labelledby="invitations">
      <div class="head">
        <h2 id="invitations">Invitations</h2>
        {!decides ? null : (
          <DialogButton name="invite" kind="main" label="Invite…" title="Invite a person">
            {(close) => <Invite close={close} done={invitations.reload} institution={institution} />}
          </DialogButton>
        )}
      </div>
      <Failure of={invitations.failure} retry={invitations.reload} />
      {found === undefined ? null : (
        <>
          <InvitationTable decides={decides} done={invitations.reload} of={found} />
          <NextPage last={lastOf(found, ({ enrollment_id }) => enrollment_id)} name="invitations" words="invitations" />
        </>
      )}
    </section>
  )
}
