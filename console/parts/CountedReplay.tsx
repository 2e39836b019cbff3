/**
 * The form of a replay of many deliveries: it counts what would be sent again, sends it after that, and shows how far it
 * has come. The choices and the requests are the caller's.
 */
import { type Signal, useSignal } from "@preact/signals"
import type { ComponentChildren, JSX } from "preact"
import type { Action } from "../Action.ts"
import { announce } from "./Announce.tsx"
import { Form, SelectField } from "./Form.tsx"
import { ReplayProgress } from "./ReplayProgress.tsx"

const spans = [["1", "The last hour"], ["24", "24 hours"], ["168", "7 days"], ["720", "30 days"]] as const

/** The span of a replay that begins so many hours before now, as the requests take it. */
export const spanOf = (hours: string, until?: string): { readonly since: string; readonly until: string } => {
  const now = new Date()
  return {
    since: new Date(now.getTime() - Number(hours) * 3_600_000).toISOString(),
    until: until ?? now.toISOString(),
  }
}

export const WithinField = ({ label, onChange, value }: {
  readonly label: string
  readonly value: string
  readonly onChange: (hours: string) => void
}): JSX.Element => <SelectField label={label} value={value} options={spans} onChange={onChange} />

/** What was counted, or sent since then. */
export interface Counted<Query> {
  readonly query: Query
  readonly n: number
}

/** The answer to the start of a replay: the number that it sends again, and the time of which that counts. */
interface Started {
  readonly n: number
  readonly asked_at: string
}

interface Parts<Query> {
  readonly action: Action
  /** Null until something is counted; a choice that changes makes it null again. */
  readonly counted: Signal<Counted<Query> | null>
  /** The choices as the requests take them. */
  readonly query: () => Query
  /** The choices of now, also where the form was not drawn anew yet: an answer to other ones is dropped. */
  readonly chosen: () => object
  /** Whether the choices are enough for a count. */
  readonly ready: boolean
  /** Counts what a replay would send, or what the replay of `asked_at` has yet to send. */
  readonly count: (
    query: Query & { readonly asked_at?: string },
    options?: { readonly signal: AbortSignal },
  ) => Promise<{ readonly deliveries: number }>
  readonly send: (query: Query) => Promise<Started>
  /** Whether a count tells how far the replay has come. */
  readonly follows?: boolean
  /** Between two counts. */
  readonly seconds: number
  /** Says of a count that is not null what it means. */
  readonly found: (n: number) => string
  /** Asks for more before the act, where it is asked for, and says whether it is given. */
  readonly reason?: { readonly field: ComponentChildren; readonly given: boolean }
  /** The fields of the choices. */
  readonly children: ComponentChildren
  readonly close: () => void
  readonly done: () => unknown
}

export const CountedReplay = <Query extends object>(parts: Parts<Query>): JSX.Element => {
  const { action, children, chosen, close, count, counted, done, follows = true, query, ready, reason, send } = parts
  const asked_at = useSignal<string | null>(null)
  const look = () =>
    action.run(async () => {
      const [asked, choice] = [query(), chosen()]
      const { deliveries } = await count(asked)
      // The number is of choices that have changed since.
      if (chosen() !== choice) return
      counted.value = { query: asked, n: deliveries }
    })
  const found = counted.value
  const start = async () => {
    const asked = found!.query
    let started: Started | undefined
    const write = async () => {
      started = await send(asked)
      // What died since the count is sent, too: the number is the answer's.
      counted.value = { query: asked, n: started.n }
    }
    if (!await action.run(write)) return
    announce("They are sent again, in the background.")
    if (follows) asked_at.value = started!.asked_at
    else close()
    await done()
  }
  if (asked_at.value !== null && found !== null) {
    const sent = { ...found.query, asked_at: asked_at.value }
    return (
      <ReplayProgress
        of={found.n}
        left={async (signal) => (await count(sent, { signal })).deliveries}
        seconds={parts.seconds}
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
      ready={found === null ? ready : found.n > 0 && reason?.given !== false}
      write={found === null ? look : start}
    >
      {children}
      {found === null ? null : (
        <>
          <p role="status">{parts.found(found.n)}</p>
          {reason?.field}
        </>
      )}
    </Form>
  )
}
