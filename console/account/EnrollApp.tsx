/** The form that enrols an app of one-time codes: its secret is shown once, and its first code proves that it has it. */
import { type Signal, useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { type Action, useAction } from "../Action.ts"
import { Refused } from "../contract/Ask.ts"
import { useDraft } from "../Drafts.ts"
import { announce } from "../parts/Announce.tsx"
import { CopyButton } from "../parts/Copy.tsx"
import { Form, TextField } from "../parts/Form.tsx"
import type { Opened } from "./ConfirmForm.tsx"
import { LabelField, longestLabel } from "./LabelField.tsx"
import { complete, labelOf, start } from "./Proof.ts"
import { QrCode } from "./QrCode.tsx"

interface Enrolment {
  readonly intentId: string
  readonly uri: string
  readonly secret: string
}

const enrolmentOf = async (label: string): Promise<Enrolment> => {
  const { challenge, intent_id } = await start({ kind: "totp.enroll", label: labelOf(label) })
  if (challenge.type !== "totp" || challenge.otpauth_uri === null || challenge.secret === null) {
    throw new Refused("failed", 0, { detail: "The answer has no secret: press the button again." })
  }
  return { intentId: intent_id, uri: challenge.otpauth_uri, secret: challenge.secret }
}

/** Groups of four are read and typed without a slip. */
const inFours = (secret: string): string => secret.match(/.{1,4}/g)?.join(" ") ?? ""

const Scan = ({ action, close, done, of }: Opened & {
  readonly action: Action
  readonly of: Signal<Enrolment | null>
}): JSX.Element => {
  const code = useSignal("")
  const { intentId, secret, uri } = of.value!
  const digits = code.value.replaceAll(" ", "")
  const write = async () => {
    if (!await action.run(() => complete(intentId, { type: "totp", code: digits }))) {
      const status = action.failure.value?.status
      // The enrolment has ended: only a new secret helps.
      if (status === 409 || status === 410) of.value = null
      return
    }
    announce("The app is enrolled.")
    close()
    await done()
  }
  return (
    <Form action={action} close={close} submit="Enrol the app" ready={/^[0-9]{6}$/.test(digits)} write={write}>
      <p>Scan the code with the app, or type the secret into it. It is not shown again.</p>
      <QrCode text={uri} label="The secret as a QR code" />
      <p>
        <code class="secret">{inFours(secret)}</code>
      </p>
      <p>
        <CopyButton text={secret} label="Copy the secret" />
      </p>
      <TextField
        action={action}
        autofocus
        label="Code of the app"
        name="code"
        hint="Six digits, which the app shows now."
        value={code.value}
        onInput={(typed) => {
          code.value = typed
        }}
      />
    </Form>
  )
}

export const EnrollApp = ({ close, done }: Opened): JSX.Element => {
  const action = useAction()
  const draft = useDraft("totp", { label: "" })
  const enrolment = useSignal<Enrolment | null>(null)
  const { label } = draft.value.value
  const begin = () =>
    action.run(async () => {
      enrolment.value = await enrolmentOf(label)
    })
  return enrolment.value !== null ? <Scan action={action} close={close} done={done} of={enrolment} /> : (
    <Form
      action={action}
      close={close}
      submit="Show the secret"
      ready={label.trim().length <= longestLabel}
      write={begin}
    >
      <LabelField action={action} value={label} onInput={(label) => draft.set({ label })} />
    </Form>
  )
}
