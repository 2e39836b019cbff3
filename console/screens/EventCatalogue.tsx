/** The event types: their meaning, an example of each, and the webhooks that take it. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { CopyButton } from "../parts/Copy.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { useResource } from "../Resource.ts"

const EventCatalogue = (): JSX.Element => {
  const types = useResource("event types", (signal) => ask("listEventTypes", {}, { signal }))
  const webhooks = useResource(
    "webhooks",
    (signal) => ask("listWebhooks", { query: { include_paused: true } }, { signal }),
  )
  const urlOf = (id: string) => webhooks.value.value?.find((one) => one.id === id)?.url ?? id
  return (
    <Page title="Event types">
      <Failure of={types.failure} retry={types.reload} />
      <ul class="cards wide">
        {types.value.value?.items.map(({ event_type, example, meaning, webhook_ids }) => {
          const body = JSON.stringify(example, null, 2)
          return (
            <li key={event_type} class="card">
              <h2 id={event_type}>{event_type}</h2>
              <p>{meaning}.</p>
              <p>
                {webhook_ids.length === 0 ? <span class="note">None of your webhooks takes it.</span> : "Taken by "}
                {webhook_ids.map((id, n) => (
                  <span key={id}>
                    {n === 0 ? "" : ", "}
                    <a href={`/console/webhooks/${id}`}>{urlOf(id)}</a>
                  </span>
                ))}
              </p>
              <details>
                <summary>An example</summary>
                <pre tabIndex={0} aria-label={`An example of ${event_type}`}>{body}</pre>
                <CopyButton text={body} label="Copy example" />
              </details>
            </li>
          )
        })}
      </ul>
    </Page>
  )
}
export default EventCatalogue
