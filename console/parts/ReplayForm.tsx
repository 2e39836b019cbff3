/** Sends many deliveries of a webhook again: of one event type or of all, after a count of what would be sent. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { RequestOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { useResource } from "../Resource.ts"
import { announce } from "./Announce.tsx"
import { Failure } from "./Failure.tsx"
import { Form, SelectField } from "./Form.tsx"
import { ReplayProgress } from "./ReplayProgress.tsx"
import { When } from "./When.tsx"

const spans = [["1", "The last hour"], ["24", "24 hours"], ["168", "7 days"], ["720", "30 days"]] as const
const kinds = [["dead_letter", "Dead letters"], ["delivered", "What was delivered"], [
  "missed",
  "What came while it was paused",
]] as const

type Kind = (typeof kinds)[number][0]
type EventType = NonNullable<RequestOf<"replayWebhook">["payload"]["event_type"]>

/** What was counted, as both requests take it. */
interface Counted {
  readonly query: {
    readonly since: string
    readonly until: string
    readonly status: Kind
    readonly event_type?: EventType
  }
  readonly n: number
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

/** Counts a span and then sends it again; the progress is of the number that the replay answers. */
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
  const counted = useSignal<Counted | null>(null)
  const sending = useSignal(false)
  const { hours, kind, type, webhook } = draft.value.value
  const params = { webhook_id: webhook }
  const changed = (change: Partial<typeof draft.value.value>) => {
    counted.value = null
    draft.set(change)
  }
  const look = () =>
    action.run(async () => {
      const now = new Date()
      const query = {
        since: new Date(now.getTime() - Number(hours) * 3_600_000).toISOString(),
        until: of.until ?? now.toISOString(),
        status: kind,
        ...(type === "" ? {} : { event_type: type as EventType }),
      }
      const { deliveries } = await ask("countReplay", { params, query })
      counted.value = { query, n: deliveries }
    })
  const found = counted.value
  const send = async () => {
    const query = found!.query
    const write = async () => {
      const { replayed } = await ask("replayWebhook", { params, payload: query }, { key: draft.key })
      // What died since the count is sent, too: the number is the answer's.
      counted.value = { query, n: replayed }
    }
    if (!await action.run(write)) return
    announce("They are sent again, in the background.")
    // What was delivered counts again as soon as it arrives again: of that no count tells how far it is.
    if (kind === "delivered") close()
    else sending.value = true
    await done()
  }
  if (sending.value && found !== null) {
    return (
      <ReplayProgress
        of={found.n}
        left={async (signal) => (await ask("countReplay", { params, query: found.query }, { signal })).deliveries}
        // Ten counts a minute are allowed, beside the replays.
        seconds={8}
        done={done}
        close={close}
      />
    )
  }
  return (
    <Form
      action={action}
      close={close}
      submit={found === null ? "Count" : `Send ${found.n} again`}
      ready={found === null ? webhook !== "" : found.n > 0}
      write={found === null ? look : send}
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
      <SelectField label="Made within" value={hours} options={spans} onChange={(hours) => changed({ hours })} />
      {of.until === undefined ? null : (
        <p class="note">
          Up to <When at={of.until} exact />, as the list.
        </p>
      )}
      {found === null ? null : (
        <p role="status">
          {found.n === 0
            ? "There is none in this span."
            : `${found.n} ${found.n === 1 ? "delivery" : "deliveries"} will be sent again.`}
        </p>
      )}
    </Form>
  )
}
