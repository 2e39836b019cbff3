/** A button that opens the dialog of a decision, which needs a reason. */
import type { ComponentChildren, JSX } from "preact"
import { DialogButton } from "./Dialog.tsx"
import { ReasonForm } from "./ReasonForm.tsx"

export const ReasonDialog = ({ children, done, kind = "main", label, name, said, submit, title, write }: {
  /** The name of the form's draft, unique on its page. */
  readonly name: string
  /** The words of the button that opens the dialog. */
  readonly label: string
  readonly title: string
  /** The words of the button that decides. */
  readonly submit: string
  /** The announcement of its success. */
  readonly said: string
  readonly write: (reason: string, key: string) => Promise<unknown>
  /** Requests the page's data again, once it succeeded. */
  readonly done: () => unknown
  readonly kind?: "main" | "stop"
  readonly children?: ComponentChildren
}): JSX.Element => (
  <DialogButton name={name} label={label} title={title}>
    {(close) => (
      <ReasonForm name={name} close={close} done={done} kind={kind} submit={submit} said={said} write={write}>
        {children}
      </ReasonForm>
    )}
  </DialogButton>
)
