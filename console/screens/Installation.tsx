/** The installation: its epoch, why it is held, what may be lost, and the word that opens it. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useOperatedProjects } from "../OperatedProjects.ts"
import { Badge } from "../parts/Badge.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { Failure } from "../parts/Failure.tsx"
import { OpenButton } from "../parts/OpenButton.tsx"
import { Page } from "../parts/Page.tsx"
import { ProjectLink } from "../parts/ProjectLink.tsx"
import { Remedy } from "../parts/Remedy.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { useResource } from "../Resource.ts"

type Installed = AnswerOf<"installation">
type Missing = Installed["missing"][number]

const rangeOf = ({ epoch, first, last }: Missing): string => {
  const range = first === last ? `${first}` : `${first} to ${last}`
  return epoch === null ? `sequence ${range}` : `position ${range} of epoch ${epoch}`
}

const Held = ({ of }: { readonly of: Installed }): JSX.Element => {
  const nameOf = useOperatedProjects(of.missing.map(({ project_id }) => project_id))
  return (
    <>
      <p class="banner">
        Nothing new takes effect: {of.says}. Revocations work as always.
      </p>
      <dl>
        {of.remedy === null ? null : (
          <div>
            <dt>What ends this</dt>
            <dd>
              <Remedy of={of.remedy} />
              <div class="note">The button of this page does what the command does.</div>
            </dd>
          </div>
        )}
        <div>
          <dt>Held</dt>
          <dd>
            <When at={of.held_since} exact />
          </dd>
        </div>
        <div>
          <dt>Decisions may be lost since</dt>
          <dd>
            <When at={of.lost_since} exact />
          </dd>
        </div>
      </dl>
      {of.missing.length === 0 ? null : (
        <section aria-labelledby="missing">
          <h2 id="missing">Messages that are missing on the broker</h2>
          <Table
            caption="Missing messages"
            rows={of.missing}
            keyOf={(one) => `${one.stream} ${one.project_id} ${one.epoch} ${one.first}`}
            empty=""
            columns={[
              { head: "Stream", cell: ({ stream }) => stream },
              { head: "Missing", cell: rangeOf },
              {
                head: "Project",
                cell: ({ project_id }) =>
                  project_id === null ? "any" : <ProjectLink id={project_id} name={nameOf(project_id)} />,
              },
            ]}
          />
        </section>
      )}
    </>
  )
}

const InstallationPage = (): JSX.Element => {
  const installed = useResource("installation", (signal) => ask("installation", {}, { signal }))
  useRefresh(installed, 5)
  const found = installed.value.value
  const open = found?.state === "held" ? <OpenButton done={installed.reload} /> : null
  return (
    <Page title="Installation" actions={open}>
      <Failure of={installed.failure} retry={installed.reload} />
      {found === undefined ? null : (
        <>
          <p>
            {found.state === "open" ? <Badge tone="good">open</Badge> : <Badge tone="warn">held</Badge>} Epoch{" "}
            {found.epoch}
          </p>
          {found.state === "held" ? <Held of={found} /> : (
            <p class="note">
              Opened after a hold: <When at={found.opened_at} exact never="never held" />
            </p>
          )}
        </>
      )}
      <CopyCommand command="installation show" />
    </Page>
  )
}
export default InstallationPage
