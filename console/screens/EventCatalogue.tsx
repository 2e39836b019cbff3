/** The event types: their meaning, a JSON schema and an example of each, and the webhooks that take it. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf, RequestOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { announce } from "../parts/Announce.tsx"
import { CopyButton } from "../parts/Copy.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Form, SelectField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { useResource } from "../Resource.ts"

type EventType = AnswerOf<"listEventTypes">["items"][number]
type Webhook = AnswerOf<"listWebhooks">[number]
type Events = NonNullable<RequestOf<"updateWebhook">["payload"]["events"]>

/** Lets one more webhook take the events of a type. */
const Subscribe = ({ close, done, of: { event_type }, webhooks }: {
  readonly of: EventType
  /** Those that do not take it. */
  readonly webhooks: ReadonlyArray<Webhook>
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const draft = useDraft(`subscribe ${event_type}`, { webhook_id: webhooks[0]?.id ?? "" })
  const { webhook_id } = draft.value.value
  const chosen = webhooks.find(({ id }) => id === webhook_id)
  const write = async () => {
    if (chosen === undefined) return
    const events: Events = [...chosen.events, event_type]
    if (!await action.run(() => ask("updateWebhook", { params: { webhook_id }, payload: { events } }))) return
    announce(`${chosen.url} takes ${event_type} from now on.`)
    close()
    await done()
  }
  return (
    <Form action={action} close={close} submit="Subscribe it" ready={chosen !== undefined} write={write}>
      <SelectField
        label="Webhook"
        value={webhook_id}
        options={webhooks.map(({ id, url }) => [id, url] as const)}
        onChange={(webhook_id) => draft.set({ webhook_id })}
      />
    </Form>
  )
}

/** Members of an event's metadata, as a list of names. */
const Metadata = ({ of }: { readonly of: ReadonlyArray<string> }): JSX.Element => (
  <p>
    Its <code>metadata</code> has {["subject", "tag", ...of].map((name, n) => (
      <span key={name}>
        {n === 0 ? "" : ", "}
        <code>{name}</code>
      </span>
    ))}
  </p>
)

const Card = ({ done, of, webhooks }: {
  readonly of: EventType
  readonly webhooks: ReadonlyArray<Webhook>
  readonly done: () => unknown
}): JSX.Element => {
  const { event_type, example, json_schema, meaning, metadata_fields, webhook_ids } = of
  const body = JSON.stringify(example, null, 2)
  const schema = JSON.stringify(json_schema, null, 2)
  const others = webhooks.filter(({ id }) => !webhook_ids.includes(id))
  return (
    <li class="card">
      <h2 id={event_type}>{event_type}</h2>
      <p>{meaning}.</p>
      <Metadata of={metadata_fields} />
      <p>
        {webhook_ids.length === 0 ? <span class="note">None of your webhooks takes it.</span> : "Taken by "}
        {webhook_ids.map((id, n) => (
          <span key={id}>
            {n === 0 ? "" : ", "}
            <a href={`/console/webhooks/${id}`}>{webhooks.find((one) => one.id === id)?.url ?? id}</a>
          </span>
        ))}
      </p>
      {others.length === 0 ? null : (
        <div class="actions">
          <DialogButton
            name={`subscribe ${event_type}`}
            label="Subscribe a webhook…"
            title={`Let a webhook take ${event_type}`}
          >
            {(close) => <Subscribe close={close} done={done} of={of} webhooks={others} />}
          </DialogButton>
        </div>
      )}
      <details>
        <summary>An example</summary>
        <pre tabIndex={0} aria-label={`An example of ${event_type}`}>{body}</pre>
        <CopyButton text={body} label="Copy example" />
      </details>
      <details>
        <summary>Its JSON schema</summary>
        <pre tabIndex={0} aria-label={`The JSON schema of ${event_type}`}>{schema}</pre>
        <CopyButton text={schema} label="Copy schema" />
      </details>
    </li>
  )
}

const EventCatalogue = (): JSX.Element => {
  const types = useResource("event types", (signal) => ask("listEventTypes", {}, { signal }))
  const webhooks = useResource(
    "webhooks",
    (signal) => ask("listWebhooks", { query: { include_paused: true } }, { signal }),
  )
  const done = () => Promise.all([types.reload(), webhooks.reload()])
  return (
    <Page title="Event types">
      <Failure of={types.failure} retry={types.reload} />
      <ul class="cards wide">
        {types.value.value?.items.map((one) => (
          <Card key={one.event_type} done={done} of={one} webhooks={webhooks.value.value ?? []} />
        ))}
      </ul>
    </Page>
  )
}
export default EventCatalogue
