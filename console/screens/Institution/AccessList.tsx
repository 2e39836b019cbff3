/**
 * Every Access of an institution: person, project, role, version, and the review of that version; now, or as it was at a
 * past time.
 */
import type { JSX } from "preact"
import { ask } from "../../contract/Ask.ts"
import { setQuery } from "../../Location.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Failure } from "../../parts/Failure.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../../parts/NextPage.tsx"
import { Table } from "../../parts/Table.tsx"
import { filterOf } from "../../parts/TextFilter.tsx"
import { ProjectName } from "../../parts/ProjectName.tsx"
import { When } from "../../parts/When.tsx"
import { useProjectNames } from "../../ProjectNames.ts"
import { useResource } from "../../Resource.ts"
import { auditing } from "../../Visitor.ts"
import type { Shown } from "./Members.tsx"

/** The zone in which the field's time is meant: the visitor's own. */
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** The chosen past time, in the address as UTC and in the field as the visitor's own time. */
const AsOf = (): JSX.Element => {
  const millis = Date.parse(filterOf("at") ?? "")
  const own = new Date(millis - new Date(millis).getTimezoneOffset() * 60_000)
  return (
    <div class="filters">
      <div class="field">
        <label for="as-of">As of ({zone})</label>
        <input
          id="as-of"
          type="datetime-local"
          // The last day that there is may be none in the visitor's zone.
          value={Number.isNaN(own.getTime()) ? "" : own.toISOString().slice(0, 16)}
          onChange={({ currentTarget: { value } }) =>
            setQuery({ at: value === "" ? undefined : new Date(value).toISOString(), access: undefined })}
        />
      </div>
    </div>
  )
}

export const AccessList = ({ decides, institution }: Shown): JSX.Element => {
  const [after_id, at] = [filterOf("access"), filterOf("at")]
  const access = useResource(
    `access ${institution} ${after_id} ${at}`,
    (signal) =>
      ask("listAccess", {
        params: { institution_id: institution },
        query: { after_id, at, limit: String(pageSize) },
      }, { signal }),
  )
  const found = access.value.value?.items
  const projects = useProjectNames(institution, (found ?? []).map(({ project_id }) => project_id))
  return (
    <section aria-labelledby="access">
      <div class="head">
        <h2 id="access">Access</h2>
        <div class="actions">
          <a class="button" href={`/console/institutions/${institution}/campaigns`}>Campaigns</a>
          {!decides && !auditing.value
            ? null
            : (
              <a class="button" href={`/console/reviews?institution=${encodeURIComponent(institution)}`}>
                Access reviews
              </a>
            )}
        </div>
      </div>
      <AsOf />
      <Failure of={access.failure} retry={access.reload} />
      {found === undefined ? null : (
        <>
          <Table
            caption="Access of people to projects"
            rows={found}
            keyOf={({ access_id }) => access_id}
            empty={emptyPage(
              "access",
              at === undefined ? "No person has Access to a project yet." : "No person had Access then.",
            )}
            columns={[
              {
                head: "Person",
                cell: ({ access_id, display_name, person_id }) => (
                  <a href={`/console/institutions/${institution}/access/${access_id}`}>{display_name ?? person_id}</a>
                ),
              },
              {
                head: "Project",
                cell: ({ project_id }) => <ProjectName id={project_id} name={projects(project_id)} />,
              },
              { head: "Role", cell: ({ role }) => role },
              {
                head: "State",
                cell: ({ ends_at, state }) => (
                  <>
                    <Badge tone={state === "active" ? "good" : "off"}>{state}</Badge>
                    {ends_at === null ? null : (
                      <div class="note">
                        until <When at={ends_at} />
                      </div>
                    )}
                  </>
                ),
              },
              {
                head: "Version",
                cell: ({ access_version, granted_at }) => (
                  <>
                    {access_version}, <When at={granted_at} />
                  </>
                ),
              },
              {
                head: "Review",
                cell: ({ review }) =>
                  review === null
                    ? <Badge tone="off">none</Badge>
                    : <Badge tone={review.state === "approved" ? "good" : "wait"}>{review.state}</Badge>,
              },
            ]}
          />
          <NextPage last={lastOf(found, ({ access_id }) => access_id)} name="access" words="Access" />
        </>
      )}
    </section>
  )
}
