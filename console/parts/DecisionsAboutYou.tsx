/** Decisions about the visitor, each with the proof that its entry is in the transparency log. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useResource } from "../Resource.ts"
import { CopyButton } from "./Copy.tsx"
import { DialogButton } from "./Dialog.tsx"
import { Failure } from "./Failure.tsx"
import { type Column, Table } from "./Table.tsx"
import { When } from "./When.tsx"

type Decision = AnswerOf<"listDecisionsAboutYou">["items"][number]

const Proof = ({ close, of }: { readonly of: Decision; readonly close: () => void }): JSX.Element => (
  <>
    <p>
      {of.index === null
        ? "No checkpoint has the decision yet: reload the page in a second."
        : `The decision is entry ${of.index} of the log. Who made it can show you the record that the entry commits to.`}
    </p>
    <pre tabIndex={0} aria-label="The proof">{of.proof ?? of.entry}</pre>
    <div class="actions">
      <CopyButton text={JSON.stringify(of, null, 2)} label="Copy with its entry" />
      <button type="button" onClick={close}>Close</button>
    </div>
  </>
)

const columns: ReadonlyArray<Column<Decision>> = [
  { head: "When", cell: ({ at }) => <When at={at} exact /> },
  { head: "Decision", cell: ({ action }) => action },
  { head: "Object", cell: ({ subject }) => <code>{subject}</code> },
  {
    head: "Proof",
    cell: (one) => (
      <DialogButton name={`about ${one.record_id}`} label="Proof…" title="Proof of the decision" reads>
        {(close) => <Proof close={close} of={one} />}
      </DialogButton>
    ),
  },
]

/** The newest decisions about the visitor; nothing where there are none. */
export const DecisionsAboutYou = (): JSX.Element | null => {
  const decisions = useResource(
    "decisions about you",
    (signal) => ask("listDecisionsAboutYou", { query: {} }, { signal }),
  )
  const found = decisions.value.value?.items ?? []
  return (
    <>
      <Failure of={decisions.failure} retry={decisions.reload} />
      {found.length === 0 ? null : (
        <section aria-labelledby="about-you">
          <h2 id="about-you">Decided about you</h2>
          <Table
            caption="Decisions about you, newest first"
            rows={found}
            keyOf={({ record_id }) => record_id}
            empty={null}
            columns={columns}
          />
        </section>
      )}
    </>
  )
}
