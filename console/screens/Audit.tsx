/** The audit: operators see all records, auditors the evidence of who may act, other people their own acts. */
import type { JSX } from "preact"
import { useAccountNames } from "../AccountNames.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { setQuery } from "../Location.ts"
import { Badge, type Tone } from "../parts/Badge.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { DecisionProof } from "../parts/DecisionProof.tsx"
import { DecisionsAboutYou } from "../parts/DecisionsAboutYou.tsx"
import { DownloadButton } from "../parts/DownloadButton.tsx"
import { ExportButton, exportSize } from "../parts/ExportButton.tsx"
import { Failure } from "../parts/Failure.tsx"
import { emptyList, Filters } from "../parts/Filters.tsx"
import { SelectField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { Span, spanStart } from "../parts/Span.tsx"
import { type Column, Table } from "../parts/Table.tsx"
import { filterOf, pageAfter, TextFilter } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { here } from "../Location.ts"
import { useNames } from "../Names.ts"
import { useResource } from "../Resource.ts"
import { auditing } from "../Visitor.ts"

type OwnRecord = AnswerOf<"listOwnAudit">["items"][number]
type AnyRecord = AnswerOf<"listAudit">["items"][number]

const tones: Readonly<Record<OwnRecord["outcome"], Tone>> = { done: "good", refused: "warn", failed: "bad" }

/** The id behind `person:` or `account:`. */
const idIn = (kind: "person" | "account", text: string | null): string | undefined =>
  text?.startsWith(`${kind}:`) ? text.slice(kind.length + 1) : undefined

/** Gives the name of an actor or an object; null where it has none. */
type Named = (of: string) => string | null

/** Names of the people whom these records name. */
const usePeopleIn = (texts: ReadonlyArray<string | null>): Named => {
  const names = useNames(texts.flatMap((text) => idIn("person", text) ?? []))
  return (of) => {
    const id = idIn("person", of)
    return id === undefined || names(id) === id ? null : names(id)
  }
}

/** Names of the people and of the mail accounts that these records name, for operators. */
const useNamesIn = (texts: ReadonlyArray<string | null>): Named => {
  const people = usePeopleIn(texts)
  const accounts = useAccountNames(auditing.value ? [] : texts.flatMap((text) => idIn("account", text) ?? []))
  return (of) => {
    const id = idIn("account", of)
    return id === undefined ? people(of) : accounts(id)
  }
}

/** The screens of objects that have one. */
const pages: Readonly<Record<string, string>> = { institution: "institutions", project: "projects" }

/** An actor or an object: with a name beside the id that a filter takes, and what has a page as a link. */
const Told = ({ names, of }: { readonly names: Named; readonly of: string | null }): JSX.Element => {
  if (of === null) return <span class="note">none</span>
  const name = names(of)
  if (name !== null) {
    return (
      <>
        {name}
        <div class="note">
          <code>{of}</code>
        </div>
      </>
    )
  }
  const [kind, object] = of.split(":", 2)
  const page = kind === "project" && auditing.value ? undefined : pages[kind ?? ""]
  return page === undefined || object === undefined
    ? <code>{of}</code>
    : (
      <a href={`/console/${page}/${encodeURIComponent(object)}`}>
        <code>{of}</code>
      </a>
    )
}

/** A name of parts, which a narrow column breaks between two of them. */
const Dotted = ({ text }: { readonly text: string }): JSX.Element => (
  <>{text.split(/(?<=[.-])/).map((part, n) => n === 0 ? part : [<wbr key={n} />, part])}</>
)

/** A request's id, as a link to all that it did. */
const Request = ({ id }: { readonly id: string | null }): JSX.Element => {
  if (id === null) return <span class="note">none</span>
  const all = new URL(here.value)
  all.search = new URLSearchParams({ request_id: id }).toString()
  return (
    <a href={all.pathname + all.search} title="All records of this request">
      <code>{id}</code>
    </a>
  )
}

const columns = (names: Named): ReadonlyArray<Column<OwnRecord>> => [
  { head: "When", cell: ({ at }) => <When at={at} exact /> },
  { head: "Action", cell: ({ action }) => <Dotted text={action} /> },
  { head: "Object", cell: ({ route, subject }) => <Told of={subject ?? route} names={names} /> },
  {
    head: "Outcome",
    cell: ({ code, outcome, status }) => (
      <>
        <Badge tone={tones[outcome]}>{outcome}</Badge> {[status, code].filter((one) => one !== null).join(" ")}
      </>
    ),
  },
  { head: "Request", cell: ({ request_id }) => <Request id={request_id} /> },
]

const actor = (names: Named): Column<AnyRecord> => ({
  head: "Actor",
  cell: ({ actor, details }) => (
    <>
      <Told of={actor ?? "unknown"} names={names} />
      {Object.keys(details).length === 0 ? null : (
        <details>
          <summary>Details</summary>
          <pre tabIndex={0}>{JSON.stringify(details, null, 2)}</pre>
        </details>
      )}
    </>
  ),
})

/** The request, and below it the proof of a decision. */
const proven = ({ cell, head }: Column<OwnRecord>, own = false): Column<OwnRecord> => ({
  head,
  cell: (record) => (
    <>
      {cell(record)} <DecisionProof of={record} own={own} />
    </>
  ),
})

const OutcomeFilter = (): JSX.Element => (
  <SelectField
    label="Outcome"
    value={filterOf("outcome") ?? ""}
    onChange={(outcome) => setQuery({ outcome, after: undefined })}
    options={[["", "Any"], ["done", "Done"], ["refused", "Refused"], ["failed", "Failed"]]}
  />
)

const ownFilters = ["action", "outcome", "request_id", "within"]
const filters = [...ownFilters, "actor", "subject", "code"]

const conditions = () => ({
  action: filterOf("action"),
  outcome: filterOf("outcome"),
  code: filterOf("code"),
  request_id: filterOf("request_id"),
  since: spanStart(),
})

const query = () => ({ ...conditions(), after_id: filterOf("after") })

/** The audit from its newest record on, by the filters of now. */
const exported = () => {
  const filter = { ...conditions(), actor: filterOf("actor"), subject: filterOf("subject") }
  return (after_id: string | undefined, signal: AbortSignal) =>
    ask("listAudit", { query: { ...filter, limit: String(exportSize), after_id } }, { signal })
}

const Older = ({ after }: { readonly after: string | null | undefined }): JSX.Element | null =>
  after == null ? null : (
    <p>
      <a href={pageAfter(after)}>Older records</a>
    </p>
  )

/** The visitor's own actions and attempts. */
export const OwnAudit = (): JSX.Element => {
  const records = useResource(
    `own audit ${here.value.search}`,
    (signal) => ask("listOwnAudit", { query: query() }, { signal }),
  )
  const found = records.value.value
  const names = usePeopleIn((found?.items ?? []).map(({ subject }) => subject))
  const own = columns(names)
  return (
    <Page title="My activity">
      <Filters names={ownFilters}>
        <TextFilter label="Action" name="action" />
        <OutcomeFilter />
        <Span />
      </Filters>
      <Failure of={records.failure} retry={records.reload} />
      {found === undefined ? null : (
        <Table
          caption="What you did and tried, newest first"
          rows={found.items}
          keyOf={({ id }) => id}
          empty={emptyList(ownFilters, "Nothing was recorded yet.")}
          columns={[...own.slice(0, -1), proven(own.at(-1)!, true)]}
        />
      )}
      <Older after={found?.next_after_id} />
      <DecisionsAboutYou />
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
  const names = useNamesIn((found?.items ?? []).flatMap(({ actor, subject }) => [actor, subject]))
  const own = columns(names)
  return (
    <Page
      title="Audit"
      actions={<DownloadButton items={found?.items ?? []} label="Download these records" name="audit" />}
    >
      <Filters names={filters}>
        <TextFilter label="Actor" name="actor" placeholder="person:…" />
        <TextFilter label="Action" name="action" placeholder="webhook.created" />
        <TextFilter label="Object" name="subject" placeholder="webhook:…" />
        <TextFilter label="Code" name="code" placeholder="forbidden" />
        <TextFilter label="Request" name="request_id" />
        <OutcomeFilter />
        <Span />
      </Filters>
      <Failure of={records.failure} retry={records.reload} />
      {found === undefined ? null : (
        <Table
          caption="Audit records, newest first"
          rows={found.items}
          keyOf={({ id }) => id}
          empty={emptyList(filters, "Nothing was recorded yet.")}
          columns={[own[0]!, actor(names), ...own.slice(1, -1), proven(own.at(-1)!)]}
        />
      )}
      <Older after={found?.next_after_id} />
      <div class="actions">
        <ExportButton begin={exported} label="Download all as CSV" name="all-audit" />
      </div>
      {auditing.value ? null : (
        <CopyCommand
          command="audit"
          options={{
            actor: filterOf("actor"),
            action: filterOf("action"),
            subject: filterOf("subject"),
            code: filterOf("code"),
            "request-id": filterOf("request_id"),
            outcome: filterOf("outcome"),
            since: filterOf("within"),
          }}
        />
      )}
    </Page>
  )
}
export default Audit
