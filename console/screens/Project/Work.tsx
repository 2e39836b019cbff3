/** The work on a project: its consumers' lag, streams, drift, and jobs that failed or whose outcome is unknown. */
import type { JSX } from "preact"
import { ask } from "../../contract/Ask.ts"
import type { AnswerOf } from "../../contract/EndpointTypes.ts"
import { Badge, type Tone } from "../../parts/Badge.tsx"
import { Failure } from "../../parts/Failure.tsx"
import { lagAfter, lagCursorOf, lagPageQuery, LagTable } from "../../parts/LagTable.tsx"
import { lastOf, NextPage } from "../../parts/NextPage.tsx"
import type { Project } from "../../parts/ProjectState.tsx"
import { Table } from "../../parts/Table.tsx"
import { When } from "../../parts/When.tsx"
import { useResource } from "../../Resource.ts"
import { type Job, JobActions } from "./JobActions.tsx"

type Diagnostics = AnswerOf<"projectDiagnostics">
type Stream = Diagnostics["lifecycle_streams"][number]

const streamTones: Readonly<Record<Stream["status"], Tone>> = { enabled: "good", paused: "warn", disabled: "off" }

const StreamTable = ({ of }: { readonly of: ReadonlyArray<Stream> }): JSX.Element => (
  <Table
    caption="Streams"
    rows={of}
    keyOf={({ stream_id }) => stream_id}
    empty="No stream is set up."
    columns={[
      { head: "Consumer", cell: ({ consumer_id }) => <code>{consumer_id}</code> },
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

const JobTable = ({ done, of, operator }: {
  readonly of: ReadonlyArray<Job>
  readonly operator: boolean
  readonly done: () => unknown
}): JSX.Element => (
  <Table
    caption="Jobs that failed, and jobs whose outcome is unknown"
    rows={of}
    keyOf={({ job_id }) => job_id}
    empty="No job failed, and every outcome is known."
    columns={[
      { head: "Job", cell: ({ kind }) => kind.replaceAll("_", " ") },
      {
        head: "State",
        cell: ({ state }) => (
          <Badge tone={state === "failed" ? "bad" : "warn"}>{state === "failed" ? state : "outcome unknown"}</Badge>
        ),
      },
      { head: "Tries", cell: ({ attempts, max_attempts }) => `${attempts} of ${max_attempts}` },
      { head: "Error", cell: ({ last_error_code }) => last_error_code ?? "none" },
      { head: "Changed", cell: ({ updated_at }) => <When at={updated_at} /> },
      {
        head: "To do",
        cell: (job) => operator ? <JobActions done={done} job={job} /> : <span class="note">an operator decides</span>,
      },
    ]}
  />
)

const Drift = ({ of }: { readonly of: Diagnostics }): JSX.Element => {
  const fields = of.client_drift.map(({ field }) => `the client's ${field.replaceAll("_", " ")}`)
  const found = [...fields, ...of.lifecycle_drift.map(({ key }) => `what the product was told of ${key}`)]
  return found.length === 0 ? <p class="note">Nothing differs from what was decided.</p> : (
    <ul>
      {found.map((one) => (
        <li key={one}>
          <Badge tone="bad">differs</Badge> {one}
        </li>
      ))}
    </ul>
  )
}

export const Work = ({ of, operator }: { readonly of: Project; readonly operator: boolean }): JSX.Element => {
  const { project_id } = of
  const query = lagPageQuery()
  const diagnostics = useResource(
    `diagnostics ${project_id} ${query.after_lag}`,
    (signal) => ask("projectDiagnostics", { params: { project_id }, query }, { signal }),
  )
  const found = diagnostics.value.value
  return (
    <>
      <Failure of={diagnostics.failure} retry={diagnostics.reload} />
      {found === undefined ? null : (
        <>
          <section aria-labelledby="lag">
            <h2 id="lag">Consumers</h2>
            <LagTable of={found.lifecycle_lag} />
            <NextPage last={lastOf(found.lifecycle_lag, lagCursorOf)} name={lagAfter} words="consumers" />
          </section>
          <section aria-labelledby="streams">
            <h2 id="streams">Streams</h2>
            <StreamTable of={found.lifecycle_streams} />
          </section>
          <section aria-labelledby="drift">
            <h2 id="drift">Drift</h2>
            <Drift of={found} />
          </section>
          <section aria-labelledby="jobs">
            <h2 id="jobs">Jobs</h2>
            <JobTable done={diagnostics.reload} of={[...found.failed, ...found.ambiguous]} operator={operator} />
          </section>
        </>
      )}
    </>
  )
}
