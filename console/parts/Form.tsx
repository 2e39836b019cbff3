/** A form in a dialog, and its fields: labels, hints, and the API's faults beside the field that they are of. */
import type { ComponentChildren, JSX } from "preact"
import { useId } from "preact/hooks"
import type { Action } from "../Action.ts"
import { auditing, readOnly } from "../Visitor.ts"
import { readOnlyReason } from "./Dialog.tsx"
import { Failure, faultOf } from "./Failure.tsx"

export const Form = ({ action, children, close, kind = "main", leave = "Cancel", ready = true, submit, write }: {
  readonly action: Action
  /** The words of the button that does it. */
  readonly submit: string
  /** The action of the button. */
  readonly write: () => unknown
  readonly close?: () => void
  /** The words of the button that leaves it undone. */
  readonly leave?: string
  readonly kind?: "main" | "stop"
  readonly ready?: boolean
  readonly children: ComponentChildren
}): JSX.Element => (
  <form
    onSubmit={(event) => {
      event.preventDefault()
      if (ready) void write()
    }}
  >
    {children}
    <Failure of={action.failure} />
    <div class="actions">
      <button type="submit" class={kind} disabled={!ready || action.busy.value}>
        {action.busy.value ? "One moment…" : submit}
      </button>
      {close === undefined ? null : <button type="button" onClick={close}>{leave}</button>}
    </div>
  </form>
)

export const TextField = (
  { action, autofocus = false, hint, label, lines, name, onInput, required = true, type, value }: {
    readonly label: string
    /** The field's name in the API, by which a fault is found. */
    readonly name: string
    readonly value: string
    readonly onInput: (value: string) => void
    readonly hint?: ComponentChildren
    readonly type?: "text" | "url" | "email" | "number" | "datetime-local" | "password"
    /** A text of several lines. */
    readonly lines?: number
    readonly required?: boolean
    readonly autofocus?: boolean
    readonly action?: Action
  },
): JSX.Element => {
  const id = useId()
  const fault = faultOf(action?.failure.value ?? null, name)
  const described = [hint === undefined ? "" : `${id}-hint`, fault === null ? "" : `${id}-fault`].join(" ").trim()
  const shared = {
    id,
    name,
    value,
    required,
    "aria-invalid": fault !== null,
    ...(described === "" ? {} : { "aria-describedby": described }),
    ...(autofocus ? { autofocus } : {}),
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {lines === undefined
        ? (
          <input
            {...shared}
            type={(type ?? "text") as "text"}
            autocomplete={type === "password" ? "new-password" : "off"}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
        )
        : <textarea {...shared} rows={lines} onInput={(event) => onInput(event.currentTarget.value)} />}
      {hint === undefined ? null : <p class="note" id={`${id}-hint`}>{hint}</p>}
      {fault === null ? null : <p class="fault" id={`${id}-fault`}>{fault}</p>}
    </div>
  )
}

export const SelectField = ({ label, onChange, options, value }: {
  readonly label: string
  readonly value: string
  readonly options: ReadonlyArray<readonly [value: string, label: string]>
  readonly onChange: (value: string) => void
}): JSX.Element => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([one, words]) => <option key={one} value={one}>{words}</option>)}
      </select>
    </div>
  )
}

export const CheckField = ({ checked, label, onChange }: {
  readonly label: ComponentChildren
  readonly checked: boolean
  readonly onChange: (checked: boolean) => void
}): JSX.Element => (
  <label class="choice">
    <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
    <span>{label}</span>
  </label>
)

/** A button that writes at once, without a form. */
export const Do = ({ action, children, disabled = false, kind = "", onDo }: {
  readonly action: Action
  readonly children: string
  readonly onDo: () => unknown
  readonly kind?: "" | "main" | "stop"
  readonly disabled?: boolean
}): JSX.Element | null =>
  auditing.value ? null : (
    <button
      type="button"
      class={kind}
      disabled={disabled || readOnly.value || action.busy.value}
      title={readOnly.value ? readOnlyReason : undefined}
      onClick={() => void onDo()}
    >
      {children}
    </button>
  )
