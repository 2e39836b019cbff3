/** The end of a project: its name is typed, and the version on screen is the one that ends. */
import type { JSX } from "preact"
import { useEffect } from "preact/hooks"
import { useAction } from "../../Action.ts"
import { ask } from "../../contract/Ask.ts"
import { useDraft } from "../../Drafts.ts"
import { DialogButton } from "../../parts/Dialog.tsx"
import { TextField } from "../../parts/Form.tsx"
import type { Project } from "../../parts/ProjectState.tsx"
import { ReasonForm } from "../../parts/ReasonForm.tsx"

const Withdraw = ({ close, done, of }: {
  readonly of: Project
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const draft = useDraft("withdraw name", { name: "" })
  const { name } = draft.value.value
  const { institution_id, project_id, version } = of
  const moved = action.failure.value?.code === "version_conflict"
  // The project is asked for anew when the dialog closes: before that, it would take the dialog and its words away.
  useEffect(() => moved ? () => void done() : undefined, [moved])
  return (
    <ReasonForm
      action={action}
      name="withdraw"
      close={close}
      done={done}
      kind="stop"
      ready={name === of.name && !moved}
      submit="Withdraw it for good"
      said="The project is withdrawn."
      write={(reason, key) =>
        ask("withdrawWebsite", {
          params: { institution_id, project_id },
          payload: { expected_version: version, reason },
        }, { key })}
    >
      <p>
        Its client is disabled, sessions by way of it end, service grants are revoked and open requests close. Nothing
        leads back. Type its name to go on: <strong>{of.name}</strong>
      </p>
      <TextField
        autofocus
        label="Name of the project"
        name="confirm"
        value={name}
        onInput={(name) => draft.set({ name })}
      />
      {moved
        ? <p class="fault">The project has changed since you opened this. Close it and look at the project again.</p>
        : <p class="note">You withdraw version {version}, as it is on screen.</p>}
    </ReasonForm>
  )
}

export const WithdrawButton = ({ done, of }: {
  readonly of: Project
  readonly done: () => unknown
}): JSX.Element => (
  <DialogButton name="withdraw" kind="stop" label="Withdraw…" title={`Withdraw ${of.name}`}>
    {(close) => <Withdraw close={close} done={done} of={of} />}
  </DialogButton>
)
