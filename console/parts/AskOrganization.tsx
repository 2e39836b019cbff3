/** The form that asks for a new institution, whose first Sponsor its author becomes. */
import type { JSX } from "preact"
import { type Action, useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import { type Draft, useDraft } from "../Drafts.ts"
import { DialogButton } from "./Dialog.tsx"
import { SelectField, TextField } from "./Form.tsx"
import { ReasonForm } from "./ReasonForm.tsx"

interface Typed {
  readonly name: string
  readonly type: string
  readonly website: string
  readonly domains: string
  readonly purpose: string
  readonly contact: string
  readonly email: string
  readonly role: "owner" | "technical" | "security" | "billing"
}

const lines = (text: string): ReadonlyArray<string> =>
  text.split(/[\n,]/u).map((line) => line.trim()).filter((line) => line !== "")

const About = ({ action, draft }: { readonly action: Action; readonly draft: Draft<Typed> }): JSX.Element => {
  const { domains, name, purpose, type, website } = draft.value.value
  return (
    <>
      <TextField
        action={action}
        autofocus
        label="Name of the institution"
        name="name"
        value={name}
        onInput={(name) => draft.set({ name })}
      />
      <TextField
        action={action}
        label="Kind"
        name="organization_type"
        hint="In your words: school, museum, company, club."
        value={type}
        onInput={(type) => draft.set({ type })}
      />
      <TextField
        action={action}
        label="Its website"
        name="website"
        type="url"
        value={website}
        onInput={(website) => draft.set({ website })}
      />
      <TextField
        action={action}
        label="Its domains"
        lines={2}
        name="domains"
        hint="One a line, at most ten. Websites of the institution lie under them."
        value={domains}
        onInput={(domains) => draft.set({ domains })}
      />
      <TextField
        action={action}
        label="What it will do here"
        lines={3}
        name="purpose"
        hint="12 characters at least."
        value={purpose}
        onInput={(purpose) => draft.set({ purpose })}
      />
    </>
  )
}

/** The API takes up to ten contacts; a form that asks for one is filled in. */
const Contact = ({ action, draft }: { readonly action: Action; readonly draft: Draft<Typed> }): JSX.Element => {
  const { contact, email, role } = draft.value.value
  return (
    <fieldset>
      <legend>Contact</legend>
      <TextField
        action={action}
        label="Name of the contact"
        name="contacts"
        value={contact}
        onInput={(contact) => draft.set({ contact })}
      />
      <TextField
        action={action}
        label="Their email address"
        name="email"
        type="email"
        value={email}
        onInput={(email) => draft.set({ email })}
      />
      <SelectField
        label="They answer for"
        value={role}
        options={[
          ["owner", "the institution"],
          ["technical", "technical questions"],
          ["security", "security"],
          ["billing", "billing"],
        ]}
        onChange={(role) => draft.set({ role: role as Typed["role"] })}
      />
    </fieldset>
  )
}

const AskForm = ({ close, done }: {
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const draft = useDraft<Typed>("institution", {
    name: "",
    type: "",
    website: "https://",
    domains: "",
    purpose: "",
    contact: "",
    email: "",
    role: "owner",
  })
  const { contact, domains, email, name, purpose, role, type, website } = draft.value.value
  return (
    <ReasonForm
      action={action}
      name="ask for an institution"
      close={close}
      done={done}
      ready={name.trim().length >= 2 && type.trim().length >= 2 && website.length > 8 && lines(domains).length > 0 &&
        purpose.trim().length >= 12 && contact.trim() !== "" && email.trim().length >= 3}
      submit="Ask for the institution"
      said="The institution is asked for. An operator decides."
      write={(reason, key) =>
        ask("createOrganizationRequest", {
          payload: {
            name: name.trim(),
            organization_type: type.trim(),
            website: website.trim(),
            domains: lines(domains),
            purpose: purpose.trim(),
            contacts: [{ name: contact.trim(), email: email.trim(), role }],
            reason,
          },
        }, { key })}
    >
      <About action={action} draft={draft} />
      <Contact action={action} draft={draft} />
      <p class="note">An operator decides. Once it is approved, you are its first Sponsor and invite others.</p>
    </ReasonForm>
  )
}

export const AskOrganization = ({ done }: { readonly done: () => unknown }): JSX.Element => (
  <DialogButton name="ask for an institution" label="Ask for an institution…" title="Ask for a new institution">
    {(close) => <AskForm close={close} done={done} />}
  </DialogButton>
)
