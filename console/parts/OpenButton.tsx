/** An operator's word that opens a held installation. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { useResource } from "../Resource.ts"
import { DialogButton } from "./Dialog.tsx"
import { ReasonForm } from "./ReasonForm.tsx"
import { When } from "./When.tsx"

const name = "open installation"

const Warning = (): JSX.Element => {
  const installed = useResource("installation", (signal) => ask("installation", {}, { signal }))
  return (
    <p>
      What was revoked since <When at={installed.value.value?.lost_since ?? null} exact never="an unknown time" />{" "}
      and is not revoked again by now is in effect. Revoke by hand first what has to stay revoked.
    </p>
  )
}

export const OpenButton = ({ done }: {
  /** Requests the page's data again, once it succeeded. */
  readonly done: () => unknown
}): JSX.Element => (
  <DialogButton name={name} label="Open…" title="Open the installation" kind="stop">
    {(close) => (
      <ReasonForm
        name={name}
        close={close}
        done={done}
        submit="Open the installation"
        kind="stop"
        said="The installation is open."
        write={(reason, key) => ask("openInstallation", { payload: { reason } }, { key })}
      >
        <Warning />
      </ReasonForm>
    )}
  </DialogButton>
)
