/** A decision that needs a reason: the form of its dialog. */
import type { ComponentChildren, JSX } from "preact"
import { type Action, useAction } from "../Action.ts"
import { useDraft } from "../Drafts.ts"
import { announce } from "./Announce.tsx"
import { Form, SelectField, TextField } from "./Form.tsx"

/** Characters of a reason, at least. */
const least = 8

export const ReasonForm = (
  { action: given, children, close, done, kind = "main", name, ready = true, said, submit, templates = [], write }: {
    /** The name of the form's draft, unique on its page. */
    readonly name: string
    readonly submit: string
    /** The announcement of its success. */
    readonly said: string
    readonly write: (reason: string, key: string) => Promise<unknown>
    readonly close: () => void
    /** Requests the page's data again, once it succeeded. */
    readonly done: () => unknown
    readonly kind?: "main" | "stop"
    readonly ready?: boolean
    /** Reasons that are often given, to begin with. */
    readonly templates?: ReadonlyArray<string>
    /** Where the caller looks at the refusal. */
    readonly action?: Action
    readonly children?: ComponentChildren
  },
): JSX.Element => {
  const own = useAction()
  const action = given ?? own
  const draft = useDraft(name, { reason: "" })
  const { reason } = draft.value.value
  const missing = reason.trim() === "" ? 0 : least - reason.trim().length
  const run = async () => {
    if (!await action.run(() => write(reason, draft.key))) return
    announce(said)
    close()
    await done()
  }
  return (
    <Form
      action={action}
      close={close}
      kind={kind}
      submit={submit}
      ready={ready && reason.trim().length >= least}
      write={run}
    >
      {children}
      {templates.length === 0 ? null : (
        <SelectField
          label="Begin with"
          value={templates.includes(reason) ? reason : ""}
          onChange={(reason) => draft.set({ reason })}
          options={[["", "Words of your own"], ...templates.map((one) => [one, one] as const)]}
        />
      )}
      <TextField
        action={action}
        autofocus
        label="Reason"
        lines={3}
        name="reason"
        hint={missing > 0
          ? `${missing} more ${missing === 1 ? "character" : "characters"} at least.`
          : `${least} to 500 characters. It stands in the evidence, beside your name.`}
        value={reason}
        onInput={(reason) => draft.set({ reason })}
      />
    </Form>
  )
}
