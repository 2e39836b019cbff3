/** Who did what, when and with which outcome: of everybody for operators, one's own for everyone else. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { setQuery } from "../Location.ts"
import { Badge, type Tone } from "../parts/Badge.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { Failure } from "../parts/Failure.tsx"
import { SelectField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { Span, spanStart } from "../parts/Span.tsx"
import { type Column, Table } from "../parts/Table.tsx"
import { filterOf, pageAfter, TextFilter } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { here } from "../Location.ts"
import { useResource } from "../Resource.ts"

type OwnRecord = AnswerOf<"listOwnAudit">["items"][number]
type AnyRecord = AnswerOf<"listAudit">["items"][number]

const tones: Readonly<Record<OwnRecord["outcome"], Tone>> = { done: "good", refused: "warn", failed: "bad" }

const columns: ReadonlyArray<Column<OwnRecord>> = [
  { head: "When", cell: ({ at }) => <When at={at} exact /> },
  { head: "Action", cell: ({ action }) => action },
  { head: "Object", cell: ({ route, subject }) => <code>{subject ?? route ?? "none"}</code> },
  {
    head: "Outcome",
    cell: ({ code, outcome, status }) => (
      <>
        <Badge tone={tones[outcome]}>{outcome}</Badge> {[status, code].filter((one) => one !== null).join(" ")}
      </>
    ),
  },
  { head: "Request", cell: ({ request_id }) => request_id === null ? "none" : <code>{request_id}</code> },
]

const actor: Column<AnyRecord> = {
  head: "Actor",
  cell: ({ actor, details }) => (
    <>
      <code>{actor ?? "unknown"}</code>
      {Object.keys(details).length === 0 ? null : (
        <details>
          <summary>Details</summary>
          <pre tabIndex={0}>{JSON.stringify(details, null, 2)}</pre>
        </details>
      )}
    </>
  ),
}

const OutcomeFilter = (): JSX.Element => (
  <SelectField
    label="Outcome"
    value={filterOf("outcome") ?? ""}
    onChange={(outcome) => setQuery({ outcome, after: undefined })}
    options={[["", "Any"], ["done", "Done"], ["refused", "Refused"], ["failed", "Failed"]]}
  />
)

const query = () => ({
  action: filterOf("action"),
  outcome: filterOf("outcome"),
  code: filterOf("code"),
  request_id: filterOf("request_id"),
  since: spanStart(),
  after_id: filterOf("after"),
})

const Older = ({ after }: { readonly after: string | null | undefined }): JSX.Element | null =>
  after == null ? null : (
    <p>
      <a href={pageAfter(after)}>Older records</a>
    </p>
  )

/** What the visitor did and tried. */
export const OwnAudit = (): JSX.Element => {
  const records = useResource(
    `own audit ${here.value.search}`,
    (signal) => ask("listOwnAudit", { query: query() }, { signal }),
  )
  const found = records.value.value
  return (
    <Page title="Your activity">
      <div class="filters">
        <TextFilter label="Action" name="action" />
        <OutcomeFilter />
        <Span />
      </div>
      <Failure of={records.failure} retry={records.reload} />
      {found === undefined ? null : (
        <Table
          caption="What you did and tried, newest first"
          rows={found.items}
          keyOf={({ id }) => id}
          empty="No record fits."
          columns={columns}
        />
      )}
      <Older after={found?.next_after_id} />
    </Page>
  )
}

const Audit = (): JSX.Element => {
  const records = useResource(
    `audit ${here.value.search}`,
    (signal) =>
      ask("listAudit", { query: { ...query(), actor: filterOf("actor"), subject: filterOf("subject") } }, { signal }),
  )
  const found = records.value.value
  const subject = filterOf("subject")
  const request = filterOf("request_id")
  return (
    <Page title="Audit">
      <div class="filters">
        <TextFilter label="Actor" name="actor" placeholder="person:…" />
        <TextFilter label="Action" name="action" />
        <TextFilter label="Object" name="subject" placeholder="webhook:…" />
        <TextFilter label="Code" name="code" />
        <TextFilter label="Request" name="request_id" />
        <OutcomeFilter />
        <Span />
      </div>
      <Failure of={records.failure} retry={records.reload} />
      {found === undefined ? null : (
        <Table
          caption="Audit records, newest first"
          rows={found.items}
          keyOf={({ id }) => id}
          empty="No record fits."
          columns={[columns[0]!, actor, ...columns.slice(1)]}
        />
      )}
      <Older after={found?.next_after_id} />
      <CopyCommand
        command={`audit${subject === undefined ? "" : ` --subject ${subject}`}${
          request === undefined ? "" : ` --request-id ${request}`
        }`}
      />
    </Page>
  )
}
export default Audit
