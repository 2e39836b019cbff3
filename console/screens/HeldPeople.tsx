/** People whom identity providers hold: by which word, since when, and their release. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { here } from "../Location.ts"
import { useNames } from "../Names.ts"
import { AuditLink } from "../parts/AuditLink.tsx"
import { Badge } from "../parts/Badge.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { DownloadButton } from "../parts/DownloadButton.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { ReasonDialog } from "../parts/ReasonDialog.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf, pageAfter } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"

type Hold = AnswerOf<"listPersonHolds">["items"][number]

const Release = ({ all, done, of: { person_id, transmitter }, who }: {
  readonly of: Hold
  /** All holds of the page: the person may be held by other providers, too. */
  readonly all: ReadonlyArray<Hold>
  readonly who: string
  readonly done: () => unknown
}): JSX.Element => (
  <ReasonDialog
    name={`release ${person_id} ${transmitter}`}
    label="Release…"
    title={`Release ${who}`}
    done={done}
    submit="Release"
    kind="stop"
    said="The holds have ended."
    write={(reason, key) => ask("releasePerson", { params: { person_id }, payload: { reason } }, { key })}
  >
    <p>
      All holds of this person end, those of other providers, too, and the directory decides from then on. Sessions that
      were ended stay so.
    </p>
    {all.some((one) => one.person_id === person_id && one.kind === "purged")
      ? (
        <p>
          A provider said that the account is gone: its subject may be another person's by now. Make sure whose it is.
        </p>
      )
      : null}
  </ReasonDialog>
)

const HeldPeople = (): JSX.Element => {
  const holds = useResource(
    `person holds ${here.value.search}`,
    (signal) => ask("listPersonHolds", { query: { after_id: filterOf("after") } }, { signal }),
  )
  const found = holds.value.value
  const names = useNames((found?.items ?? []).map(({ person_id }) => person_id))
  return (
    <Page
      title="Held people"
      actions={<DownloadButton items={found?.items ?? []} label="Download these" name="held-people" />}
    >
      <Failure of={holds.failure} retry={holds.reload} />
      {found === undefined ? null : (
        <Table
          caption="People whom identity providers hold, those held last first"
          rows={found.items}
          keyOf={({ person_id, transmitter }) => `${person_id} ${transmitter}`}
          empty={filterOf("after") === undefined ? "No identity provider holds a person." : "No more people are held."}
          columns={[
            {
              head: "Person",
              cell: ({ person_id }) => (
                <>
                  {names(person_id)}
                  <div class="note">
                    <code>{person_id}</code>
                  </div>
                  <AuditLink id={`person:${person_id}`} />
                </>
              ),
            },
            { head: "Held by", cell: ({ transmitter }) => transmitter },
            {
              head: "Its word",
              cell: ({ kind, told_at }) => (
                <>
                  {kind === "purged"
                    ? <Badge tone="bad">account purged</Badge>
                    : <Badge tone="warn">account disabled</Badge>}
                  <div class="note">
                    as of <When at={told_at} />
                  </div>
                </>
              ),
            },
            { head: "Held since", cell: ({ since }) => <When at={since} exact /> },
            {
              head: "Decide",
              cell: (one) => <Release of={one} all={found.items} who={names(one.person_id)} done={holds.reload} />,
            },
          ]}
        />
      )}
      {found?.next_after_id == null ? null : (
        <p>
          <a href={pageAfter(found.next_after_id)}>More held people</a>
        </p>
      )}
      <CopyCommand command="signals holds" />
    </Page>
  )
}
export default HeldPeople
