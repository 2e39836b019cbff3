/** Consumers of lifecycle events, the furthest behind first, and the pages of them. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useOperatedProjects } from "../OperatedProjects.ts"
import { Badge } from "./Badge.tsx"
import { emptyPage, pageSize } from "./NextPage.tsx"
import { ProjectLink } from "./ProjectLink.tsx"
import { type Column, Table } from "./Table.tsx"
import { filterOf } from "./TextFilter.tsx"
import { When } from "./When.tsx"

type Lag = AnswerOf<"projectDiagnostics">["lifecycle_lag"][number]

/** Where the page stands in the address. */
export const lagAfter = "consumers"

/** The query of the API: the page that the address names. */
export const lagPageQuery = () => {
  const after_lag = filterOf(lagAfter)
  return { lag_limit: String(pageSize), ...(after_lag === undefined ? {} : { after_lag }) }
}

export const lagCursorOf = ({ consumer_id, lag_events, project_id }: Lag): string =>
  `${lag_events} ${project_id} ${consumer_id}`

const millis = (time: number | null): string => time === null ? "none yet" : `${Math.round(time)} ms`

const project = (nameOf: (id: string) => string | null): Column<Lag> => ({
  head: "Project",
  cell: ({ project_id }) => <ProjectLink id={project_id} name={nameOf(project_id)} />,
})

/** `projects`: whether each row says, and leads to, the project that is followed. */
export const LagTable = ({ of, projects = false }: {
  readonly of: ReadonlyArray<Lag>
  readonly projects?: boolean
}): JSX.Element => {
  const nameOf = useOperatedProjects(projects ? of.map(({ project_id }) => project_id) : [])
  return (
    <Table
      caption="Consumers, with how far behind they are"
      rows={of}
      keyOf={({ consumer_id, project_id }) => `${project_id} ${consumer_id}`}
      empty={emptyPage(
        lagAfter,
        projects ? "No product follows any project yet." : "No product follows the project yet.",
      )}
      columns={[
        { head: "Consumer", cell: ({ consumer_id }) => <code>{consumer_id}</code> },
        ...(projects ? [project(nameOf)] : []),
        {
          head: "Behind",
          cell: ({ lag_events, oldest_unacknowledged_seconds, snapshot_required }) =>
            snapshot_required
              ? <Badge tone="bad">needs a snapshot</Badge>
              : lag_events === 0
              ? <Badge tone="good">up to date</Badge>
              : (
                <Badge tone="warn">
                  {`${lag_events} events, ${Math.round(oldest_unacknowledged_seconds ?? 0)} s`}
                </Badge>
              ),
        },
        { head: "Head", cell: ({ head_position }) => head_position },
        { head: "Acknowledged", cell: ({ acknowledged_position }) => acknowledged_position },
        { head: "At", cell: ({ acknowledged_at }) => <When at={acknowledged_at} /> },
        { head: "Runs", cell: ({ installed_version }) => installed_version ?? "not reported" },
        {
          head: "99 of 100 within",
          cell: ({ decision_to_queue_ms_p99, delivery_to_ack_ms_p99, queue_to_delivery_ms_p99 }) => (
            <>
              <div>to the queue {millis(decision_to_queue_ms_p99)}</div>
              <div>to the product {millis(queue_to_delivery_ms_p99)}</div>
              <div>to its answer {millis(delivery_to_ack_ms_p99)}</div>
            </>
          ),
        },
      ]}
    />
  )
}
