/** The work at the identity provider: jobs that an operator has to decide on, the newest ones, and the workers. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { Badge, type Tone } from "../parts/Badge.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { Failure } from "../parts/Failure.tsx"
import { JobTable } from "../parts/JobTable.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { useResource } from "../Resource.ts"

type Worker = AnswerOf<"operationsDiagnostics">["workers"][number]

const tones: Readonly<Record<Worker["state"], Tone>> = { running: "good", stale: "bad", stopped: "off" }

const count = new Intl.NumberFormat("en")

const Workers = ({ of }: { readonly of: ReadonlyArray<Worker> }): JSX.Element => (
  <section aria-labelledby="workers">
    <h2 id="workers">Workers</h2>
    <Table
      caption="Workers of all processes"
      rows={of}
      keyOf={({ instance, worker }) => `${worker} ${instance}`}
      empty="No worker has been seen. Start an instance."
      columns={[
        { head: "Worker", cell: ({ worker }) => worker },
        { head: "State", cell: ({ state }) => <Badge tone={tones[state]}>{state}</Badge> },
        { head: "Process", cell: ({ instance }) => <code>{instance}</code> },
        {
          head: "Waiting",
          number: true,
          cell: ({ backlog }) => backlog === null ? <span class="note">not counted</span> : count.format(backlog),
        },
        { head: "Seen", cell: ({ last_seen_at }) => <When at={last_seen_at} /> },
      ]}
    />
  </section>
)

const Jobs = (): JSX.Element => {
  const after_id = filterOf("after")
  const work = useResource(
    "work of all",
    (signal) => ask("operationsDiagnostics", { query: { lag_limit: "1" } }, { signal }),
  )
  const jobs = useResource(
    `jobs ${after_id}`,
    (signal) => ask("listJobs", { query: { after_id, limit: String(pageSize) } }, { signal }),
  )
  useRefresh(work, 15)
  useRefresh(jobs, 5)
  const done = async () => void await Promise.all([work.reload(), jobs.reload()])
  const [waiting, newest] = [work.value.value, jobs.value.value?.items]
  return (
    <Page title="Jobs">
      <Failure of={work.failure} retry={work.reload} />
      {waiting === undefined ? null : (
        <section aria-labelledby="undecided">
          <h2 id="undecided">Yours to decide</h2>
          <JobTable
            caption="Jobs that failed, and jobs whose outcome is unknown"
            done={done}
            empty="No job failed, and every outcome is known."
            of={[...waiting.failed, ...waiting.ambiguous]}
            operator
            projects
          />
        </section>
      )}
      <section aria-labelledby="newest">
        <h2 id="newest">Newest jobs</h2>
        <Failure of={jobs.failure} retry={jobs.reload} />
        {newest === undefined ? null : (
          <>
            <JobTable
              caption="Jobs at the identity provider, newest first"
              empty={emptyPage("after", "There is no job yet: the first launch of a website makes one.")}
              of={newest}
              operator={null}
              projects
            />
            <NextPage last={lastOf(newest, ({ job_id }) => job_id)} name="after" words="jobs" />
          </>
        )}
      </section>
      {waiting === undefined ? null : <Workers of={waiting.workers} />}
      <CopyCommand command="jobs" />
    </Page>
  )
}
export default Jobs
