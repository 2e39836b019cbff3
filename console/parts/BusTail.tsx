/** The messages that pass on the bus, while an operator follows them. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useLiveStream } from "../LiveStream.ts"
import { setQuery } from "../Location.ts"
import { CopyButton } from "./Copy.tsx"
import { CopyCommand } from "./CopyCommand.tsx"
import { CheckField } from "./Form.tsx"
import { LiveState } from "./LiveState.tsx"
import { quoted } from "./Quoted.ts"
import { Table } from "./Table.tsx"
import { filterOf, TextFilter } from "./TextFilter.tsx"
import { When } from "./When.tsx"

/** Rows that stay on the page. */
const most = 100

interface Message {
  readonly at: string
  readonly stream: string
  readonly seq: number
  readonly subject: string
  readonly bytes: number
  readonly payload: string | null
  readonly cut: boolean
}

interface Passed {
  readonly items: ReadonlyArray<Message>
  readonly skipped: boolean
  readonly reached: boolean
}

const number = new Intl.NumberFormat("en")

/** Every subject of every stream. */
const everything = ">"

/** The commands that follow the same subject in a shell. */
const Commands = ({ subject }: { readonly subject: string }): JSX.Element => {
  const nats = `nats sub ${quoted(subject)}`
  return (
    <>
      <CopyCommand
        command={subject === everything ? "tail" : `tail ${quoted(subject)}`}
        what="To follow it in a shell"
      />
      <p class="note">
        With the broker's own client and a user of it: <code>{nats}</code>{" "}
        <CopyButton text={nats} label="Copy command" />
      </p>
    </>
  )
}

const Payload = ({ of: { cut, payload } }: { readonly of: Message }): JSX.Element =>
  payload === null ? <span class="note">not shown here</span> : <code>{payload}{cut ? "…" : ""}</code>

const Followed = ({ subject }: { readonly subject: string }): JSX.Element => {
  const messages = useSignal<ReadonlyArray<Message>>([])
  const said = useSignal({ skipped: false, reached: true, refused: false })
  const cut = useLiveStream({
    path: `/v1/operations/tail?subject=${encodeURIComponent(subject)}`,
    subjects: ["following", "messages"],
    hear: (event, data) => {
      if (event !== "messages") return
      const { items, reached, skipped } = data as Passed
      messages.value = [...items.toReversed(), ...messages.value].slice(0, most)
      said.value = { skipped: said.value.skipped || skipped, reached, refused: false }
    },
    refused: () => said.value = { ...said.value, refused: true },
  })
  return (
    <>
      {said.value.refused
        ? <p class="banner bad">No stream takes this subject, or you follow three subjects already.</p>
        : <LiveState cut={cut} />}
      {said.value.reached ? null : <p class="banner bad">The broker does not answer now.</p>}
      {said.value.skipped
        ? (
          <p class="note">
            More passes than is shown: 50 messages of each stream a second. A narrower subject shows all.
          </p>
        )
        : null}
      <Table
        caption={`Messages on ${subject}, newest first`}
        rows={messages.value}
        keyOf={({ seq, stream }) => `${stream} ${seq}`}
        empty="Nothing has passed since this page follows."
        columns={[
          { head: "When", cell: ({ at }) => <When at={at} exact /> },
          {
            head: "Subject",
            cell: ({ subject }) => (
              <>
                <code>{subject}</code> <CopyButton text={subject} label="Copy subject" />
              </>
            ),
          },
          { head: "Stream", cell: ({ seq, stream }) => `${stream}, ${number.format(seq)}` },
          { head: "Bytes", number: true, cell: ({ bytes }) => number.format(bytes) },
          { head: "Payload", cell: (message) => <Payload of={message} /> },
        ]}
      />
    </>
  )
}

/** Off until it is asked for: each look costs the broker a little. */
export const BusTail = (): JSX.Element => {
  const on = filterOf("follow") === "on"
  const subject = filterOf("subject") ?? everything
  return (
    <section aria-labelledby="tail">
      <h2 id="tail">What passes</h2>
      <div class="filters">
        <TextFilter label="Subject" name="subject" placeholder="webhooks.v1.dead.*" />
        <CheckField label="Follow" checked={on} onChange={(on) => setQuery({ follow: on ? "on" : undefined })} />
      </div>
      {on ? <Followed key={subject} subject={subject} /> : null}
      <Commands subject={subject} />
    </section>
  )
}
