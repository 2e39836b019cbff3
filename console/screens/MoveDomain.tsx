/** A platform administrator moves a domain to another account at once, without the handshake and its safety window. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import { useDraft } from "../Drafts.ts"
import { go } from "../Location.ts"
import { announce } from "../parts/Announce.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { CheckField, Form, TextField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"

const Move = ({ close }: { readonly close: () => void }): JSX.Element => {
  const action = useAction()
  const draft = useDraft("move", { domain: "", email: "", rotate: true })
  const { domain, email, rotate } = draft.value.value
  const write = () =>
    action.run(async () => {
      const made = await ask("forceTransfer", {
        params: { domain_id: domain.trim() },
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
      ready={domain.trim() !== "" && email.trim() !== ""}
      write={write}
    >
      <TextField
        action={action}
        autofocus
        label="Id of the domain"
        name="domain_id"
        value={domain}
        onInput={(domain) => draft.set({ domain })}
      />
      <TextField
        action={action}
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

const MoveDomain = (): JSX.Element => (
  <Page title="Move a domain">
    <p>
      The domain changes its owner at once: no invitation, no safety window, no limits of a plan. A transfer of it that
      waits or is accepted ends. Both accounts are told, and the audit names you.
    </p>
    <DialogButton name="move" kind="stop" label="Move a domain…" title="Move a domain to another account">
      {(close) => <Move close={close} />}
    </DialogButton>
  </Page>
)
export default MoveDomain
