/** The authenticators of the person: passkeys, security keys, apps of one-time codes, recovery codes. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { announce } from "../parts/Announce.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Form } from "../parts/Form.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { ConfirmForm, type Opened } from "./ConfirmForm.tsx"
import { EnrollApp } from "./EnrollApp.tsx"
import { LabelField, longestLabel } from "./LabelField.tsx"
import { confirm, labelOf } from "./Proof.ts"
import { RecoveryCodes } from "./RecoveryCodes.tsx"
import { RegisterPasskey, withoutPasskeys } from "./RegisterPasskey.tsx"

type Authenticator = AnswerOf<"listAuthenticators">["items"][number]
export type Capability = AnswerOf<"credentialCapabilities">["actions"][number]

const kinds: Readonly<Record<Authenticator["kind"], string>> = {
  passkey: "Passkey",
  security_key: "Security key",
  totp: "App of one-time codes",
  recovery_codes: "Recovery codes",
  password: "Password",
}

/** The reasons of a refusal in words. */
export const reasons: Readonly<Record<string, string>> = {
  limit_reached: "You have as many authenticators as a person may have: remove one first.",
  last_authenticator: "It is your last second factor: register another one first.",
  none_enrolled: "You have none.",
}

const Rename = ({ close, done, of }: Opened & { readonly of: Authenticator }): JSX.Element => {
  const action = useAction()
  const draft = useDraft(`rename ${of.authenticator_id}`, { label: of.label })
  const { label } = draft.value.value
  const ready = label.trim() !== "" && label.trim().length <= longestLabel
  const write = async () => {
    const payload = { kind: "authenticator.rename", target_id: of.authenticator_id, label: labelOf(label) } as const
    if (!await action.run(() => confirm(payload))) return
    announce("The name is changed.")
    close()
    await done()
  }
  return (
    <Form action={action} close={close} submit="Save" ready={ready} write={write}>
      <LabelField action={action} required value={label} onInput={(label) => draft.set({ label })} />
    </Form>
  )
}

const Remove = ({ close, done, of }: Opened & { readonly of: Authenticator }): JSX.Element => (
  <ConfirmForm
    action={{ kind: of.kind === "totp" ? "totp.remove" : "passkey.remove", target_id: of.authenticator_id }}
    close={close}
    done={done}
    name={`remove ${of.authenticator_id}`}
    said={`“${of.label}” is removed.`}
    submit="Remove it for good"
  >
    <p>“{of.label}” stops being a second factor of yours. To use it again, it has to be registered anew.</p>
  </ConfirmForm>
)

const Acts = ({ done, of }: { readonly of: Authenticator; readonly done: () => unknown }): JSX.Element => {
  const { authenticator_id: id, not_removable_reason: kept, removable } = of
  return (
    <>
      <div class="actions">
        <DialogButton name={`rename ${id}`} label="Rename…" title={`Rename “${of.label}”`}>
          {(close) => <Rename close={close} done={done} of={of} />}
        </DialogButton>
        {removable
          ? (
            <DialogButton name={`remove ${id}`} label="Remove…" title={`Remove “${of.label}”`}>
              {(close) => <Remove close={close} done={done} of={of} />}
            </DialogButton>
          )
          : null}
      </div>
      {kept === "last_authenticator" ? <p class="note">Not removable: your last second factor.</p> : null}
    </>
  )
}

const Detail = ({ of }: { readonly of: Authenticator }): JSX.Element => {
  if (of.codes_remaining !== null) return <>{of.codes_remaining} left</>
  if (of.kind === "totp" || of.kind === "password") return <span class="note">none</span>
  return (
    <>{of.backup_state === true ? "synchronised" : of.credential_type === "fido2-platform" ? "this device" : "roams"}</>
  )
}

export const Authenticators = ({ capabilities, done, of, oneFactor }: {
  readonly of: ReadonlyArray<Authenticator>
  readonly capabilities: ReadonlyArray<Capability>
  readonly done: () => unknown
  /** The service that signs the person in never asks for a second factor. */
  readonly oneFactor: boolean
}): JSX.Element => {
  const refusedFor = (wanted: Capability["kind"]) => {
    const reason = capabilities.find(({ kind }) => kind === wanted)?.unavailable_reason ?? null
    return reason === null ? null : reasons[reason] ?? reason
  }
  const hasCodes = of.some(({ kind }) => kind === "recovery_codes")
  const noPasskeys = withoutPasskeys()
  return (
    <section aria-labelledby="authenticators">
      <div class="head">
        <h2 id="authenticators">Authenticators</h2>
        <div class="actions">
          <DialogButton
            name="passkey"
            label="Register a passkey…"
            title="Register a passkey"
            refused={noPasskeys ?? refusedFor("passkey.register")}
          >
            {(close) => <RegisterPasskey close={close} done={done} />}
          </DialogButton>
          <DialogButton
            name="totp"
            label="Enrol an app…"
            title="Enrol an app of one-time codes"
            refused={refusedFor("totp.enroll")}
          >
            {(close) => <EnrollApp close={close} done={done} />}
          </DialogButton>
          <DialogButton
            name="codes"
            label={hasCodes ? "Replace the recovery codes…" : "Make recovery codes…"}
            title="Recovery codes"
          >
            {(close) => <RecoveryCodes close={close} done={done} replaces={hasCodes} />}
          </DialogButton>
        </div>
      </div>
      {noPasskeys === null ? null : <p class="note">{noPasskeys}</p>}
      {oneFactor
        ? (
          <p class="banner bad">
            The service that signs you in asks for no second factor. Once you have one here, changes of this page need a
            sign-in with it, which that service does not give: you would lock yourself out of them.
          </p>
        )
        : null}
      <Table
        caption="Your authenticators, oldest first"
        rows={of}
        keyOf={({ authenticator_id }) => authenticator_id}
        empty="You have none yet. A passkey or an app of one-time codes protects your sign-in by a second factor."
        columns={[
          { head: "Name", cell: ({ label }) => label },
          { head: "Kind", cell: ({ kind }) => kinds[kind] },
          { head: "Detail", cell: (one) => <Detail of={one} /> },
          { head: "Added", cell: ({ created_at }) => <When at={created_at} /> },
          { head: "Last used", cell: ({ last_used_at }) => <When at={last_used_at} /> },
          { head: "Actions", cell: (one) => <Acts of={one} done={done} /> },
        ]}
      />
    </section>
  )
}
