/** The form that asks for the removal of all authenticators of a member who lost them. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { DialogButton } from "./Dialog.tsx"
import { ReasonForm } from "./ReasonForm.tsx"

export const LostAuthenticators = ({ institution, name, person, words }: {
  readonly institution: string
  /** The dialog's name, unique on its page. */
  readonly name: string
  readonly person: string
  /** The person's name. */
  readonly words: string
}): JSX.Element => (
  <DialogButton name={name} label="Lost authenticators…" title={`Remove the authenticators of ${words}`}>
    {(close) => (
      <ReasonForm
        name={name}
        close={close}
        done={() => {}}
        kind="stop"
        submit="Ask for their removal"
        said="The removal is asked for. Another administrator decides."
        write={(reason, key) =>
          ask("requestAuthenticatorReset", {
            params: { institution_id: institution },
            payload: { person_id: person, reason },
          }, { key })}
      >
        <p>
          For a member who has lost every passkey, one-time code and recovery code. Another administrator decides, and
          an operator where other institutions are concerned. {words}{" "}
          is told by mail, and enrolls anew at the next sign-in.
        </p>
      </ReasonForm>
    )}
  </DialogButton>
)
