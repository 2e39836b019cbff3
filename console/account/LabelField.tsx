/** The name of an authenticator, by which its person knows it again. */
import type { JSX } from "preact"
import type { Action } from "../Action.ts"
import { TextField } from "../parts/Form.tsx"

export const longestLabel = 64

export const LabelField = ({ action, onInput, required = false, value }: {
  readonly action: Action
  readonly value: string
  readonly onInput: (value: string) => void
  readonly required?: boolean
}): JSX.Element => (
  <TextField
    action={action}
    autofocus
    label="Name"
    name="label"
    required={required}
    hint={`By which you know it again, such as “Work laptop”: at most ${longestLabel} characters.`}
    value={value}
    onInput={onInput}
  />
)
