/** A webhook's custom headers and basic authentication. Values are secrets: they are in no draft, and are never shown. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf, RequestOf } from "../contract/EndpointTypes.ts"
import { announce } from "./Announce.tsx"
import { Form, TextField } from "./Form.tsx"

interface Opened {
  readonly of: AnswerOf<"getWebhook">
  readonly close: () => void
  readonly done: () => unknown
}

type Change = RequestOf<"updateWebhook">["payload"]

/** Sends a change of the opened webhook, and closes its dialog. */
const useChange = ({ close, done, of }: Opened) => {
  const action = useAction()
  const change = async (payload: Change, said: string) => {
    if (!await action.run(() => ask("updateWebhook", { params: { webhook_id: of.id }, payload }))) return
    announce(said)
    close()
    await done()
  }
  return { action, change }
}

const headerOf = (line: string) => {
  const colon = line.indexOf(":")
  const [name, value] = colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1)]
  return { name: name.trim(), value: value.trim() }
}

export const EditHeaders = (opened: Opened): JSX.Element => {
  const { action, change } = useChange(opened)
  const typed = useSignal("")
  const { header_names } = opened.of
  const lines = typed.value.split("\n").filter((line) => line.trim() !== "")
  const write = () => change({ headers: lines.map(headerOf) }, "The headers are changed.")
  return (
    <Form
      action={action}
      close={opened.close}
      submit={lines.length === 0 && header_names.length > 0 ? "Remove all headers" : "Save the headers"}
      ready={lines.length > 0 || header_names.length > 0}
      write={write}
    >
      {header_names.length === 0 ? null : (
        <p>
          Its requests carry {header_names.join(", ")}. What you write replaces all of them.
        </p>
      )}
      <TextField
        action={action}
        autofocus
        label="Headers"
        name="headers"
        lines={4}
        required={false}
        hint="One a line: a name, a colon, a value. Values are not shown again."
        value={typed.value}
        onInput={(text) => typed.value = text}
      />
    </Form>
  )
}

export const EditBasicAuth = (opened: Opened): JSX.Element => {
  const { action, change } = useChange(opened)
  const typed = useSignal({ username: "", password: "" })
  const { password, username } = typed.value
  const removes = username === "" && password === ""
  const write = () => change({ basic_auth: typed.value }, "The basic authentication is changed.")
  return (
    <Form
      action={action}
      close={opened.close}
      submit={removes && opened.of.basic_auth ? "Remove the basic authentication" : "Save the basic authentication"}
      ready={!removes || opened.of.basic_auth}
      write={write}
    >
      {opened.of.basic_auth ? <p>Its requests carry credentials. What you write replaces them.</p> : null}
      <TextField
        action={action}
        autofocus
        label="User name"
        name="username"
        required={false}
        value={username}
        onInput={(username) => typed.value = { ...typed.value, username }}
      />
      <TextField
        action={action}
        label="Password"
        name="password"
        type="password"
        required={false}
        hint="It is not shown again."
        value={password}
        onInput={(password) => typed.value = { ...typed.value, password }}
      />
    </Form>
  )
}
