/** The form of one operation: its parameters and body, what came back, and the request as a command. */
import { type Signal, useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useEffect, useMemo } from "preact/hooks"
import { type Action, useAction } from "../Action.ts"
import { CopyButton } from "../parts/Copy.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Form, SelectField, TextField } from "../parts/Form.tsx"
import { addressOf, curlOf, type Filled, missing, type Sent, sent } from "./Exchange.ts"
import type { Operation, Parameter } from "./ReferenceOperations.ts"

const Field = ({ filled, of }: { readonly of: Parameter; readonly filled: Signal<Filled> }): JSX.Element => {
  const value = filled.value.values[of.name] ?? ""
  const set = (value: string) => {
    filled.value = { ...filled.value, values: { ...filled.value.values, [of.name]: value } }
  }
  const label = of.required ? of.name : `${of.name} (optional)`
  return of.values.length > 0
    ? (
      <SelectField
        label={label}
        value={value}
        options={[["", "—"], ...of.values.map((one) => [one, one] as const)]}
        onChange={set}
      />
    )
    : (
      <TextField
        label={label}
        name={of.name}
        required={of.required}
        hint={of.fallback === undefined ? of.description : `${of.description} By default ${of.fallback}.`.trim()}
        value={value}
        onInput={set}
      />
    )
}

const Answer = ({ of }: { readonly of: Sent }): JSX.Element => (
  <section aria-label="The answer" role="status">
    <h3>{of.status} in {of.millis} ms</h3>
    <details>
      <summary>{of.headers.length} headers</summary>
      <pre tabIndex={0} aria-label="Headers of the answer">
        {of.headers.map(([name, value]) => `${name}: ${value}`).join("\n")}
      </pre>
    </details>
    {of.body === "" ? <p class="note">Without a body.</p> : (
      <>
        <pre tabIndex={0} aria-label="Body of the answer">{of.body}</pre>
        <CopyButton text={of.body} label="Copy body" />
      </>
    )}
  </section>
)

interface Sending {
  readonly of: Operation
  readonly filled: Filled
  readonly send: (key: string | undefined) => Promise<boolean>
}

/** Asks before a write. The key is made when the dialog opens: pressing twice has one effect. */
const Confirm = (
  { action, close, filled, of, send }: Sending & { readonly action: Action; readonly close: () => void },
) => {
  const key = useMemo(() => crypto.randomUUID(), [])
  const keyed = of.parameters.some(({ name }) => name === "idempotency-key")
  const write = async () => void (await send(keyed ? key : undefined) && close())
  return (
    <Form action={action} close={close} kind="stop" submit="Send it" write={write}>
      <p>
        This is carried out in your name: <code>{of.method} {addressOf(of, filled)}</code>
      </p>
      {keyed
        ? (
          <p class="note">
            Its Idempotency-Key is <code>{key}</code>.
          </p>
        )
        : null}
    </Form>
  )
}

export const TryIt = ({ of }: { readonly of: Operation }): JSX.Element => {
  const filled = useSignal<Filled>({ values: {}, body: "" })
  const answer = useSignal<Sent | null>(null)
  const action = useAction()
  const running = useMemo(() => new AbortController(), [])
  useEffect(() => () => running.abort(), [running])
  const fields = of.parameters.filter(({ name }) => name !== "idempotency-key")
  const lacks = missing(of, filled.value)
  const send = (key: string | undefined) =>
    action.run(async () => {
      answer.value = null
      answer.value = await sent(of, filled.value, key, running.signal)
    })
  const reads = of.method === "GET"
  const command = curlOf(of, filled.value, location.origin)
  return (
    <>
      {fields.map((one) => <Field key={one.in + one.name} of={one} filled={filled} />)}
      {of.takesBody
        ? (
          <TextField
            label="Body"
            name="body"
            lines={8}
            required={false}
            hint="JSON"
            value={filled.value.body}
            onInput={(body) => {
              filled.value = { ...filled.value, body }
            }}
          />
        )
        : null}
      {lacks.length === 0 ? null : <p class="note">It needs {lacks.join(", ")}.</p>}
      {of.streams ? <p class="note">Its answer has no end: follow it by the command.</p> : reads
        ? (
          <p>
            <button
              type="button"
              class="main"
              disabled={lacks.length > 0 || action.busy.value}
              onClick={() => void send(undefined)}
            >
              Send the request
            </button>
          </p>
        )
        : (
          <DialogButton
            name={`try ${of.id}`}
            kind="main"
            label="Send the request…"
            title="Send this request?"
            refused={lacks.length > 0 ? "A parameter is missing." : null}
          >
            {(close) => <Confirm action={action} close={close} filled={filled.value} of={of} send={send} />}
          </DialogButton>
        )}
      {reads ? <Failure of={action.failure} /> : null}
      {answer.value === null ? null : <Answer of={answer.value} />}
      <h3>As a command</h3>
      <pre tabIndex={0} aria-label="The request as a command">{command}</pre>
      <CopyButton text={command} label="Copy as curl" />
    </>
  )
}
