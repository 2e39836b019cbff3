/** The institutions that a person belongs to, for an operator all, and the projects that the person owns. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { go } from "../Location.ts"
import { AskOrganization } from "../parts/AskOrganization.tsx"
import { Badge } from "../parts/Badge.tsx"
import { Failure } from "../parts/Failure.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"
import { session } from "../Visitor.ts"

const OwnProjects = (): JSX.Element | null => {
  const own = session.value?.projects ?? []
  return own.length === 0 ? null : (
    <section aria-labelledby="projects">
      <h2 id="projects">Projects that you own</h2>
      <ul>
        {own.map(({ name, project_id }) => (
          <li key={project_id}>
            <a href={`/console/projects/${project_id}`}>{name ?? project_id}</a>
          </li>
        ))}
      </ul>
    </section>
  )
}

const Institutions = (): JSX.Element => {
  const after_id = filterOf("after")
  const institutions = useResource(
    `institutions ${after_id}`,
    (signal) => ask("listInstitutions", { query: { after_id, limit: String(pageSize) } }, { signal }),
  )
  const found = institutions.value.value?.items
  return (
    <Page title="Institutions" actions={<AskOrganization done={() => go("/console/requests")} />}>
      <Failure of={institutions.failure} retry={institutions.reload} />
      {found === undefined ? null : (
        <>
          <Table
            caption="Institutions"
            rows={found}
            keyOf={({ institution_id }) => institution_id}
            empty={emptyPage(
              "after",
              "You belong to no institution yet. An invitation, or an approved request for one, brings you here.",
            )}
            columns={[
              {
                head: "Institution",
                cell: ({ institution_id, name }) => <a href={`/console/institutions/${institution_id}`}>{name}</a>,
              },
              {
                head: "State",
                cell: ({ status }) => <Badge tone={status === "active" ? "good" : "warn"}>{status}</Badge>,
              },
              {
                head: "Your roles",
                cell: ({ memberships }) =>
                  memberships.length === 0
                    ? <span class="note">none</span>
                    : memberships.map(({ effective, role }) => effective ? role : `${role} (not in effect)`)
                      .join(", "),
              },
              { head: "Verified domains", cell: ({ verified_domains }) => verified_domains.join(", ") },
              { head: "Since", cell: ({ created_at }) => <When at={created_at} /> },
            ]}
          />
          <NextPage last={lastOf(found, ({ institution_id }) => institution_id)} name="after" words="institutions" />
        </>
      )}
      <OwnProjects />
    </Page>
  )
}
export default Institutions
