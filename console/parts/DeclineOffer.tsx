/** Declines the offer of a domain, on its page and in the list of offers. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { YesForm } from "./YesForm.tsx"
import { DialogButton } from "./Dialog.tsx"
import type { Transfer } from "./TransferState.tsx"

export const DeclineOffer = ({ done, of }: {
  readonly of: Transfer
  /** Requests the page's data again, once it succeeded. */
  readonly done: () => unknown
}): JSX.Element => (
  <DialogButton name={`decline ${of.id}`} label="Decline…" title={`Decline ${of.domain_name}`}>
    {(close) => (
      <YesForm
        close={close}
        done={done}
        explained={`${of.source_label} is told, and may offer the domain again.`}
        said="The offer is declined."
        submit="Decline the offer"
        write={(key) => ask("declineTransfer", { params: { transfer_id: of.id } }, { key })}
      />
    )}
  </DialogButton>
)
