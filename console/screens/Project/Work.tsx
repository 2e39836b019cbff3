/** The work on a project: its consumers' lag, streams, drift, and jobs that failed or whose outcome is unknown. */
import type { JSX } from "preact"
import { ask } from "../../contract/Ask.ts"
import { DriftList } from "../../parts/DriftList.tsx"
import { Failure } from "../../parts/Failure.tsx"
import { JobTable } from "../../parts/JobTable.tsx"
import { lagAfter, lagCursorOf, lagPageQuery, LagTable } from "../../parts/LagTable.tsx"
import { lastOf, NextPage } from "../../parts/NextPage.tsx"
import type { Project } from "../../parts/ProjectState.tsx"
import { StreamTable } from "../../parts/StreamTable.tsx"
import { useResource } from "../../Resource.ts"

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
            <DriftList of={found} />
          </section>
          <section aria-labelledby="jobs">
            <h2 id="jobs">Jobs</h2>
            <JobTable
              caption="Jobs that failed, and jobs whose outcome is unknown"
              done={diagnostics.reload}
              empty="No job failed, and every outcome is known."
              of={[...found.failed, ...found.ambiguous]}
              operator={operator}
            />
          </section>
        </>
      )}
    </>
  )
}
