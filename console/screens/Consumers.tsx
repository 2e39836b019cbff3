/** How far the products of all projects are behind what was decided. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { Failure } from "../parts/Failure.tsx"
import { lagAfter, lagCursorOf, lagPageQuery, LagTable } from "../parts/LagTable.tsx"
import { lastOf, NextPage } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
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
          <p class="note">
            As of <When at={found.as_of} exact />
          </p>
        </>
      )}
    </Page>
  )
}
export default Consumers
