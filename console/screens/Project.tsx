/**
 * One project: how far it is, its client, its owners and launches, the services that read its lifecycle, and the state of
 * its consumers and jobs.
 */
import type { ComponentChildren, JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { Params } from "../Location.ts"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { type Project as OneProject, ProjectState, ProjectSteps } from "../parts/ProjectState.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"
import { rolesIn, session } from "../Visitor.ts"
import { Events } from "./Project/Events.tsx"
import { Launches } from "./Project/Launches.tsx"
import { Owners } from "./Project/Owners.tsx"
import { ServiceGrants } from "./Project/ServiceGrants.tsx"
import { WithdrawButton } from "./Project/Withdraw.tsx"
import { Work } from "./Project/Work.tsx"

const Fact = ({ children, name }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

const Uris = ({ name, of }: { readonly name: string; readonly of: ReadonlyArray<string> }): JSX.Element => (
  <Fact name={name}>
    {of.length === 0 ? "none" : of.map((uri) => (
      <div key={uri}>
        <code>{uri}</code>
      </div>
    ))}
  </Fact>
)

const Registration = ({ of }: { readonly of: OneProject }): JSX.Element | null => {
  const { registration } = of
  return registration === null ? null : (
    <Fact name="Registration">
      {registration.state === "submitted" ? "waits for its review" : registration.state}: “{registration.reason}”{" "}
      <When at={registration.decided_at ?? registration.created_at} />
    </Fact>
  )
}

const Facts = ({ of }: { readonly of: OneProject }): JSX.Element => (
  <dl>
    <Fact name="State">
      <ProjectState of={of.state} />
      {of.rollout === null ? null : <span class="note">, an operator holds its rollout ({of.rollout})</span>}
    </Fact>
    <Fact name="Website">{of.website}</Fact>
    <Fact name="Environment">{of.environment}</Fact>
    <Fact name="Client">{of.client_id === null ? "not made yet" : <code>{of.client_id}</code>}</Fact>
    <Uris name="Redirect URIs" of={of.redirect_uris} />
    <Uris name="After a sign-out" of={of.post_logout_redirect_uris} />
    {of.backchannel_logout_uri === null ? null : <Uris name="Back-channel logout" of={[of.backchannel_logout_uri]} />}
    <Fact name="Scopes">{of.requested_scopes.join(", ") || "none"}</Fact>
    <Fact name="Connector">
      {of.connector_kind.replaceAll("_", " ")}
      {of.connector_product === null ? "" : `, ${of.connector_product}`}
    </Fact>
    <Fact name="Launched at">{of.launch_url ?? "no address yet"}</Fact>
    <Fact name="Product runs">{of.installed_version ?? "not reported"}</Fact>
    <Registration of={of} />
    <Fact name="Version">
      {of.version}, <When at={of.updated_at} />
    </Fact>
    <Fact name="Id">
      <code>{of.project_id}</code>
    </Fact>
  </dl>
)

/** Whether the visitor is an active owner: the session may be older than the ownership. */
const isOwner = ({ owners }: OneProject): boolean =>
  owners?.some(({ active, person_id }) => active && person_id === session.value?.person?.person_id) === true

/** The parts of the page that are shown to the visitor; the API decides the same. */
const Parts = ({ done, of }: { readonly of: OneProject; readonly done: () => unknown }): JSX.Element => {
  const roles = rolesIn(of.institution_id)
  const owner = isOwner(of)
  const administrator = roles.has("administrator")
  const operator = session.value?.operator === true
  const decides = { owner, administrator }
  return (
    <>
      {owner || operator && roles.size > 0 ? <Work of={of} operator={operator} /> : null}
      {of.owners === null ? null : <Owners done={done} owners={of.owners} of={of} {...decides} />}
      {of.launches === null ? null : <Launches done={done} of={of} {...decides} />}
      {owner || administrator || operator ? <ServiceGrants of={of} {...decides} /> : null}
      {owner || operator && roles.size > 0 ? <Events project_id={of.project_id} /> : null}
    </>
  )
}

const Project = ({ params }: { readonly params: Params }): JSX.Element => {
  const project_id = params["project_id"]!
  const project = useResource(
    `project ${project_id}`,
    (signal) => ask("getProject", { params: { project_id } }, { signal }),
  )
  const found = project.value.value
  const may = found !== undefined && found.state !== "withdrawn" &&
    (isOwner(found) || rolesIn(found.institution_id).has("administrator"))
  return (
    <Page
      title={found?.name ?? "Project"}
      up={found === undefined
        ? ["/console/institutions", "Institutions"]
        : [`/console/institutions/${found.institution_id}`, "Institution"]}
      actions={may ? <WithdrawButton done={project.reload} of={found} /> : undefined}
    >
      <Failure of={project.failure} retry={project.reload} />
      {found === undefined ? null : (
        <>
          <ProjectSteps of={found} />
          <Facts of={found} />
          <Parts done={project.reload} of={found} />
        </>
      )}
    </Page>
  )
}
export default Project
