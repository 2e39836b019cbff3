/** The webhooks of an account, and making one. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf, RequestOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { embedded } from "../Location.ts"
import { announce } from "../parts/Announce.tsx"
import { MadeBefore, ShownOnce } from "../parts/Copy.tsx"
import { DeliveryState } from "../parts/DeliveryState.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { EventChoice } from "../parts/EventChoice.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Do, Form, TextField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { Sparkline } from "../parts/Sparkline.tsx"
import { Table } from "../parts/Table.tsx"
import { DescriptionField, Health } from "../parts/WebhookState.tsx"
import { When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { useResource } from "../Resource.ts"

type Webhook = AnswerOf<"listWebhooks">[number]
type Events = RequestOf<"createWebhook">["payload"]["events"]

interface Opened {
  readonly close: () => void
  readonly done: () => unknown
}

/** The secret of a webhook that was made. A repeated request is not told it. */
const Made = ({ close, of: { id, secret } }: {
  readonly of: Pick<AnswerOf<"createWebhook">, "id" | "secret">
  readonly close: () => void
}): JSX.Element =>
  secret !== null ? <ShownOnce what="the signing secret" secret={secret} close={close} /> : (
    <MadeBefore
      what="The webhook"
      close={close}
      button={<a class="button main" href={`/console/webhooks/${id}`}>Go to the webhook</a>}
    >
      <p>Its secret was in that answer, and is shown once. Make a new one on the webhook's page.</p>
    </MadeBefore>
  )

const Create = ({ close, done }: Opened): JSX.Element => {
  const action = useAction()
  const draft = useDraft("webhook", { url: "https://", description: "", events: [] as ReadonlyArray<string> })
  const made = useSignal<Pick<AnswerOf<"createWebhook">, "id" | "secret"> | null>(null)
  const { description, events, url } = draft.value.value
  const write = () =>
    action.run(async () => {
      const payload = { url, description, events: events as Events }
      made.value = await ask("createWebhook", { payload }, { key: draft.key })
      await done()
    })
  return made.value !== null ? <Made close={close} of={made.value} /> : (
    <Form
      action={action}
      close={close}
      submit="Create the webhook"
      ready={events.length > 0 && url.length > 8}
      write={write}
    >
      <TextField
        action={action}
        autofocus
        label="Address"
        name="url"
        type="url"
        hint="Events are POSTed to it, signed by a secret that you see next. It is https, or http where this installation allows that."
        value={url}
        onInput={(url) => draft.set({ url })}
      />
      <DescriptionField action={action} value={description} onInput={(description) => draft.set({ description })} />
      <EventChoice chosen={events} onChange={(events) => draft.set({ events })} />
      {events.length > 0 ? null : <p class="note">Choose one event at least.</p>}
    </Form>
  )
}

const Buttons = ({ done, of }: { readonly of: Webhook; readonly done: () => unknown }): JSX.Element => {
  const action = useAction()
  const params = { webhook_id: of.id }
  const toggle = async () => {
    const payload = { is_active: !of.is_active }
    if (!await action.run(() => ask("updateWebhook", { params, payload }))) return
    announce(
      of.is_active
        ? "The webhook is paused. What is due waits; what comes meanwhile can be sent later, from its page."
        : "The webhook is active again.",
    )
    await done()
  }
  const test = async () => {
    if (!await action.run((key) => ask("testWebhook", { params, payload: {} }, { key }))) return
    announce("A sample event is on its way.")
  }
  return (
    <div>
      <div class="actions">
        {of.paused_by === "operator"
          ? <span class="note">only an operator can resume it</span>
          : <Do action={action} onDo={toggle}>{of.is_active ? "Pause" : "Resume"}</Do>}
        {of.is_active ? <Do action={action} onDo={test}>Send a test</Do> : null}
      </div>
      <Failure of={action.failure} />
    </div>
  )
}

type Newest = AnswerOf<"deliveryHours">["newest"][number]

/** The newest delivery, with its outcome, and the last success where that is another one. */
const Last = ({ of, success }: {
  readonly of: Newest | undefined
  readonly success: string | null
}): JSX.Element => {
  const failed = of !== undefined && of.status !== "delivered"
  return (
    <>
      {of === undefined ? <span class="note">none</span> : (
        <>
          <DeliveryState of={of.status} />{" "}
          <a href={`/console/deliveries/${of.delivery_id}`}>
            <When at={of.created_at} />
          </a>
        </>
      )}
      {success === null || of !== undefined && !failed ? null : (
        <div class="note">
          last success <When at={success} minute />
        </div>
      )}
    </>
  )
}

const Webhooks = (): JSX.Element => {
  const webhooks = useResource(
    "webhooks",
    (signal) => ask("listWebhooks", { query: { include_paused: true } }, { signal }),
  )
  // A test or an event may arrive at any time.
  useRefresh(webhooks, 5)
  const day = useResource("hours of webhooks", (signal) => ask("deliveryHours", {}, { signal }))
  useRefresh(day, 15)
  const hoursOf = (id: string) => day.value.value?.items.find(({ webhook_id }) => webhook_id === id)?.hours
  const newestOf = (id: string) => day.value.value?.newest.find(({ webhook_id }) => webhook_id === id)
  // A session in a frame reads nothing of the account beside its webhooks.
  const account = embedded ? null : useResource("account", (signal) => ask("getAccount", {}, { signal }))
  const done = async () => void await Promise.all([webhooks.reload(), account?.reload()])
  const quota = account?.value.value?.webhooks
  return (
    <Page
      title="Webhooks"
      actions={
        <DialogButton name="webhook" kind="main" label="Create a webhook…" title="Create a webhook">
          {(close) => <Create close={close} done={done} />}
        </DialogButton>
      }
    >
      {quota === undefined || quota.limit === -1
        ? null
        : <p class="note">{quota.used} of the {quota.limit} webhooks of your plan</p>}
      <Failure of={webhooks.failure} retry={webhooks.reload} />
      {webhooks.value.value === undefined ? null : (
        <Table
          caption="Webhooks, newest first"
          rows={webhooks.value.value}
          keyOf={({ id }) => id}
          empty="There is no webhook yet. Create one to be told of what happens to your mail."
          columns={[
            {
              head: "Address",
              cell: ({ description, id, url }) => (
                <>
                  <a href={`/console/webhooks/${id}`}>{url}</a>
                  {description === null ? null : <div class="note">{description}</div>}
                </>
              ),
            },
            { head: "State", cell: (one) => <Health of={one} /> },
            { head: "Last 24 hours", cell: ({ id }) => <Sparkline hours={hoursOf(id)} /> },
            {
              head: "Last delivery",
              cell: ({ id, last_success_at }) => <Last of={newestOf(id)} success={last_success_at} />,
            },
            {
              head: "Events",
              cell: ({ events }) => (
                <span title={events.join(", ")}>{events.length === 1 ? events[0] : `${events.length} types`}</span>
              ),
            },
            { head: "Actions", cell: (one) => <Buttons of={one} done={done} /> },
          ]}
        />
      )}
    </Page>
  )
}
export default Webhooks
