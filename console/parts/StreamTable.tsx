/** Streams that carry lifecycle events to products, failing ones first. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useOperatedProjects } from "../OperatedProjects.ts"
import { Badge, type Tone } from "./Badge.tsx"
import { ProjectLink } from "./ProjectLink.tsx"
import { type Column, Table } from "./Table.tsx"
import { When } from "./When.tsx"

type Stream = AnswerOf<"projectDiagnostics">["lifecycle_streams"][number]

const streamTones: Readonly<Record<Stream["status"], Tone>> = { enabled: "good", paused: "warn", disabled: "off" }

const project = (nameOf: (id: string) => string | null): Column<Stream> => ({
  head: "Project",
  cell: ({ project_id }) => <ProjectLink id={project_id} name={nameOf(project_id)} />,
})

/** `projects`: whether each row says, and leads to, the project whose events it carries. */
export const StreamTable = ({ of, projects = false }: {
  readonly of: ReadonlyArray<Stream>
  readonly projects?: boolean
}): JSX.Element => {
  const nameOf = useOperatedProjects(projects ? of.map(({ project_id }) => project_id) : [])
  return (
    <Table
      caption="Streams"
      rows={of}
      keyOf={({ stream_id }) => stream_id}
      empty="No stream is set up."
      columns={[
        { head: "Consumer", cell: ({ consumer_id }) => <code>{consumer_id}</code> },
        ...(projects ? [project(nameOf)] : []),
        { head: "Delivery", cell: ({ delivery }) => delivery },
        {
          head: "State",
          cell: ({ status, status_by }) => (
            <>
              <Badge tone={streamTones[status]}>{status}</Badge> <span class="note">by the {status_by}</span>
            </>
          ),
        },
        { head: "Behind", cell: ({ lag_events }) => `${lag_events} events` },
        {
          head: "Fails since",
          cell: ({ attempts, failing_since }) => (
            <>
              <When at={failing_since} never="does not fail" />
              {failing_since === null ? "" : `, ${attempts} times`}
            </>
          ),
        },
      ]}
    />
  )
}
