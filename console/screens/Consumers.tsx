/** How far the products of all projects are behind what was decided, and what differs from it. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { DriftList } from "../parts/DriftList.tsx"
import { Failure } from "../parts/Failure.tsx"
import { lagAfter, lagCursorOf, lagPageQuery, LagTable } from "../parts/LagTable.tsx"
import { lastOf, NextPage } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { StreamTable } from "../parts/StreamTable.tsx"
import { When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { useResource } from "../Resource.ts"

const Consumers = (): JSX.Element => {
  const query = lagPageQuery()
  const diagnostics = useResource(
    `diagnostics of all ${query.after_lag}`,
    (signal) => ask("operationsDiagnostics", { query }, { signal }),
  )
  useRefresh(diagnostics, 15)
  const found = diagnostics.value.value
  return (
    <Page title="Consumers">
      <Failure of={diagnostics.failure} retry={diagnostics.reload} />
      {found === undefined ? null : (
        <>
          <LagTable of={found.lifecycle_lag} projects />
          <NextPage last={lastOf(found.lifecycle_lag, lagCursorOf)} name={lagAfter} words="consumers" />
          <section aria-labelledby="streams">
            <h2 id="streams">Streams</h2>
            <StreamTable of={found.lifecycle_streams} projects />
          </section>
          <section aria-labelledby="drift">
            <h2 id="drift">Drift</h2>
            <DriftList of={found} projects />
          </section>
          <p class="note">
            As of <When at={found.as_of} exact />
          </p>
        </>
      )}
      <CopyCommand command="consumers" />
    </Page>
  )
}
export default Consumers
