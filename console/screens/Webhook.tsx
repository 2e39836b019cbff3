/** One webhook: its settings, its secret, its newest deliveries, sending a span again, and its end. */
import { useSignal } from "@preact/signals"
import type { ComponentChildren, JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf, RequestOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { go, type Params } from "../Location.ts"
import { AttemptFigures } from "../parts/AttemptFigures.tsx"
import { announce } from "../parts/Announce.tsx"
import { CopyButton, MadeBefore, ShownOnce } from "../parts/Copy.tsx"
import { DeliveryTable } from "../parts/DeliveryState.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { EventChoice } from "../parts/EventChoice.tsx"
import { Failure } from "../parts/Failure.tsx"
import { CheckField, Form, SelectField, TextField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { ReplayForm } from "../parts/ReplayForm.tsx"
import { EditBasicAuth, EditHeaders } from "../parts/RequestHeaders.tsx"
import { DescriptionField, Health } from "../parts/WebhookState.tsx"
import { When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { type Resource, useResource } from "../Resource.ts"

type Webhook = AnswerOf<"getWebhook">
type Events = NonNullable<RequestOf<"updateWebhook">["payload"]["events"]>

interface Opened {
  readonly of: Webhook
  readonly close: () => void
  readonly done: () => unknown
}

const Edit = ({ close, done, of }: Opened): JSX.Element => {
  const action = useAction()
  const draft = useDraft("edit", {
    url: of.url,
    description: of.description ?? "",
    events: of.events as ReadonlyArray<string>,
    honor_retry_after: of.honor_retry_after,
    rate_limit: of.rate_limit?.toString() ?? "",
  })
  const { description, events, honor_retry_after, rate_limit, url } = draft.value.value
  const write = async () => {
    const payload = { url, description, events: events as Events, honor_retry_after, rate_limit: Number(rate_limit) }
    if (!await action.run(() => ask("updateWebhook", { params: { webhook_id: of.id }, payload }))) return
    announce("The webhook is changed.")
    close()
    await done()
  }
  return (
    <Form action={action} close={close} submit="Save" ready={events.length > 0} write={write}>
      <TextField
        action={action}
        autofocus
        label="Address"
        name="url"
        type="url"
        value={url}
        onInput={(url) => draft.set({ url })}
      />
      <DescriptionField action={action} value={description} onInput={(description) => draft.set({ description })} />
      <EventChoice chosen={events} onChange={(events) => draft.set({ events })} />
      <CheckField
        label={
          <>
            Wait for as long as <code>Retry-After</code> of a failed answer asks, a day at most
          </>
        }
        checked={honor_retry_after}
        onChange={(honor_retry_after) => draft.set({ honor_retry_after })}
      />
      <TextField
        action={action}
        hint="Up to 1,000; empty for any number."
        label="Deliveries a second"
        name="rate_limit"
        required={false}
        type="number"
        value={rate_limit}
        onInput={(rate_limit) => draft.set({ rate_limit })}
      />
    </Form>
  )
}

const overlaps = [["86400", "For a day"], ["3600", "For an hour"], ["604800", "For a week"], [
  "0",
  "Not at all",
]] as const

const Rotate = ({ close, done, of }: Opened): JSX.Element => {
  const action = useAction()
  const draft = useDraft("rotate", { overlap: "86400" })
  const made = useSignal<{ readonly secret: string | null } | null>(null)
  const { overlap } = draft.value.value
  const write = () =>
    action.run(async () => {
      const payload = { overlap_seconds: Number(overlap) }
      made.value = await ask("rotateSecret", { params: { webhook_id: of.id }, payload }, { key: draft.key })
      await done()
    })
  const secret = made.value?.secret ?? null
  return secret !== null
    ? <ShownOnce what="the new secret" secret={secret} close={close} />
    : made.value !== null
    ? (
      <MadeBefore what="A new secret" close={close}>
        <p>It was in that answer, and is shown once. Close this, and make another one.</p>
      </MadeBefore>
    )
    : (
      <Form action={action} close={close} submit="Make a new secret" write={write}>
        <SelectField
          label="The old secret signs beside it"
          value={overlap}
          options={overlaps}
          onChange={(overlap) => draft.set({ overlap })}
        />
        <p class="note">Receivers that know either secret accept events in this time.</p>
      </Form>
    )
}

const Delete = ({ close, of }: Opened): JSX.Element => {
  const action = useAction()
  const draft = useDraft("delete", { url: "" })
  const { url } = draft.value.value
  const write = () =>
    action.run(async () => {
      await ask("deleteWebhook", { params: { webhook_id: of.id } })
      announce("The webhook is deleted.")
      go("/console/webhooks")
    })
  return (
    <Form action={action} close={close} kind="stop" submit="Delete it for good" ready={url === of.url} write={write}>
      <p>Deliveries that wait are cancelled. Type the address to go on.</p>
      <p>
        <code>{of.url}</code>
      </p>
      <TextField
        autofocus
        label="Its address"
        name="confirm"
        value={url}
        onInput={(url) =>
          draft.set({ url })}
      />
    </Form>
  )
}

/** Sends a sample of one event type, also of one that the webhook does not take. */
const Test = ({ close, done, of }: Opened): JSX.Element => {
  const action = useAction()
  const types = useResource("event types", (signal) => ask("listEventTypes", {}, { signal }))
  const draft = useDraft("test", { event: "email.delivered" as Events[number] })
  const { event } = draft.value.value
  const items = types.value.value?.items ?? []
  const chosen = items.find(({ event_type }) => event_type === event)
  const write = async () => {
    const asked = { params: { webhook_id: of.id }, payload: { event } }
    if (!await action.run(() => ask("testWebhook", asked, { key: draft.key }))) return
    announce("A sample event is on its way.")
    close()
    await done()
  }
  return (
    <Form action={action} close={close} submit="Send the test" ready={chosen !== undefined} write={write}>
      <Failure of={types.failure} retry={types.reload} />
      <SelectField
        label="Event"
        value={event}
        options={items.map(({ event_type }) => [event_type, event_type] as const)}
        onChange={(event) => draft.set({ event: event as Events[number] })}
      />
      {chosen === undefined ? null : <p class="note">{chosen.meaning}.</p>}
      {of.events.includes(event)
        ? null
        : <p class="note">This webhook does not take events of this type. The test is sent nevertheless.</p>}
    </Form>
  )
}

const Replay = ({ close, done, of }: Opened): JSX.Element => (
  <ReplayForm of={{ webhooks: [of] }} close={close} done={done} />
)

const Newest = ({ of }: { readonly of: Webhook }): JSX.Element => {
  const deliveries = useResource(
    `newest of ${of.id}`,
    (signal) => ask("listAllDeliveries", { query: { webhook_id: of.id, limit: 10 } }, { signal }),
  )
  useRefresh(deliveries, 5)
  return (
    <section aria-labelledby="newest">
      <h2 id="newest">Newest deliveries</h2>
      <Failure of={deliveries.failure} retry={deliveries.reload} />
      {deliveries.value.value === undefined ? null : (
        <DeliveryTable
          done={deliveries.reload}
          rows={deliveries.value.value.items}
          empty="Nothing was sent to it yet. Send a test to see how it answers."
        />
      )}
      <p>
        <a href={`/console/deliveries?webhook_id=${of.id}`}>All deliveries of this webhook</a>
      </p>
    </section>
  )
}

const Attempts = ({ of }: { readonly of: Webhook }): JSX.Element => {
  const params = { webhook_id: of.id }
  const stats = useResource(
    `stats of ${of.id}`,
    (signal) => ask("oneWebhookStats", { params, query: {} }, { signal }),
  )
  useRefresh(stats, 30)
  return <AttemptFigures stats={stats} nothing="Nothing was sent to it in the last day." />
}

/** A fact of the webhook, with the button that changes it. */
const Changeable = ({ button, children, name }: {
  readonly name: string
  readonly children: ComponentChildren
  readonly button: JSX.Element
}): JSX.Element => (
  <div>
    <dt>{name}</dt>
    <dd class="changeable">
      <div>{children}</div>
      {button}
    </dd>
  </div>
)

type Button = (
  name: string,
  label: string,
  title: string,
  Content: (opened: Opened) => JSX.Element,
  kind?: "stop",
) => JSX.Element

const Facts = ({ button, of }: { readonly of: Webhook; readonly button: Button }): JSX.Element => (
  <dl>
    <div>
      <dt>State</dt>
      <dd>
        <Health of={of} />
      </dd>
    </div>
    <div>
      <dt>Last success</dt>
      <dd>
        <When at={of.last_success_at} exact never="none" minute />
      </dd>
    </div>
    {of.description === null ? null : (
      <div>
        <dt>Description</dt>
        <dd>{of.description}</dd>
      </div>
    )}
    <div>
      <dt>Events</dt>
      <dd>{of.events.join(", ")}</dd>
    </div>
    <Changeable
      name="Signing secret"
      button={button("rotate", "New secret…", "Make a new signing secret", Rotate)}
    >
      {of.overlap_until === null ? "one, shown once when it was made" : (
        <>
          two, the old one until <When at={of.overlap_until} exact />
        </>
      )}
      {of.secret_made_at === null ? null : (
        <div class="note">
          made <When at={of.secret_made_at} />
        </div>
      )}
    </Changeable>
    <Changeable
      name="Custom headers"
      button={button("headers", "Headers…", "Custom headers of its requests", EditHeaders)}
    >
      {of.header_names.join(", ") || <span class="note">none</span>}
    </Changeable>
    <Changeable
      name="Basic authentication"
      button={button("basic-auth", "Credentials…", "Basic authentication of its requests", EditBasicAuth)}
    >
      {of.basic_auth ? "with every request" : <span class="note">none</span>}
    </Changeable>
    {of.honor_retry_after
      ? (
        <div>
          <dt>Retries</dt>
          <dd>
            wait for as long as <code>Retry-After</code> asks
          </dd>
        </div>
      )
      : null}
    {of.rate_limit === null ? null : (
      <div>
        <dt>Deliveries a second</dt>
        <dd>{of.rate_limit} at most</dd>
      </div>
    )}
    <div>
      <dt>Created</dt>
      <dd>
        <When at={of.created_at} exact />
      </dd>
    </div>
    <div>
      <dt>Changed</dt>
      <dd>
        <When at={of.updated_at} exact />
      </dd>
    </div>
    <div>
      <dt>Webhook</dt>
      <dd>
        <code>{of.id}</code> <CopyButton text={of.id} label="Copy id" />
      </dd>
    </div>
  </dl>
)

const One = ({ of, resource }: { readonly of: Webhook; readonly resource: Resource<Webhook> }): JSX.Element => {
  const done = resource.reload
  const button: Button = (name, label, title, Content, kind) => (
    <DialogButton name={name} label={label} title={title} {...(kind === undefined ? {} : { kind })}>
      {(close) => <Content of={of} close={close} done={done} />}
    </DialogButton>
  )
  return (
    <Page
      title={of.url}
      up={["/console/webhooks", "Webhooks"]}
      actions={
        <>
          {of.is_active ? button("test", "Send a test…", "Send a test event", Test) : null}
          {button("edit", "Edit…", "Edit the webhook", Edit)}
          {button("replay", "Send again…", "Send deliveries again", Replay)}
          {button("delete", "Delete…", "Delete the webhook", Delete, "stop")}
        </>
      }
    >
      <Facts button={button} of={of} />
      <Attempts of={of} />
      <Newest of={of} />
    </Page>
  )
}

const WebhookPage = ({ params }: { readonly params: Params }): JSX.Element => {
  const webhook_id = params["webhook_id"]!
  const webhook = useResource(
    `webhook ${webhook_id}`,
    (signal) => ask("getWebhook", { params: { webhook_id } }, { signal }),
  )
  useRefresh(webhook, 5)
  const one = webhook.value.value
  return one !== undefined
    ? <One of={one} resource={webhook} />
    : (
      <Page title="Webhook" up={["/console/webhooks", "Webhooks"]}>
        <Failure of={webhook.failure} retry={webhook.reload} />
      </Page>
    )
}
export default WebhookPage
