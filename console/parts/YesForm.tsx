/** A decision that needs no more than a yes: the form of its dialog. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { announce } from "./Announce.tsx"
import { Form } from "./Form.tsx"

export const YesForm = ({ close, done, explained, said, submit, write }: {
  readonly explained: string
  readonly submit: string
  /** The announcement of its success. */
  readonly said: string
  readonly write: (key: string) => Promise<unknown>
  readonly close: () => void
  /** Requests the page's data again, once it succeeded. */
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const confirm = async () => {
    if (!await action.run(write)) return
    announce(said)
    close()
    await done()
  }
  return (
    <Form action={action} close={close} kind="stop" submit={submit} write={confirm}>
      <p>{explained}</p>
    </Form>
  )
}
