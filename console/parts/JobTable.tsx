/** Jobs at the identity provider, with what an operator does about one. */
import type { JSX } from "preact"
import { useOperatedProjects } from "../OperatedProjects.ts"
import { AuditLink } from "./AuditLink.tsx"
import { Badge, type Tone } from "./Badge.tsx"
import { type Job, JobActions, jobWords } from "./JobActions.tsx"
import { ProjectLink } from "./ProjectLink.tsx"
import { type Column, Table } from "./Table.tsx"
import { When } from "./When.tsx"

const states: Readonly<Record<Job["state"], readonly [tone: Tone, words: string]>> = {
  pending: ["wait", "waits"],
  running: ["wait", "runs"],
  effective: ["good", "done"],
  failed: ["bad", "failed"],
  ambiguous: ["warn", "outcome unknown"],
}

const project = (nameOf: (id: string) => string | null): Column<Job> => ({
  head: "Project",
  cell: ({ project_id }) =>
    project_id === null ? <span class="note">none</span> : <ProjectLink id={project_id} name={nameOf(project_id)} />,
})

export const JobTable = ({ caption, done = () => {}, empty, of, operator, projects = false }: {
  readonly caption: string
  readonly empty: string
  readonly of: ReadonlyArray<Job>
  /** Whether the visitor decides on these jobs; null: nothing is decided here. */
  readonly operator: boolean | null
  /** Asks for the jobs anew. */
  readonly done?: () => unknown
  /** Whether each row says, and leads to, its project. */
  readonly projects?: boolean
}): JSX.Element => {
  const audits = projects || operator === true
  const nameOf = useOperatedProjects(projects ? of.map(({ project_id }) => project_id) : [])
  return (
    <Table
      caption={caption}
      rows={of}
      keyOf={({ job_id }) => job_id}
      empty={empty}
      columns={[
        {
          head: "Job",
          cell: ({ job_id, kind }) => (
            <>
              {jobWords(kind)}
              {audits
                ? (
                  <div>
                    <AuditLink id={job_id} />
                  </div>
                )
                : null}
            </>
          ),
        },
        ...(projects ? [project(nameOf)] : []),
        { head: "State", cell: ({ state }) => <Badge tone={states[state][0]}>{states[state][1]}</Badge> },
        { head: "Tries", cell: ({ attempts, max_attempts }) => `${attempts} of ${max_attempts}` },
        { head: "Error", cell: ({ last_error_code }) => last_error_code ?? "none" },
        { head: "Changed", cell: ({ updated_at }) => <When at={updated_at} /> },
        ...(operator === null ? [] : [{
          head: "To do",
          cell: (job: Job) =>
            operator ? <JobActions done={done} job={job} /> : <span class="note">an operator decides</span>,
        }]),
      ]}
    />
  )
}
