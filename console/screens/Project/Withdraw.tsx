/** The end of a project: its name is typed, and the version on screen is the one that ends. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useAction } from "../../Action.ts"
import { ask } from "../../contract/Ask.ts"
import { useDraft } from "../../Drafts.ts"
import { useNames } from "../../Names.ts"
import { DialogButton } from "../../parts/Dialog.tsx"
import type { Facts } from "../../parts/Difference.tsx"
import { TextField } from "../../parts/Form.tsx"
import { Moved, useMoved } from "../../parts/Moved.tsx"
import type { Project } from "../../parts/ProjectState.tsx"
import { ReasonForm } from "../../parts/ReasonForm.tsx"

/** What a decider compares, in words. */
const factsOf = (names: (id: string) => string) => (of: Project): Facts => ({
  Name: of.name,
  State: of.state.replaceAll("_", " "),
  Website: of.website,
  Client: of.client_id ?? "not made yet",
  "Redirect URIs": of.redirect_uris.join(", ") || "none",
  Owners: ownersOf(of).map(names).join(", ") || "none",
  Version: String(of.version),
})

const ownersOf = ({ owners }: Project): ReadonlyArray<string> =>
  (owners ?? []).filter(({ active }) => active).map(({ person_id }) => person_id)

const ProjectMoved = ({ of }: { readonly of: Project }): JSX.Element => {
  const { project_id, version } = of
  const people = useSignal(ownersOf(of))
  const names = useNames(people.value)
  return (
    <Moved
      thing="project"
      before={of}
      version={`${project_id} ${version}`}
      facts={factsOf(names)}
      read={async (signal) => {
        const now = await ask("getProject", { params: { project_id } }, { signal })
        people.value = [...new Set([...people.value, ...ownersOf(now)])]
        return now
      }}
    />
  )
}

const Withdraw = ({ close, done, of }: {
  readonly of: Project
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const draft = useDraft("withdraw name", { name: "" })
  const { name } = draft.value.value
  const { institution_id, project_id, version } = of
  const moved = useMoved(action, ["invalid_state", "version_conflict"], done)
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
      {moved ? <ProjectMoved of={of} /> : <p class="note">You withdraw version {version}, as it is on screen.</p>}
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
