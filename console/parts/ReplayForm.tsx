/** Sends many deliveries of a webhook again: of one event type or of all, after a count of what would be sent. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { RequestOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { useResource } from "../Resource.ts"
import { type Counted, CountedReplay, spanOf, WithinField } from "./CountedReplay.tsx"
import { Failure } from "./Failure.tsx"
import { SelectField } from "./Form.tsx"
import { When } from "./When.tsx"

const kinds = [["dead_letter", "Dead letters"], ["delivered", "What was delivered"], [
  "missed",
  "What came while it was paused",
]] as const

type Kind = (typeof kinds)[number][0]
type EventType = NonNullable<RequestOf<"replayWebhook">["payload"]["event_type"]>

/** The choices as both requests take them. */
interface Asked {
  readonly since: string
  readonly until: string
  readonly status: Kind
  readonly event_type?: EventType
}

/** The form's first choices, and its words. */
export interface ReplayChoice {
  /** The webhooks to choose from; the first one where none is named. */
  readonly webhooks: ReadonlyArray<{ readonly id: string; readonly url: string }>
  readonly webhook_id?: string | undefined
  readonly event_type?: string | undefined
  readonly kind?: Kind
  readonly hours?: string
  /** The end of the span; now where it is left out. */
  readonly until?: string | undefined
}

/** The types with a name for all of them, as the options of a list. */
const EventTypeField = ({ onChange, value }: {
  readonly value: string
  readonly onChange: (value: string) => void
}): JSX.Element => {
  const types = useResource("event types", (signal) => ask("listEventTypes", {}, { signal }))
  const items = (types.value.value?.items ?? []).map(({ event_type }) => event_type as string)
  // The type of a link is chosen before the list of types is there.
  const names = value === "" || items.includes(value) ? items : [value, ...items]
  return (
    <>
      <Failure of={types.failure} retry={types.reload} />
      <SelectField
        label="Event type"
        value={value}
        options={[["", "Any"], ...names.map((name) => [name, name] as const)]}
        onChange={onChange}
      />
    </>
  )
}

export const ReplayForm = ({ close, done, of }: {
  readonly of: ReplayChoice
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const draft = useDraft("replay", {
    webhook: of.webhook_id ?? of.webhooks[0]?.id ?? "",
    hours: of.hours ?? "24",
    kind: of.kind ?? "dead_letter" as Kind,
    type: of.event_type ?? "",
  })
  const counted = useSignal<Counted<Asked> | null>(null)
  const { hours, kind, type, webhook } = draft.value.value
  const params = { webhook_id: webhook }
  const changed = (change: Partial<typeof draft.value.value>) => {
    counted.value = null
    draft.set(change)
  }
  return (
    <CountedReplay
      action={action}
      counted={counted}
      ready={webhook !== ""}
      chosen={() => draft.value.value}
      query={() => ({
        ...spanOf(hours, of.until),
        status: kind,
        ...(type === "" ? {} : { event_type: type as EventType }),
      })}
      count={(query, options) => ask("countReplay", { params, query }, options)}
      send={async (payload) => {
        const { asked_at, replayed } = await ask("replayWebhook", { params, payload }, { key: draft.key })
        return { n: replayed, asked_at }
      }}
      // What was delivered counts again as soon as it arrives again: of that no count tells how far it is.
      follows={kind !== "delivered"}
      // Ten counts a minute are allowed, beside the replays.
      seconds={8}
      found={(n) =>
        n === 0 ? "There is none in this span." : `${n} ${n === 1 ? "delivery" : "deliveries"} will be sent again.`}
      close={close}
      done={done}
    >
      {of.webhooks.length < 2 ? null : (
        <SelectField
          label="Of the webhook"
          value={webhook}
          options={of.webhooks.map(({ id, url }) => [id, url] as const)}
          onChange={(webhook) => changed({ webhook })}
        />
      )}
      <SelectField label="Which" value={kind} options={kinds} onChange={(kind) => changed({ kind: kind as Kind })} />
      <EventTypeField value={type} onChange={(type) => changed({ type })} />
      <WithinField label="Made within" value={hours} onChange={(hours) => changed({ hours })} />
      {of.until === undefined ? null : (
        <p class="note">
          Up to <When at={of.until} exact />, as the list.
        </p>
      )}
    </CountedReplay>
  )
}
