/** The form of an action that needs nothing but the press of a button. */
import type { ComponentChildren, JSX } from "preact"
import { useAction } from "../Action.ts"
import { useDraft } from "../Drafts.ts"
import { announce } from "../parts/Announce.tsx"
import { Form } from "../parts/Form.tsx"
import { confirm, type Starting } from "./Proof.ts"

export interface Opened {
  readonly close: () => void
  /** Reads the page anew. */
  readonly done: () => unknown
}

export const ConfirmForm = ({ action: payload, children, close, done, name, said, submit }: Opened & {
  readonly action: Starting
  /** The name of the form's draft: the form opens again after a step-up. */
  readonly name: string
  readonly submit: string
  /** The announcement of its success. */
  readonly said: string
  readonly children: ComponentChildren
}): JSX.Element => {
  const action = useAction()
  useDraft(name, {})
  const write = async () => {
    if (!await action.run(() => confirm(payload))) return
    announce(said)
    close()
    await done()
  }
  return (
    <Form action={action} close={close} kind="stop" submit={submit} write={write}>
      {children}
    </Form>
  )
}
