/** The API keys of an account: made, shown once, revoked. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { announce } from "../parts/Announce.tsx"
import { MadeBefore, ShownOnce } from "../parts/Copy.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Form, TextField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"

type Key = AnswerOf<"listApiKeys">[number]

interface Opened {
  readonly close: () => void
  readonly done: () => unknown
}

const Create = ({ close, done }: Opened): JSX.Element => {
  const action = useAction()
  const draft = useDraft("key", { name: "" })
  const made = useSignal<{ readonly key: string | null } | null>(null)
  const { name } = draft.value.value
  const write = () =>
    action.run(async () => {
      made.value = await ask("createApiKey", { payload: { name, permissions: ["send"] } }, { key: draft.key })
      await done()
    })
  const secret = made.value?.key ?? null
  return secret !== null
    ? <ShownOnce what="the key" secret={secret} close={close} />
    : made.value !== null
    ? (
      <MadeBefore what="The key" close={close}>
        <p>It was in that answer, and is shown once. Revoke “{name}”, and create another key.</p>
      </MadeBefore>
    )
    : (
      <Form action={action} close={close} submit="Create the key" ready={name.trim() !== ""} write={write}>
        <TextField
          action={action}
          autofocus
          label="Name"
          name="name"
          hint="What will use it, so that you know later what a revocation stops."
          value={name}
          onInput={(name) => draft.set({ name })}
        />
      </Form>
    )
}

const Revoke = ({ close, done, of }: Opened & { readonly of: Key }): JSX.Element => {
  const action = useAction()
  const write = async () => {
    if (!await action.run(() => ask("revokeApiKey", { params: { key_id: of.id } }))) return
    announce(`The key ${of.name} is revoked.`)
    close()
    await done()
  }
  return (
    <Form action={action} close={close} kind="stop" submit="Revoke it for good" write={write}>
      <p>
        Requests with the key “{of.name}” (<code>{of.key_prefix}…</code>) are refused from now on.
      </p>
    </Form>
  )
}

const ApiKeys = (): JSX.Element => {
  const keys = useResource("api keys", (signal) => ask("listApiKeys", {}, { signal }))
  const account = useResource("account", (signal) => ask("getAccount", {}, { signal }))
  const done = async () => void await Promise.all([keys.reload(), account.reload()])
  const quota = account.value.value?.api_keys
  return (
    <Page
      title="API keys"
      actions={
        <DialogButton name="key" kind="main" label="Create a key…" title="Create an API key">
          {(close) => <Create close={close} done={done} />}
        </DialogButton>
      }
    >
      {quota === undefined ? null : (
        <p class="note">
          {quota.limit === -1 ? `${quota.used} in use` : `${quota.used} of the ${quota.limit} keys of your plan`}
        </p>
      )}
      <Failure of={keys.failure} retry={keys.reload} />
      {keys.value.value === undefined ? null : (
        <Table
          caption="Active API keys, newest first"
          rows={keys.value.value}
          keyOf={({ id }) => id}
          empty="There is no key yet. Create one for each program that uses the API."
          columns={[
            { head: "Name", cell: ({ name }) => name },
            { head: "Begins with", cell: ({ key_prefix }) => <code>{key_prefix}</code> },
            { head: "Permissions", cell: ({ permissions }) => permissions.join(", ") },
            { head: "Created", cell: ({ created_at }) => <When at={created_at} /> },
            { head: "Last used", cell: ({ last_used_at }) => <When at={last_used_at} /> },
            {
              head: "Actions",
              cell: (one) => (
                <DialogButton name={`revoke ${one.id}`} label="Revoke…" title="Revoke an API key">
                  {(close) => <Revoke close={close} done={done} of={one} />}
                </DialogButton>
              ),
            },
          ]}
        />
      )}
    </Page>
  )
}
export default ApiKeys
